/* cuda_ops.c: see cuda_ops.h. */
#include "backend/cuda/program/cuda_ops.h"

#include "op/op.h"

enum { NOT_THERE, BY_BLOCK, BY_TEAMS }; /* who runs an op: a whole block, or a team of it too */

static const uint8_t who[OP_COUNT] = {
    [OP_feed] = BY_BLOCK,
    [OP_emit] = BY_BLOCK,
    [OP_zeros] = BY_BLOCK,
    [OP_fill_one] = BY_BLOCK,
    [OP_draw] = BY_BLOCK,
    [OP_fourier] = BY_BLOCK,
    [OP_linear] = BY_TEAMS,
    [OP_linear_grad] = BY_TEAMS,
    [OP_join] = BY_TEAMS,
    [OP_join_grad] = BY_TEAMS,
    [OP_attention] = BY_BLOCK,
    [OP_attention_grad] = BY_BLOCK,
    [OP_pool] = BY_BLOCK,
    [OP_pool_grad] = BY_BLOCK,
    [OP_layernorm] = BY_BLOCK,
    [OP_layernorm_grad] = BY_BLOCK,
    [OP_stack] = BY_TEAMS,
    [OP_stack_grad] = BY_TEAMS,
    [OP_if_context] = BY_TEAMS,
    [OP_if_context_grad] = BY_TEAMS,
    [OP_add] = BY_TEAMS,
    [OP_add_grad] = BY_TEAMS,
    [OP_scale] = BY_TEAMS,
    [OP_scale_grad] = BY_TEAMS,
    [OP_dot] = BY_BLOCK,
    [OP_dot_grad] = BY_BLOCK,
    [OP_rqs_to_noise] = BY_BLOCK,
    [OP_rqs_to_noise_grad] = BY_BLOCK,
    [OP_rqs_to_data] = BY_BLOCK,
    [OP_rqs_to_data_grad] = BY_BLOCK,
    [OP_affine_to_noise] = BY_BLOCK,
    [OP_affine_to_noise_grad] = BY_BLOCK,
    [OP_affine_to_data] = BY_BLOCK,
    [OP_affine_to_data_grad] = BY_BLOCK,
    [OP_gauss_sample] = BY_TEAMS,
    [OP_gauss_sample_grad] = BY_TEAMS,
    [OP_gauss_kl] = BY_TEAMS,
    [OP_gauss_kl_grad] = BY_TEAMS,
    [OP_gauss_ratio] = BY_BLOCK,
    [OP_gauss_ratio_grad] = BY_BLOCK,
    [OP_normal_logp] = BY_BLOCK,
    [OP_normal_logp_grad] = BY_BLOCK,
    [OP_base_noise] = BY_BLOCK,
    [OP_sum_rows] = BY_BLOCK,
    [OP_sum_rows_grad] = BY_BLOCK,
    [OP_logmeanexp] = BY_BLOCK,
    [OP_logmeanexp_grad] = BY_BLOCK,
    [OP_mean_samples] = BY_TEAMS,
    [OP_mean_samples_grad] = BY_TEAMS,
    [OP_per_point] = BY_TEAMS,
    [OP_per_point_grad] = BY_TEAMS,
    [OP_report] = BY_BLOCK,
};

bool known_op(int32_t op) {
    return who[op] != NOT_THERE;
}

bool known_to_teams(int32_t op) {
    return who[op] == BY_TEAMS;
}
