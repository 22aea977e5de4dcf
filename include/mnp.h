/* mnp.h: Markov Neural Processes in C. The only public header of libmnp.
 *
 * Anything that is not in this file is private. Conventions that hold for every call:
 *
 *   - a call that can fail returns mnp_status; its outputs come last, and on failure they are NULL
 *     (or untouched) and nothing leaks;
 *   - the text of the last failure belongs to the context: mnp_last_error(ctx);
 *   - inputs are const and copied unless the name ends in _borrow;
 *   - a handle is used by one thread at a time. A model is read-only while it predicts, so many
 *     predictors, each with its own context, may share one model in parallel threads;
 *   - every _destroy accepts NULL;
 *   - the library never prints, exits, reads the environment or keeps global state.
 */
#ifndef MNP_H
#define MNP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MNP_VERSION_MAJOR 0
#define MNP_VERSION_MINOR 1
#define MNP_VERSION_PATCH 0
#define MNP_VERSION "0.1.0"

#if defined(__GNUC__)
#define MNP_API __attribute__((visibility("default")))
#define MNP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define MNP_API
#define MNP_PRINTF(fmt, args)
#endif

/* ---- status ---------------------------------------------------------------------------------- */

typedef enum mnp_status {
    MNP_OK = 0,
    MNP_EINVAL,       /* an argument or option is wrong                         */
    MNP_ENOMEM,       /* memory could not be had                                */
    MNP_EIO,          /* the operating system refused a read or a write         */
    MNP_EFORMAT,      /* a file is not what it claims to be                     */
    MNP_EUNSUPPORTED, /* this build or this device cannot do it                 */
    MNP_EDEVICE,      /* the accelerator failed                                 */
    MNP_ENUMERIC,     /* a NaN or an infinity appeared where none may           */
    MNP_ECANCELLED    /* the cancel callback said stop                          */
} mnp_status;

MNP_API const char *mnp_status_name(mnp_status s); /* "invalid argument", ... never NULL */
MNP_API const char *mnp_version(void);

/* ---- context --------------------------------------------------------------------------------- */

typedef struct mnp_ctx mnp_ctx;

/* Replaces malloc and free. `alloc` returns memory aligned to `align` (a power of two) or NULL. */
typedef struct mnp_allocator {
    void *(*alloc)(void *user, size_t bytes, size_t align);
    void (*free)(void *user, void *ptr);
    void *user;
} mnp_allocator;

typedef enum mnp_log_level { MNP_LOG_DEBUG, MNP_LOG_INFO, MNP_LOG_WARN } mnp_log_level;
typedef void (*mnp_log_fn)(void *user, mnp_log_level level, const char *text);
/* Asked between pieces of long work; a true answer ends it with MNP_ECANCELLED. */
typedef bool (*mnp_cancel_fn)(void *user);

typedef struct mnp_ctx_opts {
    size_t size;             /* sizeof(mnp_ctx_opts); zero in every other field means the default */
    int threads;             /* worker threads; 0 = all cores                                     */
    mnp_allocator allocator; /* alloc == NULL: the C library's                                    */
    mnp_log_fn log;
    void *log_user;
    mnp_cancel_fn cancel;
    void *cancel_user;
} mnp_ctx_opts;

MNP_API mnp_status mnp_ctx_create(const mnp_ctx_opts *opts, mnp_ctx **out);
MNP_API void mnp_ctx_destroy(mnp_ctx *ctx);
/* Owned by ctx, valid until the next call that uses it; "" when nothing failed yet. */
MNP_API const char *mnp_last_error(const mnp_ctx *ctx);

#ifdef __cplusplus
}
#endif
#endif
