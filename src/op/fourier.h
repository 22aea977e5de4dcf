/* fourier.h: operands of the fourier instruction, for backends. */
#ifndef MNP_OP_FOURIER_H
#define MNP_OP_FOURIER_H

enum { FOURIER_X, FOURIER_FREQ }; /* in                                         */
enum { FOURIER_Y };               /* out                                        */
enum { FOURIER_APPEND };          /* i: 1 when the inputs follow the features   */

#endif
