/* fsio.c: files, a growing buffer and numbers as text. See fsio.h for the contract. */
#define _XOPEN_SOURCE 700
#include "util/fsio.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/text.h"

/* ---- a growing buffer ------------------------------------------------------------------------ */

void buf_init(buf *b, env *e) {
    *b = (buf){.e = e};
}

void buf_free(buf *b) {
    env_free(b->e, b->data);
    *b = (buf){.e = b->e};
}

void buf_clear(buf *b) {
    b->len = 0;
    b->status = MNP_OK;
    if (b->data) b->data[0] = '\0';
}

const char *buf_str(const buf *b) {
    return b->data ? b->data : "";
}

/* Room for `extra` more bytes and the NUL after them. */
static mnp_status reserve(buf *b, size_t extra) {
    if (b->status != MNP_OK) return b->status;
    if (b->data && extra < b->cap - b->len) return MNP_OK;
    if (extra > SIZE_MAX / 4 - b->len)
        return b->status = env_fail(b->e, MNP_ENOMEM, "out of memory: a text is too large");
    size_t cap = b->cap ? b->cap : 256;
    while (cap - b->len <= extra) cap *= 2;
    char *data = env_grow(b->e, b->data, b->cap, cap, 1, "a text buffer");
    if (!data) return b->status = MNP_ENOMEM;
    b->data = data;
    b->cap = cap;
    return MNP_OK;
}

mnp_status buf_append(buf *b, const void *data, size_t bytes) {
    MNP_TRY(reserve(b, bytes));
    if (bytes) memcpy(b->data + b->len, data, bytes);
    b->len += bytes;
    b->data[b->len] = '\0';
    return MNP_OK;
}

mnp_status buf_text(buf *b, const char *text) {
    return buf_append(b, text, strlen(text));
}

mnp_status buf_vprintf(buf *b, const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    int need = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (need < 0) return b->status = env_fail(b->e, MNP_EINVAL, "a text could not be formatted");
    MNP_TRY(reserve(b, (size_t)need));
    vsnprintf(b->data + b->len, b->cap - b->len, fmt, ap);
    b->len += (size_t)need;
    return MNP_OK;
}

mnp_status buf_printf(buf *b, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    mnp_status status = buf_vprintf(b, fmt, ap);
    va_end(ap);
    return status;
}

mnp_status buf_plain(buf *b, const char *text) {
    size_t need = text_plain(NULL, 0, text);
    MNP_TRY(reserve(b, need));
    text_plain(b->data + b->len, need + 1, text);
    b->len += need;
    return MNP_OK;
}

mnp_status buf_word(buf *b, const char *word) {
    bool plain = *word && !word[strcspn(word, " \t\n\"'\\$`!&|;<>()*?[]#~{}^%")];
    if (plain) return buf_text(b, word);
    buf_text(b, "'");
    for (; *word; word++)
        if (*word == '\'')
            buf_text(b, "'\\''");
        else
            buf_append(b, word, 1);
    return buf_text(b, "'");
}

mnp_status buf_path(buf *b, const char *path) {
    if (*path == '-') buf_text(b, "./");
    return buf_word(b, path);
}

mnp_status buf_double(buf *b, double v) {
    char text[FSIO_NUMBER_TEXT];
    fsio_format_double(v, text);
    return buf_text(b, text);
}

mnp_status buf_float(buf *b, float v) {
    char text[FSIO_NUMBER_TEXT];
    fsio_format_float(v, text);
    return buf_text(b, text);
}

/* ---- numbers and characters ------------------------------------------------------------------ */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* [+-] digits [. digits] [e [+-] digits], with a digit on at least one side of the point. */
static bool is_decimal(const char *s, size_t n) {
    size_t i = 0, digits = 0;
    if (i < n && (s[i] == '+' || s[i] == '-')) i++;
    for (; i < n && is_digit(s[i]); i++) digits++;
    if (i < n && s[i] == '.') i++;
    for (; i < n && is_digit(s[i]); i++) digits++;
    if (!digits) return false;
    if (i < n && (s[i] == 'e' || s[i] == 'E')) {
        i++;
        if (i < n && (s[i] == '+' || s[i] == '-')) i++;
        size_t first = i;
        while (i < n && is_digit(s[i])) i++;
        if (i == first) return false;
    }
    return i == n;
}

