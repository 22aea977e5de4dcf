/* draw.c: one function of the resident data set, its points in random order, context first.
 *
 *   training:   position p = step B + item of an endless list that holds every function once per
 *               epoch; the split comes from the stream (seed, RNG_SPLIT, step, item)
 *   evaluation: function first_function + item; the stream (seed, RNG_SPLIT_EVAL, 0, function)
 *
 * B is the number of functions of the run. All chunks of a function get the same draw. Nothing
 * depends on threads, on padding, or on how the plan lays out memory. Noise on row i comes from
 * (seed, RNG_NOISE, step and item, or function, i), the signs of mirrored inputs from
 * (seed, RNG_MIRROR, step and item). Sets f->n, f->k and f->m for the instructions
 * that follow. io->data->x_dim must be the x_dim of the recording, and in evaluation
 * first_function + item must exist: whoever binds the data checks it. */
#include "op/draw.h"

#include "op/mirror.h"
#include "op/op.h"
#include "op/permute.h"

void op_draw(graph *g, const draw_opts *o, val *x, val *y) {
    *x = *y = VAL_NONE;
    if (!graph_ok(g)) return;
    if (o->lo < 0 || o->hi < o->lo || o->x_dim < 1 || o->max_points < 0 || o->few_targets < 0 ||
        o->seen < 0 || !(o->p_empty >= 0 && o->p_empty <= 1)) {
        graph_fail(g, "draw: context sizes %d to %d, %d inputs, empty with probability %g", o->lo,
                   o->hi, o->x_dim, o->p_empty);
        return;
    }
    if (!(o->p_region >= 0 && o->p_region <= 1) || (o->p_region > 0 && o->x_dim != 2) ||
        !(o->noise >= 0)) {
        graph_fail(g, "draw: a region with probability %g of %d inputs, noise %g", o->p_region,
                   o->x_dim, o->noise);
        return;
    }
    if (!(o->prefix >= 0 && o->prefix <= 1) || (o->prefix > 0 && o->p_region > 0) || o->time < 0 ||
        o->time >= o->x_dim) {
        graph_fail(g, "draw: prefixes by input %d with probability %g, regions with %g", o->time,
                   o->prefix, o->p_region);
        return;
    }
    if (o->mirror < 0 || o->mirror > o->x_dim) {
        graph_fail(g, "draw: %d of %d inputs mirrored", o->mirror, o->x_dim);
        return;
    }
    val made_x = graph_matrix(g, "x", EXT_N, 0, o->x_dim, false);
    val made_y = graph_scalars(g, "y", EXT_N, 0, false);
    instr *ins = graph_append(g, OP_draw);
    if (!ins) return;
    ins->out[DRAW_X] = *x = made_x;
    ins->out[DRAW_Y] = *y = made_y;
    ins->i[DRAW_TRAIN] = o->train;
    ins->i[DRAW_LO] = o->lo, ins->i[DRAW_HI] = o->hi;
    ins->i[DRAW_MAX] = o->max_points, ins->i[DRAW_FEW] = o->few_targets;
    ins->i[DRAW_MIRROR] = o->train ? o->mirror : 0;
    ins->i[DRAW_SEEN] = o->seen, ins->i[DRAW_TIME] = o->time;
    ins->f[DRAW_P_EMPTY] = o->p_empty;
    ins->f[DRAW_P_REGION] = o->p_region, ins->f[DRAW_NOISE] = o->noise;
    ins->f[DRAW_PREFIX] = o->train ? o->prefix : 0;
}

static void ref_draw(ref_run *r) {
    /* counted in doubles, twice the memory it takes */
    void *memory = ref_scratch(r, permute_words(r->f->plan->opts.n));
    if (r->failed) return;
    drawn d = permute_draw(r->f, r->ins, memory);
    r->f->n = d.n, r->f->k = d.k, r->f->m = d.m; /* before the outputs: their rows are n */
    const data_view *data = r->f->io->data;
    ref_array x = ref_out(r, DRAW_X), y = ref_out(r, DRAW_Y);
    if (r->failed) return;
    for (int64_t i = 0; i < d.n; i++) {
        int64_t row = d.first_x + d.order[i];
        for (int64_t c = 0; c < x.cols; c++)
            *ref_el(x, 0, i, c) +=
                (double)mirror_input(d.mirrored, (int)c, data->x[row * x.cols + c]);
        y.at[i] += (double)permute_noisy(&d, i, data->y[d.first + d.order[i]]);
    }
}

const op_def op_draw_def = {.name = "draw", .ref = ref_draw};
