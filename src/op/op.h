/* op.h: the vocabulary. One record function per operation; each lives in its own file together
 * with its shape rule, its reverse rule, its obvious double-precision reference and its cases.
 * Adding an op is one file and one line in ops.def (two if it has a backward op of its own). */
#ifndef MNP_OP_OP_H
#define MNP_OP_OP_H

#include "op/case.h"
#include "op/frame.h"
#include "op/ref.h"

typedef enum op_id {
#define OP(name) OP_##name,
#include "op/ops.def"
#undef OP
    OP_COUNT
} op_id;

typedef enum op_phase {
    PHASE_FUNCTION, /* runs for every function of the batch                                   */
    PHASE_BLOCK,    /* once per step, over ranges of the weight block, ranges in any order    */
    PHASE_ONCE      /* once per step, on one thread                                           */
} op_phase;

/* The view of a PHASE_BLOCK or PHASE_ONCE op: the whole weight block, range [lo, hi) of it. */
typedef struct step_view {
    const plan *plan;
    exec_io *io;
    size_t element;
    int64_t items;   /* functions in the batch                                       */
    int64_t n_slots; /* gradient slots                                               */
    void *slots;     /* (n_slots, words) gradients; slot 0 holds the sum once summed */
    int64_t words;   /* stride of a slot                                             */
    int64_t lo, hi;  /* PHASE_BLOCK: the range of words to work on                   */
    double *partial; /* one double per range, for reductions: partial[range]         */
    int64_t range, n_ranges;
    const double *item_scalars; /* (items, 3): loss, kl, loglik of each function        */
} step_view;

typedef struct op_def {
    const char *name;
    op_phase phase;
    void (*grad)(graph *g, const instr *fwd); /* record the reverse pass; NULL: none        */
    void (*ref)(ref_run *r);                  /* PHASE_FUNCTION: double precision, obvious  */
    void (*step)(const step_view *s, const instr *ins); /* the other phases                 */
    void (*build)(case_build *b, const op_case *c);     /* records the op for one case      */
    const op_case *cases;
    int n_cases;
} op_def;

const op_def *op_at(int32_t id);
const char *op_name(int32_t id);
bool op_is_step(int32_t id);

/* Append the reverse pass of everything recorded so far. The objective is a double scalar. */
void op_append_grad(graph *g, val objective);

/* ---- in and out ------------------------------------------------------------------------------ */

/* Input binding: dense rows from the caller (io->feed[k]), k counted in recorded order. With
 * wants_grad it gets a gradient, which can then be emitted. */
val op_feed(graph *g, const char *name, extent ext, int32_t rows, int32_t cols, bool sampled,
            bool wants_grad);
/* The same for a number per row (ld 1). */
val op_feed_scalars(graph *g, const char *name, extent ext, bool sampled, bool wants_grad);
/* Output binding: returns its number k; the rows arrive densely in io->emit[k]. */
int32_t op_emit(graph *g, val v);
/* All zeros. */
val op_zeros(graph *g, const char *name, extent ext, int32_t rows, int32_t cols, bool sampled);

/* Draw one function of the resident data set, its points permuted, context first; sets n, k and m.
 *   training:   function by epoch-wise random order, m ~ U{lo..hi} or 0 with probability p_empty
 *   evaluation: function io->first_function + item, split drawn from its own stream
 * In training each of the first `mirror` inputs changes its sign with probability 1/2, the same for
 * all points of a function; regions are those of the mirrored function.
 * The posterior sees the first k = max(seen, m) of them (seen = 0: all n); the others are drawn to
 * be scored only. With probability p_region (two inputs) one of the regions of op/region.h gives
 * the context: of the k points, those inside come first, and m ~ U{half of them .. all of them}. x
 * (n, X) and y (n) are the values to record on. */