/* strtod stops at '.' where the locale writes another decimal point. The locale is asked by
 * printing 0.5, because localeconv() is not safe among threads. */
static double parse_with_local_point(const char *text) {
    char half[16], copy[FSIO_NUMBER_MAX + sizeof half];
    snprintf(half, sizeof half, "%.1f", 0.5);
    size_t point = strlen(half) - 2, before = (size_t)(strchr(text, '.') - text);
    memcpy(copy, text, before);
    memcpy(copy + before, half + 1, point);
    memcpy(copy + before + point, text + before + 1, strlen(text + before));
    return strtod(copy, NULL);
}

bool fsio_parse_double(const char *text, size_t bytes, double *out) {
    char copy[FSIO_NUMBER_MAX + 1];
    if (bytes > FSIO_NUMBER_MAX || !is_decimal(text, bytes)) return false;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    char *end;
    double v = strtod(copy, &end);
    *out = *end == '\0' ? v : parse_with_local_point(copy);
    return true;
}

/* The run of characters that no number has is the locale's decimal point. */
static void plain_point(char *text) {
    size_t before = strspn(text, "0123456789+-eE");
    size_t point = strcspn(text + before, "0123456789");
    if (!point) return;
    text[before] = '.';
    memmove(text + before + 1, text + before + point, strlen(text + before + point) + 1);
}

static bool format_special(double v, char out[FSIO_NUMBER_TEXT]) {
    if (isfinite(v)) return false;
    strcpy(out, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
    return true;
}

void fsio_format_double(double v, char out[FSIO_NUMBER_TEXT]) {
    if (digits_double(v, out) || format_special(v, out)) return;
    double back = 0;
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, FSIO_NUMBER_TEXT, "%.*g", digits, v);
        plain_point(out);
        if (digits == 17 || (fsio_parse_double(out, strlen(out), &back) && back == v)) return;
    }
}

void fsio_format_float(float v, char out[FSIO_NUMBER_TEXT]) {
    if (digits_float(v, out) || format_special((double)v, out)) return;
    double back = 0;
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(out, FSIO_NUMBER_TEXT, "%.*g", digits, (double)v);
        plain_point(out);
        if (digits == 9 || (fsio_parse_double(out, strlen(out), &back) && (float)back == v)) return;
    }
}

mnp_status buf_fixed(buf *b, double v, int decimals) {
    char text[400]; /* the largest double has 309 digits before the point */
    if (!isfinite(v)) return buf_double(b, v);
    snprintf(text, sizeof text, "%.*f", decimals < 0 ? 0 : decimals > 17 ? 17 : decimals, v);
    plain_point(text);
    return buf_text(b, text);
}

size_t fsio_utf8_len(const char *text, size_t bytes) {
    const unsigned char *s = (const unsigned char *)text;
    if (bytes == 0) return 0;
    if (s[0] < 0x80) return 1;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || bytes < n) return 0;
    /* The second byte also excludes overlong forms, surrogates and values past U+10FFFF. */
    unsigned char low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
    if (s[1] < low || s[1] > high) return 0;
    for (size_t i = 2; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    return n;
}

/* ---- files ----------------------------------------------------------------------------------- */

enum { WRITE_BLOCK = 1 << 16, READ_BLOCK = 1 << 16, TEMP_NAMES = 100 };

static const char *remedy(int err) {
    static const struct {
        int err;
        const char *text;
    } table[] = {
        {ENOSPC, " (the disk is full: free some space or write elsewhere)"},
        {EDQUOT, " (your disk quota is used up: free some space or write elsewhere)"},
        {EFBIG, " (larger than the file system or ulimit -f allows)"},
        {EACCES, " (check the permissions of the file and its directory)"},
        {EROFS, " (the file system is read-only: write elsewhere)"},
        {ENOENT, " (check the spelling; directories are not created)"},
        {ENOTDIR, " (a part of the path is a file, not a directory)"},
        {EISDIR, " (name a file, not a directory)"},
        {ENAMETOOLONG, " (choose a shorter name)"},
        {EBADF, " (it is closed, or not open for writing)"},
        {EPIPE, " (its reader has gone)"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].err == err) return table[i].text;
    return "";
}

