/* signal.h: no signals. See pthread.h beside it. */
#ifndef MNP_WASI_SIGNAL_H
#define MNP_WASI_SIGNAL_H

enum { SIG_SETMASK };
typedef struct mnp_wasi_signals {
    char none;
} mnp_wasi_signals;
#define sigset_t mnp_wasi_signals /* newer C libraries name it in sys/types.h */

static inline int sigfillset(sigset_t *set) {
    set->none = 1;
    return 0;
}
static inline int pthread_sigmask(int how, const sigset_t *set, sigset_t *before) {
    (void)how, (void)set;
    if (before) before->none = 1;
    return 0;
}

#endif
