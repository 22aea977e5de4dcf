/* env.h: what a library function may use of the outside world: memory, file writes, a log, a
 * question "shall I stop?", and a place for the text of the last error. An env is passed down
 * explicitly; there are no globals. It is used by one thread at a time. */
#ifndef MNP_BASE_ENV_H
#define MNP_BASE_ENV_H

#include <stdarg.h>
#include <stdio.h>

#include "mnp.h"

enum { ENV_ERROR_MAX = 1024, ENV_ALIGN = 64 };

/* The few operating-system calls through which files are written, so that a test can make the
 * n-th one fail. NULL members mean the real call. All return 0 or a count, or -1 with errno. */
typedef struct env_io {
    long (*write)(void *user, int fd, const void *buf, size_t bytes);
    int (*fsync)(void *user, int fd);
    int (*rename)(void *user, const char *from, const char *to);
    void *user;
} env_io;

typedef struct env {
    mnp_allocator allocator;
    env_io io;
    mnp_log_fn log;
    void *log_user;
    mnp_cancel_fn cancel;
    void *cancel_user;
    struct comm *comm; /* the other processes of the job (comm/comm.h); NULL: there are none */
    char error[ENV_ERROR_MAX];
} env;

/* Fills every field with the defaults (C library memory, no log, never cancel). */
void env_init(env *e);

/* 64-byte aligned memory for count elements of `size` bytes, zeroed. Overflow-checked.
 * NULL on failure, with the error text set to say what for ("12.3 MB for the plan arena"). */
void *env_alloc(env *e, size_t count, size_t size, const char *what);
void env_free(env *e, void *ptr); /* accepts NULL */

/* Grows `ptr` from old_count to new_count elements, keeping the contents and zeroing the rest; on
 * failure the old block stays valid and NULL is returned. */
void *env_grow(env *e, void *ptr, size_t old_count, size_t new_count, size_t size,
               const char *what);
char *env_strdup(env *e, const char *s);

/* Record the text of an error and return its code: return env_fail(e, MNP_EINVAL, "..."). The texts
 * of these and of env_log are one line: control characters in them, which come from names and from
 * files, are escaped (text_plain). */
mnp_status env_fail(env *e, mnp_status code, const char *fmt, ...) MNP_PRINTF(3, 4);
/* Put words in front of the present error text: "while reading m.safetensors: <text>". */
mnp_status env_context(env *e, mnp_status code, const char *fmt, ...) MNP_PRINTF(3, 4);

void env_log(env *e, mnp_log_level level, const char *fmt, ...) MNP_PRINTF(3, 4);
bool env_cancelled(env *e);

/* Leave with the status of a call that failed. */
#define MNP_TRY(call)                                                                              \
    do {                                                                                           \
        mnp_status try_status_ = (call);                                                           \
        if (try_status_ != MNP_OK) return try_status_;                                             \
    } while (0)

/* The same in a function that cleans up at `done:` and returns `status`. */
#define MNP_TRY_DONE(call)                                                                         \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != MNP_OK) goto done;                                                           \
    } while (0)

#endif