mnp_status fsio_error(env *e, const char *name, const char *verb, int err) {
    bool reading = err == ENOENT && strcmp(verb, "open") == 0;
    return env_fail(e, MNP_EIO, "%s: cannot %s: %s%s", name, verb, strerror(err),
                    reading ? " (check the spelling)" : remedy(err));
}

/* Reads to the end; the length a file claims is only a first guess (pipes and /proc claim 0). */
static mnp_status read_all(env *e, const char *path, int fd, size_t guess, size_t limit,
                           char **data, size_t *bytes) {
    size_t cap = guess + 2, len = 0; /* one to see the end of the file, one for the NUL */
    *data = env_alloc(e, cap, 1, path);
    if (!*data) return MNP_ENOMEM;
    for (;;) {
        ssize_t got = read(fd, *data + len, cap - 1 - len);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fsio_error(e, path, "read", errno);
        if (got == 0) break;
        len += (size_t)got;
        if (len > limit)
            return env_fail(e, MNP_EFORMAT, "%s: larger than the %zu bytes allowed here", path,
                            limit);
        if (len < cap - 1) continue;
        char *more = env_grow(e, *data, cap, cap * 2, 1, path);
        if (!more) return MNP_ENOMEM;
        *data = more;
        cap *= 2;
    }
    (*data)[len] = '\0';
    *bytes = len;
    return MNP_OK;
}

mnp_status fsio_read(env *e, const char *path, size_t limit, char **data, size_t *bytes) {
    *data = NULL;
    *bytes = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fsio_error(e, path, "open", errno);
    struct stat st;
    mnp_status status;
    if (fstat(fd, &st) != 0)
        status = fsio_error(e, path, "read", errno);
    else if (S_ISDIR(st.st_mode))
        status = fsio_error(e, path, "read", EISDIR);
    else if (S_ISREG(st.st_mode) && (uintmax_t)st.st_size > limit)
        status = env_fail(e, MNP_EFORMAT, "%s: %jd bytes, more than the %zu allowed here", path,
                          (intmax_t)st.st_size, limit);
    else
        status = read_all(e, path, fd, S_ISREG(st.st_mode) ? (size_t)st.st_size : READ_BLOCK, limit,
                          data, bytes);
    close(fd);
    if (status != MNP_OK) {
        env_free(e, *data);
        *data = NULL;
    }
    return status;
}

mnp_status fsio_read_head(env *e, const char *path, void *head, size_t want, size_t *got,
                          size_t *bytes) {
    struct stat st;
    *got = *bytes = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fsio_error(e, path, "open", errno);
    mnp_status status = fstat(fd, &st) == 0 ? MNP_OK : fsio_error(e, path, "read", errno);
    for (ssize_t more = 1; status == MNP_OK && more != 0 && *got < want;) {
        more = read(fd, (char *)head + *got, want - *got);
        if (more < 0 && errno == EINTR) continue;
        if (more < 0)
            status = fsio_error(e, path, "read", errno);
        else
            *got += (size_t)more;
    }
    close(fd);
    if (status == MNP_OK) *bytes = (size_t)st.st_size;
    return status;
}

static long io_write(env *e, int fd, const void *data, size_t bytes) {
    return e->io.write ? e->io.write(e->io.user, fd, data, bytes) : write(fd, data, bytes);
}

static int io_fsync(env *e, int fd) {
    int rc = e->io.fsync ? e->io.fsync(e->io.user, fd) : fsync(fd);
    return rc != 0 && errno == EINVAL ? 0 : rc; /* a file system that has no fsync */
}

static int io_rename(env *e, const char *from, const char *to) {
    return e->io.rename ? e->io.rename(e->io.user, from, to) : rename(from, to);
}

