/* lock.h: an output belongs to one process at a time. Two runs that write the same files would take
 * turns in replacing each other's, and one of them would be gone without a word.
 *
 * The lock is one of the kernel's on the file M.safetensors.lock, or .lock in a folder: it ends
 * with its process, however that ends, so a file that a killed process left does not stand in the
 * way. It holds between the machines of a network file system too. */
#ifndef MNP_CLI_LOCK_H
#define MNP_CLI_LOCK_H

#include <stdbool.h>

struct cli;

enum { LOCK_PATH = 4112 };

typedef struct out_lock {
    char path[LOCK_PATH]; /* "": none is held */
    int fd;
} out_lock;

/* `output` is a file or a folder that exists. In a job rank 0 takes it for all. 0, or an exit
 * status after one line. A device needs none, and a file system without locks is told and goes on.
 */
int lock_take(out_lock *l, struct cli *c, const char *output);
bool lock_held(const out_lock *l);
void lock_release(out_lock *l);

#endif
