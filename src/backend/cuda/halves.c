/* halves.c: see halves.h. */
#include "backend/cuda/halves.h"

typedef struct halves_row {
    int32_t kind, slot; /* a part, and an operand of it that is a weight */
} halves_row;

#define NETWORK(s)                                                                                 \
    {FUSED_LATENT, s + NET_WR}, {FUSED_LATENT, s + NET_WZ}, {FUSED_LATENT, s + NET_W1}, {          \
        FUSED_LATENT, s + NET_W2                                                                   \
    }
#define NETWORK_GRAD(s)                                                                            \
    {FUSED_LATENT_GRAD, s + NETG_WR}, {FUSED_LATENT_GRAD, s + NETG_WZ},                            \
        {FUSED_LATENT_GRAD, s + NETG_W1}, {                                                        \
        FUSED_LATENT_GRAD, s + NETG_W2                                                             \
    }
static const halves_row rows[] = {
    NETWORK(LATENT_MU),          NETWORK(LATENT_SIGMA),       {FUSED_LATENT, LATENT_WF},
    NETWORK_GRAD(LATENTG_MU),    NETWORK_GRAD(LATENTG_SIGMA), {FUSED_LATENT_GRAD, LATENTG_WF},
    {FUSED_FLOW, FLOW_WX},       {FUSED_FLOW, FLOW_W1},       {FUSED_FLOW, FLOW_W2},
    {FUSED_FLOW_GRAD, FLOWG_W1}, {FUSED_FLOW_GRAD, FLOWG_W2}, {FUSED_FIRST, FIRST_W},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* Weights begin at multiples of 16 words, so a half's word has half of the number. */
static bool place_as_half(uint32_t *place) {
    if (*place == FUSED_ABSENT || *place >> FUSED_OFFSET_BITS != DEV_STORE_PARAM) return false;
    *place = fused_place(DEV_STORE_HALVES, (*place - fused_place(DEV_STORE_PARAM, 0)) / 2);
    return true;
}

void halves_place(cuda_program *p) {
    for (int32_t k = 0; k < p->count; k++) {
        dev_instr *ins = &p->code[k];
        for (int32_t j = 0; j < ROWS && ins->math != DEV_FP32; j++)
            if (ins->op == OPCODE_COUNT + rows[j].kind)
                p->reads_halves |= place_as_half(&ins->fused.place[rows[j].slot]);
    }
}