/* Frees everything and removes the temporary unless it was renamed away. */
static void finish(fsio_writer *w) {
    if (w->fd >= 0) close(w->fd);
    if (w->temp) unlink(w->temp);
    env_free(w->e, w->temp);
    env_free(w->e, w->path);
    env_free(w->e, w->name);
    env_free(w->e, w->block);
    *w = (fsio_writer){.e = w->e, .fd = -1, .status = w->status};
}

/* The name is new (O_EXCL), so a left-over of a killed process or another thread that writes the
 * same file is never touched: the next free number is taken. */
static mnp_status open_temp(fsio_writer *w, mode_t mode) {
    size_t room = strlen(w->path) + 48;
    char *temp = env_alloc(w->e, room, 1, "a file name");
    if (!temp) return MNP_ENOMEM;
    for (int i = 0; i < TEMP_NAMES && w->fd < 0; i++) {
        int used = snprintf(temp, room, "%s.tmp-%ld", w->path, (long)getpid());
        if (i) snprintf(temp + used, room - (size_t)used, "-%d", i);
        w->fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (w->fd < 0 && errno != EEXIST) break;
    }
    if (w->fd < 0) {
        int err = errno;
        env_free(w->e, temp);
        return fsio_error(w->e, w->name, "write", err);
    }
    w->temp = temp;
    return MNP_OK;
}

/* The descriptor a name such as /dev/stdout stands for, or -1. What it leads to may be a regular
 * file, but the name is never to be renamed over. */
static int named_descriptor(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
        const char *digits = path + strlen(folders[k]);
        if (strncmp(path, folders[k], strlen(folders[k])) == 0 && *digits >= '0' && *digits <= '9')
            return atoi(digits);
    }
    return -1;
}

mnp_status fsio_begin(env *e, const char *path, fsio_writer *w) {
    *w = (fsio_writer){.e = e, .fd = -1};
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode)) return w->status = fsio_error(e, path, "write", EISDIR);
    char real[PATH_MAX];
    int named = named_descriptor(path);
    bool file = named < 0 && (!exists || S_ISREG(st.st_mode));
    mnp_status status = MNP_OK;
    w->name = env_strdup(e, path);
    w->path = env_strdup(e, exists && file && realpath(path, real) ? real : path);
    w->block = env_alloc(e, WRITE_BLOCK, 1, "a write buffer");
    if (!w->name || !w->path || !w->block) {
        status = MNP_ENOMEM;
    } else if (file) {
        mode_t mode = exists ? st.st_mode & 0777 : 0666;
        status = open_temp(w, mode);
        /* The umask does not apply to a mode that is kept. File systems without modes say no here,
         * which does no harm. */
        if (status == MNP_OK && exists) (void)!fchmod(w->fd, mode);
    } else {
        w->fd = named >= 0 ? fcntl(named, F_DUPFD_CLOEXEC, 3) : open(path, O_WRONLY | O_CLOEXEC);
        if (w->fd < 0) status = fsio_error(e, path, "write", errno);
    }
    w->status = status;
    if (status != MNP_OK) finish(w);
    return status;
}

static mnp_status write_through(fsio_writer *w, const char *data, size_t bytes) {
    while (bytes > 0) {
        long put = io_write(w->e, w->fd, data, bytes);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0)
            return w->status = fsio_error(w->e, w->name, "write", put < 0 ? errno : ENOSPC);
        data += put;
        bytes -= (size_t)put;
    }
    return MNP_OK;
}

static mnp_status flush(fsio_writer *w) {
    size_t fill = w->fill;
    w->fill = 0;
    return write_through(w, w->block, fill);
}

mnp_status fsio_append(fsio_writer *w, const void *data, size_t bytes) {
    if (w->status != MNP_OK) return w->status;
    if (bytes > WRITE_BLOCK - w->fill) MNP_TRY(flush(w));
    if (bytes >= WRITE_BLOCK) return write_through(w, data, bytes);
    if (bytes) memcpy(w->block + w->fill, data, bytes);
    w->fill += bytes;
    return MNP_OK;
}

/* A rename is on disk only when the directory is. `temp` lies in that directory; its text is cut.
 */
