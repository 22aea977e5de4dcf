/* cuda_ops.c: see cuda_ops.h. */
#include "backend/cuda/program/cuda_ops.h"

#include "op/op.h"

enum { NOT_THERE, BLOCK, TEAM }; /* who runs an op */

static const uint8_t who[OP_COUNT] = {
#define CUDA_OP(by, name, call) [OP_##name] = by,
#include "backend/cuda/cuda_ops.def"
#undef CUDA_OP
};

bool cuda_has_op(int32_t op) {
    return who[op] != NOT_THERE;
}

bool cuda_op_for_teams(int32_t op) {
    return who[op] == TEAM;
}
