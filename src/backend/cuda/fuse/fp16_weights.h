/* fp16_weights.h: a second copy of all weights on the device, in fp16, for fused parts in tf32 and
 * bf16. It halves the bytes that a part loads, and loses nothing: a product in tf32 reads ten bits
 * of a number's fraction, as many as fp16 has. Two weights share a word. The copy is made when
 * weights are sent, and Adam writes it together with the weights. */
#ifndef MNP_CUDA_FUSE_FP16_WEIGHTS_H
#define MNP_CUDA_FUSE_FP16_WEIGHTS_H

#include "backend/cuda/program/program.h"

/* Gives the operands of a finished program that are such weights an address in DEV_STORE_FP16, and
 * fills fp16_at: where each group of four weights lies there. `words`: of all weights. The weights
 * of large layers lie in blocks of 32 rows, each in col8 layout (paper/col8.cuh): a block is one
 * piece of memory, and loads of eight rows by the tensor cores meet all banks. Number (r, c) of a
 * matrix with C columns is the fp16 number ((r / 32 * (C / 8) + c / 8) * 32 + r % 32) * 8 + c % 8.
 * The output of the first layer is handed to the sets as fp16 too, where nothing else reads it. */
mnp_status fp16_weights_place(env *e, int64_t words, cuda_program *program);

#endif