static mnp_status sync_directory(fsio_writer *w, char *temp) {
    char *slash = strrchr(temp, '/');
    if (!slash)
        strcpy(temp, ".");
    else
        slash[slash == temp] = '\0'; /* keeps the "/" of the root */
    int fd = open(temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return MNP_OK; /* a directory we may write but not read cannot be synced */
    int rc = io_fsync(w->e, fd), err = errno;
    close(fd);
    if (rc == 0) return MNP_OK;
    return env_fail(w->e, MNP_EIO, "%s: written, but its directory cannot be synced: %s", w->name,
                    strerror(err));
}

static mnp_status put_in_place(fsio_writer *w) {
    MNP_TRY(flush(w));
    if (w->temp && io_fsync(w->e, w->fd) != 0) return fsio_error(w->e, w->name, "write", errno);
    int rc = close(w->fd);
    w->fd = -1;
    if (rc != 0) return fsio_error(w->e, w->name, "write", errno);
    if (!w->temp) return MNP_OK;
    if (io_rename(w->e, w->temp, w->path) != 0) return fsio_error(w->e, w->name, "replace", errno);
    char *temp = w->temp;
    w->temp = NULL; /* nothing to unlink any more */
    mnp_status status = sync_directory(w, temp);
    env_free(w->e, temp);
    return status;
}

mnp_status fsio_commit(fsio_writer *w) {
    if (w->status == MNP_OK) w->status = put_in_place(w);
    finish(w);
    return w->status;
}

void fsio_abort(fsio_writer *w) {
    finish(w);
}

mnp_status fsio_check(env *e, const char *path) {
    struct stat st;
    int named = named_descriptor(path);
    if (named >= 0) {
        int flags = fcntl(named, F_GETFL);
        bool open = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
        return open ? MNP_OK : fsio_error(e, path, "write", EBADF);
    }
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return access(path, W_OK) == 0 ? MNP_OK : fsio_error(e, path, "write", errno);
    fsio_writer w;
    MNP_TRY(fsio_begin(e, path, &w));
    fsio_abort(&w);
    return MNP_OK;
}

mnp_status fsio_write(env *e, const char *path, const void *data, size_t bytes) {
    fsio_writer w;
    MNP_TRY(fsio_begin(e, path, &w));
    fsio_append(&w, data, bytes); /* a failure sticks to the writer and comes out of commit */
    return fsio_commit(&w);
}

/* ---- what killed processes left -------------------------------------------------------------- */

/* "<name>.tmp-<pid>" or "<name>.tmp-<pid>-<number>", as open_temp() makes them; any name for NULL.
 */
static bool is_temporary(const char *file, const char *name) {
    const char *mark = strstr(file, ".tmp-"), *next;
    while (mark && (next = strstr(mark + 1, ".tmp-"))) mark = next;
    if (!mark || mark == file) return false;
    size_t length = (size_t)(mark - file);
    if (name && (strlen(name) != length || strncmp(file, name, length) != 0)) return false;
    const char *at = mark + strlen(".tmp-");
    size_t digits = strspn(at, "0123456789");
    if (digits == 0) return false;
    at += digits;
    if (*at == '-' && at[1]) at += 1 + strspn(at + 1, "0123456789");
    return *at == '\0';
}

static void sweep(const char *folder, const char *name) {
    DIR *d = opendir(folder);
    const struct dirent *entry;
    struct stat st;
    while (d && (entry = readdir(d)))
        if (is_temporary(entry->d_name, name) &&
            fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            unlinkat(dirfd(d), entry->d_name, 0);
    if (d) closedir(d);
}

void fsio_sweep_folder(const char *folder) {
    sweep(folder, NULL);
}

void fsio_sweep(const char *path) {
    char real[PATH_MAX]; /* temporaries lie beside the target of a link */
    if (!realpath(path, real)) {
        if (strlen(path) >= sizeof real) return;
        strcpy(real, path);
    }
    char *slash = strrchr(real, '/');
    if (!slash) {
        sweep(".", real);
        return;
    }
    *slash = '\0';
    sweep(slash == real ? "/" : real, slash + 1);
}
