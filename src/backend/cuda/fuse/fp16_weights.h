/* fp16_weights.h: weights that parts read as fp16 numbers. In tf32 and bf16 the device has a second
 * copy of all weights as fp16 (ten digits, as many as a product in tf32 reads), two to a word:
 * made when weights are sent, written by adam together with them. A part that does little but read
 * weights asks for half of the bytes. */
#ifndef MNP_CUDA_FUSE_FP16_WEIGHTS_H
#define MNP_CUDA_FUSE_FP16_WEIGHTS_H

#include "backend/cuda/program/program.h"

/* Gives those operands of a finished program, whose weights have so many words, their places in
 * DEV_STORE_FP16, and says where every four weights lie there (fp16_at). Weights of the large
 * layers lie in blocks of 32 rows, in col8 layout of columns, so that a block is one piece of
 * memory and the tensor cores' loads of eight rows meet all banks (paper/col8.cuh): half (r, c) of
 * a matrix with C columns is number ((r / 32 * (C / 8) + c / 8) * 32 + r % 32) * 8 + c % 8. What
 * the first layer makes for the sets is handed on as fp16 too (paper/fused.h), where nobody else
 * reads it.
 */
mnp_status fp16_weights_place(env *e, int64_t words, cuda_program *program);

#endif
