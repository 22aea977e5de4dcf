/* concat.h: operands of the concat instructions, for backends. */
#ifndef MNP_OP_CONCAT_H
#define MNP_OP_CONCAT_H

enum { CONCAT_A, CONCAT_B };   /* in              */
enum { CONCAT_GA, CONCAT_GB }; /* out of the grad */
/* in[0] of the grad is the gradient of the result; i[0] is where b's columns start. */
enum { CONCAT_SPLIT };

#endif
