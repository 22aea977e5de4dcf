/* halves.h: weights that parts read as IEEE halves. In tf32 and bf16 the device has a second copy
 * of all weights as halves (ten digits, as many as a product in tf32 reads), two to a word: made
 * when weights are sent, written by adam together with them. A part that does little but read
 * weights asks for half of the bytes. */
#ifndef MNP_CUDA_HALVES_H
#define MNP_CUDA_HALVES_H

#include "backend/cuda/program.h"

/* Gives those operands of a finished program their places in DEV_STORE_HALVES. */
void halves_place(cuda_program *program);

#endif
