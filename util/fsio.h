/* fsio.h: reading and writing whole files, a growing byte buffer, and numbers as text.
 *
 * A file is written beside its final place and renamed over it only when every byte is on disk, so
 * a reader sees the old file or the new one and never a torn one. Numbers are read and written with
 * '.' as the decimal point whatever the locale of the program. */
#ifndef MNP_BASE_FSIO_H
#define MNP_BASE_FSIO_H

#include "util/digits.h"
#include "util/env.h"
#include "util/limits.h"

/* ---- a growing buffer ------------------------------------------------------------------------ */

/* The first failure sticks: later appends do nothing and return it, so a writer may append freely
 * and look at the status once. */
typedef struct buf {
    env *e;
    char *data; /* len bytes and a NUL after them; NULL while nothing was appended */
    size_t len, cap;
    mnp_status status;
} buf;

void buf_init(buf *b, env *e);
void buf_free(buf *b);
void buf_clear(buf *b);            /* empty again; keeps the memory, forgets a failure */
const char *buf_str(const buf *b); /* never NULL */

mnp_status buf_append(buf *b, const void *data, size_t bytes);
mnp_status buf_text(buf *b, const char *text);
/* For %d, %s and the like. A %g or %f here would follow the locale: use the calls below. */
mnp_status buf_printf(buf *b, const char *fmt, ...) MNP_PRINTF(2, 3);
mnp_status buf_vprintf(buf *b, const char *fmt, va_list ap);
mnp_status buf_plain(buf *b, const char *text); /* foreign text for people: text_plain() */
/* A word of a shell's command, in quotes where it needs them; and a file's name as one, which no
 * program takes for an option. */
mnp_status buf_word(buf *b, const char *word);
mnp_status buf_path(buf *b, const char *path);
mnp_status buf_double(buf *b, double v);              /* shortest text that reads back as v */
mnp_status buf_float(buf *b, float v);                /* the same for a float */
mnp_status buf_fixed(buf *b, double v, int decimals); /* "%.<decimals>f", for pictures */

/* ---- numbers and characters ------------------------------------------------------------------ */

enum { FSIO_NUMBER_TEXT = DIGITS_TEXT };

/* Decimal text ("-1.5e3", ".5", "5.") to the nearest double. False where the text is anything else
 * or longer than FSIO_NUMBER_MAX; a number too large becomes an infinity. */
bool fsio_parse_double(const char *text, size_t bytes, double *out);
/* The shortest text that reads back exactly; "nan", "inf", "-inf" for the rest. */
void fsio_format_double(double v, char out[FSIO_NUMBER_TEXT]);
void fsio_format_float(float v, char out[FSIO_NUMBER_TEXT]);

/* Length (1..4) of the well-formed UTF-8 sequence that starts at `text`; 0 where there is none. */
size_t fsio_utf8_len(const char *text, size_t bytes);

/* ---- files ----------------------------------------------------------------------------------- */

/* The whole file in env memory, with a NUL after the last byte. More than `limit` bytes is an
 * MNP_EFORMAT error, anything the system refuses MNP_EIO; both name the file. */
mnp_status fsio_read(env *e, const char *path, size_t limit, char **data, size_t *bytes);

/* The first `want` bytes at most, and the size of the whole file. */
mnp_status fsio_read_head(env *e, const char *path, void *head, size_t want, size_t *got,
                          size_t *bytes);

/* A file being written. After a successful begin exactly one of commit and abort must follow;
 * a failed append may be followed by either (commit then reports the failure again). Whatever fails
 * before the rename leaves the old file as it was and no temporary. Devices and pipes
 * (/dev/stdout) cannot be renamed over and are written straight through. */
typedef struct fsio_writer {
    env *e;
    char *name;  /* the path as it was given, for messages */
    char *path;  /* what is replaced: the target of a symbolic link, not the link */
    char *temp;  /* PATH.tmp-<pid>; NULL for a device */
    char *block; /* collects small appends */
    size_t fill;
    int fd;
    mnp_status status;
} fsio_writer;

mnp_status fsio_begin(env *e, const char *path, fsio_writer *w);
mnp_status fsio_append(fsio_writer *w, const void *data, size_t bytes);
/* Flush, fsync, rename, fsync the directory. When only that last step fails the status says so but
 * the new file is already in place and whole. */
mnp_status fsio_commit(fsio_writer *w);
void fsio_abort(fsio_writer *w); /* accepts a writer that is already finished */

/* Could `path` be written? For asking before long work: the same failures as those of fsio_begin,
 * found by making the temporary and removing it. Devices and pipes are asked, not opened. */
mnp_status fsio_check(env *e, const char *path);

/* MNP_EIO with "NAME: cannot VERB: <what errno says> (remedy)". */
mnp_status fsio_error(env *e, const char *name, const char *verb, int err);

/* Removes the temporaries that killed processes left beside `path`, or all of a folder that belongs
 * to this program. Only for a caller who knows that no other process writes there. */
void fsio_sweep(const char *path);
void fsio_sweep_folder(const char *folder);

/* All at once. */
mnp_status fsio_write(env *e, const char *path, const void *data, size_t bytes);

#endif