typedef struct draw_opts {
    bool train;
    int32_t x_dim;
    int32_t lo, hi;      /* context sizes, both included; capped at n                 */
    double p_empty;      /* probability of an empty context (training)                */
    int32_t max_points;  /* use at most so many points of a function (0 = all)        */
    int32_t few_targets; /* > 0: the authors' small target sets, k ~ U{1..hi+1-m}      */
    double p_region;     /* probability of a context from a region of the inputs      */
    double prefix;       /* training: probability of one of the first points in time  */
    int32_t time;        /* which input that is                                       */
    double noise;        /* sd of normal noise on y outside the context               */
    int32_t mirror;      /* training: how many of the inputs are mirrored, 0 to x_dim */
    int32_t seen;        /* points that the posterior sees; 0: all                    */
} draw_opts;
void op_draw(graph *g, const draw_opts *o, val *x, val *y);

/* ---- dense and set ops ----------------------------------------------------------------------- */

/* phi(x) = [cos(2 pi f x), sin(2 pi f x)], cosines first; freq (F, X) is a frozen weight. With
 * append_x the inputs follow the features. */
val op_fourier(graph *g, val x, val freq, bool append_x);

/* h = act(x W + b), y = h + residual. w (in, out); b (1, out) or none; residual none or like y. */
typedef enum act_kind { ACT_NONE, ACT_RELU } act_kind;
val op_linear(graph *g, val x, val w, val b, act_kind act, val residual);

/* The sum that replaces a layer on a concatenation, without building it:
 *   y[s,r,:] = act(a[s,r,:] + row[s,0,:] + p[s,r] w[0,:])
 * a: per-point part, shared over samples or not; row: one row per function (or absent);
 * p: a number per row (or absent) with its weight row w. */
val op_join(graph *g, val a, val row, val p, val w, act_kind act);

/* Multi-head attention o = q + softmax(q k^T / sqrt(D)) v over the first `keys` rows of kv, for
 * the first `queries` rows of q (extents EXT_N, EXT_K, EXT_M or EXT_FIXED = all rows of the value).
 * q (.., D) is columns [q_col, q_col + D) of qv; k and v likewise in kv. An empty key set gives
 * o = q. */
typedef struct attention_opts {
    int32_t width, heads; /* D and H, H divides D */
    int32_t q_col, k_col, v_col;
    extent queries, keys;
} attention_opts;
val op_attention(graph *g, val qv, val kv, const attention_opts *o);

/* Mean or sum over the first rows (EXT_N, EXT_K or EXT_M) of h; an empty set gives zeros. */
val op_pool(graph *g, val h, extent over, bool mean);

/* The first rows (EXT_M or EXT_K) of x. */
val op_prefix(graph *g, val x, extent rows);

/* Rows of x normalised (biased variance, eps 1e-5), times gain, plus shift (each (1, C)). */
val op_layernorm(graph *g, val x, val gain, val shift);

/* ---- a grid of one input --------------------------------------------------------------------- */

typedef struct grid_opts {
    int32_t points;
    double lo, spacing;
} grid_opts;
/* The context's points x (n, 1), y spread over the grid by a Gaussian kernel of length exp(length):
 * (points, 2), their density and the mean of y. */
val op_set_conv(graph *g, val x, val y, val length, const grid_opts *o);
/* Rows of x (fixed) beside `taps` neighbours `dilation` apart, for a convolution by op_linear. */
val op_unfold(graph *g, val x, int32_t taps, int32_t dilation);
/* Rows of the grid (points, C) at places x (n, 1), by cubic convolution; zero outside. */
val op_interpolate(graph *g, val grid, val x, const grid_opts *o);

/* ---- small algebra --------------------------------------------------------------------------- */

val op_stack(graph *g, val a, val b); /* fixed rows: a's rows, then b's */
/* x when the function has context points, otherwise the row `empty` (a weight): (fixed 1 row). */
val op_if_context(graph *g, val x, val empty);
val op_add(graph *g, val a, val b); /* same shape, or b shared over samples           */
val op_scale(graph *g, val a, double factor, double shift);
val op_dot(graph *g, val a, val weights); /* sum of a*weights over rows and columns: scalar */

