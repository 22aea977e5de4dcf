/* lock.c: see lock.h. Locks of fcntl(), since those of flock() do not reach other machines. They
 * belong to the process: nothing else here opens the file, whose closing would end them. */
#include "cli/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

typedef enum outcome { TAKEN, HELD, GONE, NO_LOCKS } outcome;

/* `holder`: the process that has it, or 0 for one on another machine. */
static outcome try_lock(int fd, const char *path, pid_t *holder) {
    struct flock want = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat ours, there;
    if (fcntl(fd, F_SETLK, &want) == 0) /* its holder may have removed the file before it let go */
        return fstat(fd, &ours) == 0 && stat(path, &there) == 0 && ours.st_ino == there.st_ino &&
                       ours.st_dev == there.st_dev
                   ? TAKEN
                   : GONE;
    if (errno != EACCES && errno != EAGAIN) return NO_LOCKS;
    struct flock has = want;
    *holder = 0;
    if (fcntl(fd, F_GETLK, &has) == 0 && has.l_type == F_UNLCK) return GONE;
    if (has.l_pid > 0) *holder = has.l_pid;
    return HELD;
}

static int refuse(struct cli *c, const char *output, pid_t holder) {
    char who[64] = "another process";
    if (holder > 0) snprintf(who, sizeof who, "process %ld", (long)holder);
    return cli_fail(c, EXIT_FAILED,
                    "%s is being written by another run (%s): wait for its end, or give another "
                    "--out",
                    output, who);
}

/* Beside the file itself, whatever link leads to it. False: a device or a pipe, which several may
 * write. */
static bool lock_path(const char *output, char path[LOCK_PATH]) {
    struct stat st;
    char real[PATH_MAX];
    bool there = stat(output, &st) == 0;
    if (there && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return false;
    snprintf(path, LOCK_PATH, "%.4096s%s", realpath(output, real) ? real : output,
             there && S_ISDIR(st.st_mode) ? "/.lock" : ".lock");
    return true;
}

int lock_take(out_lock *l, struct cli *c, const char *output) {
    *l = (out_lock){.fd = -1};
    pid_t holder = 0;
    outcome got = GONE;
    char path[LOCK_PATH];
    if (c->rank > 0 || !lock_path(output, path)) return 0;
    while (got == GONE) {
        if (l->fd >= 0) close(l->fd);
        l->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (l->fd < 0)
            return cli_fail(c, EXIT_FAILED, "%s: cannot write there: %s", output, strerror(errno));
        got = try_lock(l->fd, path, &holder);
    }
    if (got == TAKEN) {
        memcpy(l->path, path, sizeof path);
        return 0;
    }
    close(l->fd);
    l->fd = -1;
    if (got == HELD) return refuse(c, output, holder);
    unlink(path);
    cli_say(c, "%s: this file system has no locks: see to it that no other run writes there",
            output);
    return 0;
}

bool lock_held(const out_lock *l) {
    return l->path[0] != '\0';
}

void lock_release(out_lock *l) {
    if (!lock_held(l)) return;
    unlink(l->path); /* while it is still ours */
    close(l->fd);
    *l = (out_lock){.fd = -1};
}
