/* fp16_weights.c: see fp16_weights.h. */
#include "backend/cuda/fuse/fp16_weights.h"

typedef struct fp16_row {
    int32_t kind, operand; /* a part, and an operand of it that is a weight */
} fp16_row;

#define NETWORK(s)                                                                                 \
    {FUSED_LATENT, s + NET_WR}, {FUSED_LATENT, s + NET_WZ}, {FUSED_LATENT, s + NET_W1}, {          \
        FUSED_LATENT, s + NET_W2                                                                   \
    }
#define NETWORK_GRAD(s)                                                                            \
    {FUSED_LATENT_GRAD, s + NETG_WR}, {FUSED_LATENT_GRAD, s + NETG_WZ},                            \
        {FUSED_LATENT_GRAD, s + NETG_W1}, {                                                        \
        FUSED_LATENT_GRAD, s + NETG_W2                                                             \
    }
static const fp16_row rows[] = {
    NETWORK(LATENT_MU),       NETWORK(LATENT_SIGMA),       {FUSED_LATENT, LATENT_WF},
    NETWORK_GRAD(LATENTG_MU), NETWORK_GRAD(LATENTG_SIGMA), {FUSED_LATENT_GRAD, LATENTG_WF},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* Those that lie in blocks. */
typedef struct fp16_block {
    int32_t kind, operand, rows, cols;
} fp16_block;
_Static_assert(FUSED_FEATURES == 160 && FUSED_ENC_WIDTH == 64 && FUSED_HEADS == 4 &&
                   FUSED_D_R == 64 && FUSED_D_Z == 128 && FUSED_HEAD_HIDDEN == 64 &&
                   FUSED_FLOW_HIDDEN == 128 && FUSED_RAW_LD == 32,
               "shapes below");
static const fp16_block blocks[] = {
    {FUSED_FLOW, FLOW_WX, 160, 128},      {FUSED_FLOW, FLOW_W1, 128, 128},
    {FUSED_FLOW, FLOW_W2, 128, 32},       {FUSED_FLOW_GRAD, FLOWG_W1, 128, 128},
    {FUSED_FLOW_GRAD, FLOWG_W2, 128, 32}, {FUSED_FIRST, FIRST_W, 160, 192},
    {FUSED_SET_GRAD, SETG_W0, 64, 64},    {FUSED_SET_GRAD, SETG_W1, 64, 64},
    {FUSED_SET_GRAD, SETG_WQ, 64, 192},   {FUSED_SET, SET_W0, 64, 64},
    {FUSED_SET, SET_W1, 64, 64},          {FUSED_SET, SET_WQ, 64, 192},
    {FUSED_SET, SET_WKV, 64, 128},        {FUSED_SET, SET_WO, 64, 64},
    {FUSED_SET, SET_WR, 64, 64},          {FUSED_SET_GRAD, SETG_WKV, 64, 128},
    {FUSED_SET_GRAD, SETG_WO, 64, 64},    {FUSED_SET_GRAD, SETG_WR, 64, 64},
};
enum { BLOCKS = sizeof blocks / sizeof *blocks };

/* Weights begin at multiples of 16 words, so a half's word has half of the number. */
static bool read_as_fp16(uint32_t *addr) {
    if (!fused_in(*addr, DEV_STORE_PARAM)) return false;
    *addr = fused_addr(DEV_STORE_FP16, (*addr - fused_addr(DEV_STORE_PARAM, 0)) / 2);
    return true;
}

static void place_in_blocks(const fp16_block *b, int64_t at, int32_t *fp16_at) {
    for (int32_t r = 0; r < b->rows; r++)
        for (int32_t c = 0; c < b->cols; c += 4) {
            const int32_t col8 = r / 32 * (b->cols / 8) + c / 8;
            fp16_at[(at + r * b->cols + c) / 4] =
                (int32_t)(at / 4) + (col8 * 32 + r % 32) * 2 + c % 8 / 4;
        }
}

/* The operand by which a part reads pre; -1: it does not. */
static int32_t pre_operand(const dev_instr *ins) {
    return is_part(ins, FUSED_SET) ? SET_PRE : is_part(ins, FUSED_SET_GRAD) ? SETG_PRE : -1;
}

/* Does an instruction read what begins at an address of the arena as floats? */
static bool reads_floats(const dev_instr *ins, uint32_t addr) {
    if (pre_operand(ins) >= 0)
        return ins->math == DEV_FP32 && ins->fused.addr[pre_operand(ins)] == addr;
    return op_reads(ins, addr);
}

/* pre of a first layer, for all sets that read it. */
static void hand_on_fp16(cuda_program *p, dev_fused *first) {
    const uint32_t addr = first->addr[FIRST_PRE];
    for (int32_t k = 0; k < p->count; k++)
        if (reads_floats(&p->code[k], addr)) return;
    first->addr[FIRST_PREH] = addr;
    for (int32_t k = 0; k < p->count; k++) {
        dev_fused *f = &p->code[k].fused;
        const int32_t operand = pre_operand(&p->code[k]);
        if (operand >= 0 && f->addr[operand] == addr)
            f->addr[operand == SET_PRE ? SET_PREH : SETG_PREH] = addr;
    }
}

mnp_status fp16_weights_place(env *e, int64_t words, cuda_program *p) {
    const int64_t fours = words / 4 + 1;
    p->fp16_at = env_alloc(e, (size_t)fours, sizeof *p->fp16_at, "a program");
    if (!p->fp16_at) return MNP_ENOMEM;
    for (int64_t k = 0; k < fours; k++) p->fp16_at[k] = (int32_t)k;
    for (int32_t k = 0; k < p->count; k++) {
        dev_instr *ins = &p->code[k];
        if (ins->math == DEV_FP32) continue;
        if (is_part(ins, FUSED_FIRST)) hand_on_fp16(p, &ins->fused);
        for (int32_t j = 0; j < ROWS; j++)
            if (ins->op == OPCODE_COUNT + rows[j].kind)
                p->reads_fp16 |= read_as_fp16(&ins->fused.addr[rows[j].operand]);
        for (int32_t j = 0; j < BLOCKS; j++) {
            uint32_t *addr = &ins->fused.addr[blocks[j].operand];
            const int64_t at = *addr - fused_addr(DEV_STORE_PARAM, 0);
            if (ins->op != OPCODE_COUNT + blocks[j].kind || !read_as_fp16(addr)) continue;
            place_in_blocks(&blocks[j], at, p->fp16_at);
            p->reads_fp16 = true;
        }
    }
    return MNP_OK;
}