/* ---- maps of the outputs --------------------------------------------------------------------- */

/* Both directions of a pointwise invertible map; y and logdet are numbers per row (ld 1).
 * logdet_out = logdet_in + log |d out / d in|; logdet_in may be absent (0).
 * raw (rows, 3K-1): K widths, K heights, K-1 inner derivatives (raw). */
typedef struct rqs_opts {
    int32_t bins;
    double bound, min_width, min_height, min_derivative;
} rqs_opts;
typedef struct mapped {
    val y, logdet;
} mapped;
mapped op_rqs_to_noise(graph *g, val y, val raw, val logdet, const rqs_opts *o);
mapped op_rqs_to_data(graph *g, val y, val raw, val logdet, const rqs_opts *o);
/* data = alpha noise + beta; raw (rows, 2): beta, and the raw number that becomes alpha. */
typedef enum affine_kind {
    AFFINE_EXP_TANH, /* alpha = exp(kappa tanh(raw / kappa))        */
    AFFINE_SOFTPLUS  /* alpha = floor + (1 - floor) softplus(raw)   */
} affine_kind;
typedef struct affine_opts {
    affine_kind kind;
    double kappa, floor;
} affine_opts;
mapped op_affine_to_noise(graph *g, val y, val raw, val logdet, const affine_opts *o);
mapped op_affine_to_data(graph *g, val y, val raw, val logdet, const affine_opts *o);

/* ---- probability ----------------------------------------------------------------------------- */

/* sigma = floor + (1 - floor) sigmoid(raw), or floor + softplus(raw) */
typedef enum sigma_kind { SIGMA_SIGMOID, SIGMA_SOFTPLUS } sigma_kind;
/* z (1 row, sampled) = mu[row] + sigma(raw[row]) eps; mu and raw are (rows fixed, Z).
 * eps comes from the counter (purpose, step, function, sample, `tag`, dimension); or, when
 * `eps` is given (1 row, sampled), from there. */
val op_gauss_sample(graph *g, val mu, val raw, int32_t row, val eps, int32_t purpose, int32_t tag,
                    sigma_kind kind, double floor);
/* The noise that makes z of row 0: (z - mu) / sigma. Has no gradient. */
val op_gauss_noise(graph *g, val z, val mu, val raw, sigma_kind kind, double floor);
/* KL( N(row 0) || N(row 1) ) summed over dimensions, a scalar. */
val op_gauss_kl(graph *g, val mu, val raw, sigma_kind kind, double floor);
/* log N(z; row 1) - log N(z; row 0): the sampled ratio, a scalar. */
val op_gauss_ratio(graph *g, val z, val mu, val raw, sigma_kind kind, double floor);
/* Points: log N(y; 0, 1) + logdet (absent = 0), numbers per row. */
val op_normal_logp(graph *g, val y, val logdet);
/* Base noise for sampling: numbers per row, standard normal from the counter, or zero. */
val op_base_noise(graph *g, extent ext, bool sampled, int32_t purpose, bool zero);
/* A mixture of K normals at each row, raw (rows, 3K): logits, means, raw standard deviations, each
 * floor + (1 - floor) softplus. The log-density of y; and a draw from the normals eps and pick, of
 * which pick chooses the part, or (pick absent) the mean, which has no gradient. */
