/* pthread.h: threads where there are none. Only the WebAssembly build (make wasm) has this folder
 * on its path: the headers in it stand for what WASI lacks, so that the library is compiled as it
 * is. With one thread a lock is always free, and a pool of one starts nobody. */
#ifndef MNP_WASI_PTHREAD_H
#define MNP_WASI_PTHREAD_H

#include <errno.h>
#include <stddef.h>

#define pthread_t       mnp_wasi_thread /* newer C libraries name these in sys/types.h */
#define pthread_mutex_t mnp_wasi_mutex
#define pthread_cond_t  mnp_wasi_cond
typedef int pthread_t;
typedef struct pthread_mutex_t {
    char free;
} pthread_mutex_t;
typedef struct pthread_cond_t {
    char nobody;
} pthread_cond_t;

static inline int pthread_mutex_init(pthread_mutex_t *m, const void *attributes) {
    (void)attributes, m->free = 1;
    return 0;
}
static inline int pthread_mutex_destroy(pthread_mutex_t *m) {
    (void)m;
    return 0;
}
static inline int pthread_mutex_lock(pthread_mutex_t *m) {
    (void)m;
    return 0;
}
static inline int pthread_mutex_unlock(pthread_mutex_t *m) {
    (void)m;
    return 0;
}

static inline int pthread_cond_init(pthread_cond_t *c, const void *attributes) {
    (void)attributes, c->nobody = 1;
    return 0;
}
static inline int pthread_cond_destroy(pthread_cond_t *c) {
    (void)c;
    return 0;
}
static inline int pthread_cond_signal(pthread_cond_t *c) {
    (void)c;
    return 0;
}
static inline int pthread_cond_broadcast(pthread_cond_t *c) {
    (void)c;
    return 0;
}
/* Nobody is there to wake this thread. */
static inline int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m) {
    (void)c, (void)m;
    __builtin_trap();
}

static inline int pthread_create(pthread_t *thread, const void *attributes, void *(*body)(void *),
                                 void *arg) {
    (void)thread, (void)attributes, (void)body, (void)arg;
    return ENOTSUP;
}
static inline int pthread_join(pthread_t thread, void **result) {
    (void)thread, (void)result;
    return ENOTSUP;
}

#endif
