/* work.c: see work.h. */
#include "bench/work.h"

#include <string.h>

#include "op/attention.h"
#include "op/grid.h"
#include "op/join.h"
#include "op/linear.h"
#include "op/op.h"

static double extent_rows(const work_counts *c, extent ext, int32_t fixed) {
    return ext == EXT_N ? c->n : ext == EXT_M ? c->m : ext == EXT_K ? c->k : (double)fixed;
}

/* Rows of a value, those of all draws together. */
static double rows_of(const plan *p, const work_counts *c, val v) {
    const value *at = &p->values[v];
    return (at->sampled ? c->samples : 1) * extent_rows(c, at->ext, at->rows);
}

static double product(const plan *p, const work_counts *c, val rows, val w) {
    return 2 * rows_of(p, c, rows) * (double)p->values[w].rows * (double)p->values[w].cols;
}

/* out[from .. to] of the instruction that somebody reads. */
static int outputs(const instr *ins, int from, int to) {
    int count = 0;
    for (int j = from; j <= to; j++) count += ins->out[j] != VAL_NONE;
    return count;
}

/* Two products forward (scores, values), four in reverse. */
static double attention(const plan *p, const work_counts *c, const instr *ins, int products) {
    const value *q = &p->values[ins->in[ATTENTION_QV]], *k = &p->values[ins->in[ATTENTION_KV]];
    const int32_t of_q = ins->i[ATTENTION_QUERIES], of_k = ins->i[ATTENTION_KEYS];
    const double queries = extent_rows(c, of_q == EXT_FIXED ? q->ext : (extent)of_q, q->rows);
    const double keys = extent_rows(c, of_k == EXT_FIXED ? k->ext : (extent)of_k, k->rows);
    return 2 * products * (q->sampled || k->sampled ? c->samples : 1) * queries * keys *
           (double)ins->i[ATTENTION_WIDTH];
}

/* The rank-one term p w, and in reverse those of p and w. */
static double rank_one(const plan *p, const work_counts *c, val rows, int products) {
    return 2 * products * rows_of(p, c, rows) * (double)p->values[rows].cols;
}

/* At every place of the grid two sums over the context; in reverse two more products a pair. */
static double set_conv(const plan *p, const work_counts *c, val grid, int products) {
    return 2 * products * c->m * (double)p->values[grid].rows;
}

static double instr_flop(const plan *p, const work_counts *c, const instr *ins) {
    switch ((op_id)ins->op) {
    case OP_linear:
        return product(p, c, ins->out[LINEAR_Y], ins->in[LINEAR_W]);
    case OP_linear_grad:
        return outputs(ins, LINEAR_GX, LINEAR_GW) *
               product(p, c, ins->in[LINEAR_GRAD_G], ins->in[LINEAR_GRAD_W]);
    case OP_attention:
        return attention(p, c, ins, 2);
    case OP_attention_grad:
        return attention(p, c, ins, 4);
    case OP_join:
        return rank_one(p, c, ins->out[JOIN_Y], ins->in[JOIN_P] != VAL_NONE);
    case OP_join_grad:
        return rank_one(p, c, ins->in[JOIN_GRAD_G],
                        (ins->out[JOIN_GP] != VAL_NONE) + (ins->out[JOIN_GW] != VAL_NONE));
    case OP_set_conv:
        return set_conv(p, c, ins->out[0], 2);
    case OP_set_conv_grad:
        return set_conv(p, c, ins->in[SET_CONV_G], 4);
    case OP_interpolate:
        return rank_one(p, c, ins->out[0], GRID_AROUND);
    case OP_interpolate_grad:
        return rank_one(p, c, ins->in[INTERPOLATE_G], GRID_AROUND);
    default:
        return 0;
    }
}

double work_flop(const plan *p, const work_counts *c) {
    double sum = 0;
    for (int32_t k = 0; k < p->n_function; k++) sum += instr_flop(p, c, &p->instrs[k]);
    return sum;
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static bool is_reverse(const instr *ins) {
    static const char mark[] = "_grad";
    const char *name = op_name(ins->op);
    const size_t length = strlen(name), tail = sizeof mark - 1;
    return length > tail && strcmp(name + length - tail, mark) == 0;
}

static bool reads(const instr *ins, val v) {
    for (int j = 0; j < INSTR_IN; j++)
        if (ins->in[j] == v) return true;
    return false;
}

/* A forward instruction's value: the reverse pass reads it. */
static bool is_kept(const plan *p, int32_t maker, val v) {
    if (v == VAL_NONE || p->values[v].store != STORE_ACT) return false;
    for (int32_t k = maker + 1; k < p->n_function; k++)
        if (is_reverse(&p->instrs[k]) && reads(&p->instrs[k], v)) return true;
    return false;
}

double work_kept(const plan *p, const work_counts *c) {
    double sum = 0;
    for (int32_t k = 0; k < p->n_function; k++) {
        const instr *ins = &p->instrs[k];
        for (int j = 0; j < INSTR_OUT && !is_reverse(ins); j++)
            if (is_kept(p, k, ins->out[j]))
                sum += rows_of(p, c, ins->out[j]) * (double)p->values[ins->out[j]].cols;
    }
    return sum;
}