val op_mixture_logp(graph *g, val y, val raw, double floor);
val op_mixture_draw(graph *g, val raw, val eps, val pick, double floor);
/* Sum of numbers per row over [0,n), [m,n), [0,m) or [k,n): a double scalar, per sample. */
typedef enum row_range { ROWS_ALL, ROWS_REST, ROWS_CONTEXT, ROWS_UNSEEN } row_range;
val op_sum_rows(graph *g, val per_point, row_range range);
/* log (1/S) sum_s exp(x_s): a scalar that is not sampled. */
val op_logmeanexp(graph *g, val x);
/* Mean over samples of a sampled scalar (or the scalar itself). */
val op_mean_samples(graph *g, val x);
/* scalar * factor / (number of rows in range, at least 1); ROWS_ALL: n */
val op_per_point(graph *g, val x, row_range range, double factor);
/* log N(u | GP) in double. hyper (1, P): see op/gp.h. ROWS_ALL: joint; ROWS_REST: of the targets
 * given the context. u: numbers per row, x (n, X). */
val op_gp_logp(graph *g, val x, val u, val hyper, row_range range, int32_t kernel);
/* The hyper-parameters of a process (1, P) from weights: variance and length (1, 3), one per part
 * of the kernel; period, noise, mean (1, 1). */
typedef struct gp_raw {
    val variance, length, period, noise, mean;
} gp_raw;
typedef struct gp_raw_opts {
    bool softplus;      /* a positive number is softplus(rate raw) instead of exp(rate raw) */
    double rate, floor; /* floor: least variance of the noise                                */
} gp_raw_opts;
val op_gp_hyper(graph *g, const gp_raw *raw, const gp_raw_opts *o);
/* Given the context, as scalars and numbers per row without a gradient: the joint log-density of
 * fresh observations with values u at all rows; that of each row alone; draws at the rows outside
 * the context from standard normals eps (with the observations' noise, or of the function itself),
 * jointly, the context's rows being u. */
val op_gp_again(graph *g, val x, val u, val hyper, int32_t kernel);
val op_gp_marginal(graph *g, val x, val u, val hyper, int32_t kernel);
val op_gp_draw(graph *g, val x, val u, val hyper, val eps, bool noisy, int32_t kernel);

/* A mixed model of curves in natural splines: see op/mixed.h. Densities and draws are those of the
 * Gaussian process above, in double and without a gradient: mixed_logp of all rows or of the
 * targets given the context; of fresh observations at all rows; of each row alone; draws from
 * normals of the rows and of the curve (1, 1 + p + r). */
typedef struct mixed_model {
    val knots, mean, spread, curve, noise;
    val knee;              /* VAL_NONE: all laws have the same knots, and are of y itself */
    int32_t fixed, random; /* knots of an input in the population's and in the curves' basis */
} mixed_model;
val op_mixed_logp(graph *g, val x, val y, const mixed_model *m, row_range range);
val op_mixed_again(graph *g, val x, val y, const mixed_model *m);
val op_mixed_marginal(graph *g, val x, val y, const mixed_model *m);
val op_mixed_draw(graph *g, val x, val y, const mixed_model *m, val eps, val coefficients,
                  bool noisy);
/* out = y + sign f(x), f the natural splines with these knots (X, K) and coefficients
 * (1, 1 + X (K - 1)). Reverse: to y and to the coefficients. */
val op_trend(graph *g, val x, val y, val knots, val coefficients, double sign);
/* out = y + sign f(x), f a wave of `pace` (1, 1) turns for a unit of the one input, coefficients
 * (1, 2K) of the cosine and sine of each harmonic. Reverse: to y, the pace and the coefficients. */
val op_season(graph *g, val x, val y, val pace, val coefficients, double sign);

/* log N(u; 0, a I + c 1 1^T) in double, u numbers per row; law (1, 2) = log(a + c), logit of
 * c / (a + c). */
val op_exchangeable_logp(graph *g, val u, val law);

/* ---- the step -------------------------------------------------------------------------------- */

/* Tell the backend which scalars are this function's loss, KL and log-likelihood (any but the first
 * may be absent): they are averaged into the step block. */
void op_report(graph *g, val loss, val kl, val loglik);
/* Sum the slots and divide by the batch, take the norm, clip, Adam, averaged weights, tick. */
void op_update(graph *g);

#endif
