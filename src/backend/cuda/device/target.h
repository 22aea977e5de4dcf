/* target.h: the sets of kernels, made from the same sources, and what each may use.
 *
 *             full                                   general (-DMNP_KERNELS_GENERAL=32 and =16)
 *   GPUs      compute capability 9.0                 8.0 and later
 *   code      all of it                              ops alone, no parts of paper/
 *   memory    227 KB of shared memory a block        99 KB, which all of these GPUs have
 *   machine   copies by rows, products by groups of  copies of 16 bytes by threads, products of a
 *             four warps, kernels that begin before  warp, one kernel after the other
 *             the one before has ended
 *
 * The general set is two, one for programs in fp32 and one for those in tf32 and bf16, since the
 * driver compiles a set as a whole when a GPU first needs it.
 *
 * No other file asks which set it is compiled for: they ask what there is. What depends on the room
 * in shared memory follows from TARGET_SHARED by way of WORK_WORDS (frame.cuh). */
#ifndef MNP_CUDA_DEVICE_TARGET_H
#define MNP_CUDA_DEVICE_TARGET_H

#ifdef MNP_KERNELS_GENERAL
/* TARGET_PARTS: are there parts of paper/ and what they need of the machine? TARGET_SHARED: bytes
 * of a block. TARGET_FP32, TARGET_16: how products are taken (DEV_FP32; DEV_TF32 and DEV_BF16).
 * TARGET_WIDE: are there wide instructions? In fp32 alone there are none. */
#define TARGET_PARTS 0
#define TARGET_WIDE  (MNP_KERNELS_GENERAL == 16)
enum { TARGET_SHARED = 99 * 1024 };
enum { TARGET_FP32 = MNP_KERNELS_GENERAL == 32, TARGET_16 = MNP_KERNELS_GENERAL == 16 };
/* All sets are in one object, so what is compiled again has another name. Those of the full set
 * stay as they are: they decide the layout of its code (src/backend/cuda/README.md). */
#if MNP_KERNELS_GENERAL == 32
#define TARGET_BEGIN namespace general_fp32 {
#else
#define TARGET_BEGIN namespace general_16 {
#endif
#define TARGET_END }
#else
#define TARGET_PARTS 1
#define TARGET_WIDE  1
enum { TARGET_SHARED = 227 * 1024, TARGET_FP32 = 1, TARGET_16 = 1 };
#define TARGET_BEGIN
#define TARGET_END
#endif

#endif
