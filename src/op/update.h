/* update.h: what the ops of a step compute, in one place for every backend.
 *
 *   slot_sum    (blocks) slot 0 := (slot 0 + slot 1 + ...) / items
 *   grad_norm   (blocks) partial[range] := sum of squares of slot 0 in the range
 *   grad_total  (once)   partials in order -> grad_norm; the reports, averaged; bad_item; the rate
 *   adam        (blocks) clip, moments, weights, averaged weights
 *   tick        (once)   step + 1 and its rate
 *
 * A batch with a loss or a gradient that is not finite leaves weights, moments, averages and the
 * step as they were. */
#ifndef MNP_OP_UPDATE_H
#define MNP_OP_UPDATE_H

#include <math.h>

#include "op/frame.h"

/* The learning rate of a step: linear warm-up, then constant or cosine to zero at `total`. */
static inline double update_rate(const step_block *b, int64_t step) {
    double rate = b->rate_max;
    if (step + 1 < b->warmup) rate *= (double)(step + 1) / (double)b->warmup;
    if (b->schedule == 1 && b->total > 0) {
        double done = step < b->total ? (double)step / (double)b->total : 1.0;
        rate *= 0.5 * (1.0 + cos(3.14159265358979323846 * done));
    }
    return rate;
}

/* May this batch change the weights? Valid between grad_total and tick, and afterwards. */
static inline bool update_ok(const step_block *b) {
    return b->bad_item < 0 && isfinite(b->grad_norm);
}

/* Adam with everything that is the same for all weights worked out in double:
 *   g' = clip g;  m = beta1 m + mix1 g';  v = beta2 v + mix2 g'^2
 *   w = keep w - rate m / (sqrt(v inv_c2) + eps)     rate holds 1 / (1 - beta1^t)
 *                                                    keep = 1 - (the step's rate) decay
 *   average = average + blend (w - average) */
typedef struct update_adam {
    double clip, beta1, mix1, beta2, mix2, rate, inv_c2, eps, blend, keep;
} update_adam;

static inline update_adam update_adam_of(const step_block *b) {
    double t = (double)b->step + 1.0;
    return (update_adam){
        .clip = b->clip > 0 && b->grad_norm > b->clip ? b->clip / b->grad_norm : 1.0,
        .beta1 = b->beta1,
        .mix1 = 1.0 - b->beta1,
        .beta2 = b->beta2,
        .mix2 = 1.0 - b->beta2,
        .rate = update_rate(b, b->step) / (1.0 - pow(b->beta1, t)),
        .inv_c2 = 1.0 / (1.0 - pow(b->beta2, t)),
        .eps = b->eps,
        .blend = b->step == 0 ? 1.0 : 1.0 - b->ema, /* the first step: average := weights */
        .keep = 1.0 - update_rate(b, b->step) * b->decay,
    };
}

/* report: in[0..2] are the double scalars; an absent one counts as zero. */
enum { REPORT_LOSS, REPORT_KL, REPORT_LOGLIK, REPORT_COUNT };

#endif
