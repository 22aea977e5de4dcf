/* target.h: the two sets of kernels, made from the same sources, and what each may use.
 *
 *             full                                   general (-DMNP_KERNELS_GENERAL)
 *   GPUs      compute capability 9.0                 8.0 and later
 *   code      all of it                              ops alone, no parts of paper/
 *   memory    227 KB of shared memory a block        99 KB, which all of these GPUs have
 *   machine   copies by rows, products by groups of  copies of 16 bytes by threads, products of a
 *             four warps, kernels that begin before  warp, one kernel after the other
 *             the one before has ended
 *
 * No other file asks which set it is compiled for: they ask what there is. What depends on the room
 * in shared memory follows from TARGET_SHARED by way of WORK_WORDS (frame.cuh). */
#ifndef MNP_CUDA_DEVICE_TARGET_H
#define MNP_CUDA_DEVICE_TARGET_H

#ifdef MNP_KERNELS_GENERAL
#define TARGET_PARTS 0 /* are there parts of paper/ and what they need of the machine? */
enum { TARGET_SHARED = 99 * 1024 }; /* bytes of a block */
/* Both sets are in one object, so what is compiled twice has two names. Those of the full set stay
 * as they are: they decide the layout of its code (src/backend/cuda/README.md). */
#define TARGET_BEGIN namespace general {
#define TARGET_END   }
#else
#define TARGET_PARTS 1
enum { TARGET_SHARED = 227 * 1024 };
#define TARGET_BEGIN
#define TARGET_END
#endif

#endif
