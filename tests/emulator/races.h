/* races.h: who may have seen what, for the thread sanitizer (make SAN=thread emulator). Each
 * emulated thread is a fibre of the sanitizer; they are ordered by what orders threads on a GPU and
 * by nothing else: barriers of a block or of some of its warps, __syncwarp, arrivals of copies, and
 * ldmatrix, whose reads are over for all lanes when it returns. Shuffles, votes and products of a
 * warp order no memory. So two accesses to one place, one of them
 * a write, without one of these between them are reported with both places of the source, however
 * the emulator happened to run them. Blocks and kernels run one after the other: races between
 * blocks are not seen.
 *
 * What runs by itself is a read or a write of the thread that asked for it, when it asks and again
 * when it waits: copies by threads, copies out of shared memory, operands of a group's products. A
 * copy into shared memory belongs to who asked and then to whoever waits first. Without the
 * sanitizer all of this is empty. */
#ifndef MNP_EMULATOR_RACES_H
#define MNP_EMULATOR_RACES_H

#include <stddef.h>

#ifdef EMULATED_RACES
#include <sanitizer/tsan_interface.h>
extern "C" {
void __tsan_read_range(void *at, unsigned long bytes);
void __tsan_write_range(void *at, unsigned long bytes);
}
static inline void races_read(const void *at, size_t bytes) {
    __tsan_read_range((void *)at, bytes);
}
static inline void races_write(void *at, size_t bytes) {
    __tsan_write_range(at, bytes);
}
/* What this thread did before releases a tag; who acquires it comes after. */
static inline void races_release(void *tag) {
    __tsan_release(tag);
}
static inline void races_acquire(void *tag) {
    __tsan_acquire(tag);
}
static inline void *races_thread(void) {
    return __tsan_create_fiber(0);
}
static inline void *races_host(void) {
    return __tsan_get_current_fiber();
}
/* Right before the stack changes. */
static inline void races_switch(void *to) {
    __tsan_switch_to_fiber(to, __tsan_switch_to_fiber_no_sync);
}
#else
static inline void races_read(const void *, size_t) {}
static inline void races_write(void *, size_t) {}
static inline void races_release(void *) {}
static inline void races_acquire(void *) {}
static inline void *races_thread(void) {
    return nullptr;
}
static inline void *races_host(void) {
    return nullptr;
}
static inline void races_switch(void *) {}
#endif

#endif
