/* file_split.c: which curves train, which choose the weights and which test; and the units of
 * several outputs, which are those of the curves trained on. */
#include <math.h>

#include "data/file_internal.h"
#include "util/real.h"

/* A table that is read for a model is split as the model's own, where it is that. */
void split_choose(reading *r) {
    const roles_like *like = r->s.like;
    if (!like) return;
    r->own = like->own || (like->hash && like->hash == r->t->hash);
    if (!like->split_too) return;
    r->s.seed = r->own ? like->seed : r->s.seed;
    r->s.holdout = r->own ? like->holdout : -1;
    r->s.test = r->own ? like->test : -1;
}

static int64_t share_of(double share, int64_t count) {
    int64_t n = (int64_t)floor(share * (double)count + 0.5);
    return n < 1 ? 1 : n;
}

/* Which functions are held out is the luck of the seed: the first of a random permutation choose
 * the weights, those after them are the test. */
void split_assign(reading *r) {
    const data_source *s = &r->s;
    if (!(s->holdout > 0) || r->kept < 2) return;
    r->valid = share_of(s->holdout, r->kept);
    if (r->valid > r->kept - 1) r->valid = r->kept - 1;
    if (s->test > 0 && r->kept >= SPLIT_TEST_LEAST) r->test = share_of(s->test, r->kept);
    if (r->test > r->kept - 1 - r->valid) r->test = r->kept - 1 - r->valid;
    rng_perm p =
        rng_perm_make((rng_key){s->seed}, (rng_at){.purpose = RNG_DATA}, (uint64_t)r->kept);
    for (int64_t i = 0; i < r->functions; i++) {
        if (r->place[i] < 0) continue;
        int64_t at = (int64_t)rng_perm_apply(&p, (uint64_t)r->place[i]);
        r->part[i] = at < r->valid ? DATA_VALID : at < r->valid + r->test ? DATA_TEST : DATA_TRAIN;
    }
}

/* Leaves the functions of the split, in the order of the file. */
void split_leave(reading *r) {
    data_split wanted = r->s.split;
    int64_t next = 0;
    if (r->valid == 0) return;
    if (wanted == DATA_TEST && r->test == 0) wanted = DATA_VALID;
    for (int64_t i = 0; i < r->functions; i++)
        if (r->place[i] >= 0) r->place[i] = r->part[i] == wanted ? next++ : -1;
}

/* ---- several outputs ------------------------------------------------------------------------- */

int32_t reading_output(const reading *r, int32_t outputs, size_t row) {
    const double *x = r->x + (row + 1) * (size_t)r->dims - r->actions.count - outputs;
    int32_t k = 0;
    while (k < outputs - 1 && x[k] != 1) k++;
    return k;
}

/* Mean and standard deviation of each output over the curves to train on, so that all are of one
 * size; those of the model where there is one. */
void split_scale_outputs(reading *r) {
    const roles *like = model_roles_of(r);
    for (int32_t k = 0; k < r->roles.n_outputs; k++) {
        role_output *o = &r->roles.outputs[k];
        double count = 0, sum = 0, squares = 0;
        for (int pass = 0; pass < 2; pass++)
            for (size_t row = 0; row < r->t->rows; row++) {
                int64_t f = reading_curve(r, row);
                if (f < 0 || r->part[f] != DATA_TRAIN ||
                    reading_output(r, r->roles.n_outputs, row) != k)
                    continue;
                double off = pass ? r->y[row] - sum / count : 0;
                count += !pass;
                sum += pass ? 0 : r->y[row];
                squares += off * off;
            }
        o->shift = count > 0 ? sum / count : 0;
        o->scale = count > 0 ? sqrt(squares / count) : 1;
        if (!real_scales(o->shift, o->scale)) o->scale = 1;
        if (like) o->shift = like->outputs[k].shift, o->scale = like->outputs[k].scale;
    }
    for (size_t row = 0; row < r->t->rows && r->roles.n_outputs; row++) {
        const role_output *o = &r->roles.outputs[reading_output(r, r->roles.n_outputs, row)];
        r->y[row] = (r->y[row] - o->shift) / o->scale;
    }
}
