/* mixed.c: a mixed model of curves given the context, rows 0 .. m-1. All in double precision; none
 * has a gradient: the parameters are found by src/model/mixed/, not by steps.
 *
 *   mixed_logp      log (1/K) sum_k p_k(y) over all rows; ROWS_REST: less that of the context
 *   mixed_again     the same of fresh observations at all rows, given the context
 *   mixed_marginal  the same of every row alone: a number per row
 *   mixed_draw      rows m .. n-1: a law k with the weight p_k(context), a curve of it given the
 *                   context, its noise where asked for; rows of the context: y
 *
 * p_k is that of base/mixed_math.h. Where one p_k(context) is not a number, no answer is: a law
 * that means nothing is an error of the file, not a law without weight. A curve's normals do not
 * depend on the rows that are asked for: the same sample is the same curve in every question. */
#include "op/mixed.h"

#include <math.h>
#include <string.h>

#include "base/mixed_math.h"
#include "base/natural.h"

#define HALF_LOG_2PI 0.91893853320467274178

/* ---- record ---------------------------------------------------------------------------------- */

static bool is_fixed(graph *g, val v, int64_t rows, int64_t cols) {
    const value *a = graph_at(g, v);
    return a->ext == EXT_FIXED && a->rows == rows && a->cols == cols && !a->sampled;
}

static void check(graph *g, const char *op, val x, val y, const mixed_model *m) {
    if (!graph_ok(g)) return;
    const value *vx = graph_at(g, x), *vy = graph_at(g, y);
    int64_t X = vx->cols, p = natural_columns(X, m->fixed), r = natural_columns(X, m->random);
    int64_t draws = graph_at(g, m->mean)->rows, knots = graph_at(g, m->knots)->cols;
    if (vx->ext != EXT_N || vx->sampled || vy->ext != EXT_N || vy->ld != 1 || vy->sampled)
        graph_fail(g, "%s: %s must be the inputs of all points, %s a number per point", op,
                   vx->name, vy->name);
    else if (!is_fixed(g, m->knots, 2 * X * (m->knee == VAL_NONE ? 1 : draws), knots) ||
             knots < m->fixed || knots < m->random || m->fixed < 1 || m->random < 1 ||
             knots > NATURAL_KNOTS_MAX)
        graph_fail(g, "%s: %d and %d knots of %lld inputs are not in %s", op, m->fixed, m->random,
                   (long long)X, graph_at(g, m->knots)->name);
    else if (!is_fixed(g, m->mean, draws, p) || !is_fixed(g, m->spread, draws, p * p) ||
             !is_fixed(g, m->curve, draws, r * r) || !is_fixed(g, m->noise, draws, 1) ||
             (m->knee != VAL_NONE && !is_fixed(g, m->knee, draws, 1)))
        graph_fail(g, "%s: the parameters do not fit %lld and %lld columns", op, (long long)p,
                   (long long)r);
}

static instr *record(graph *g, int32_t op, val x, val y, const mixed_model *m, int32_t what,
                     val out) {
    instr *ins = graph_append(g, op);
    if (!ins) return NULL;
    ins->in[MIXED_X] = x, ins->in[MIXED_Y] = y, ins->in[MIXED_KNOTS] = m->knots;
    ins->in[MIXED_MEAN] = m->mean, ins->in[MIXED_SPREAD] = m->spread;
    ins->in[MIXED_CURVE] = m->curve, ins->in[MIXED_NOISE] = m->noise;
    ins->in[MIXED_EPS] = ins->in[MIXED_COEFFICIENTS] = VAL_NONE, ins->in[MIXED_KNEE] = m->knee;
    ins->i[MIXED_FIXED] = m->fixed, ins->i[MIXED_RANDOM] = m->random, ins->i[MIXED_WHAT] = what;
    ins->out[0] = out;
    return ins;
}

val op_mixed_logp(graph *g, val x, val y, const mixed_model *m, row_range range) {
    check(g, "mixed_logp", x, y, m);
    if (range != ROWS_ALL && range != ROWS_REST)
        graph_fail(g, "mixed_logp: there is no range %d", (int)range);
    val out = graph_scalar(g, "mixed logp", false);
    return record(g, OP_mixed_logp, x, y, m, (int32_t)range, out) ? out : VAL_NONE;
}

val op_mixed_again(graph *g, val x, val y, const mixed_model *m) {
    check(g, "mixed_again", x, y, m);
    val out = graph_scalar(g, "mixed again", false);
    return record(g, OP_mixed_again, x, y, m, 0, out) ? out : VAL_NONE;
}

val op_mixed_marginal(graph *g, val x, val y, const mixed_model *m) {
    check(g, "mixed_marginal", x, y, m);
    val out = graph_scalars(g, "mixed marginal", EXT_N, 1, false);
    return record(g, OP_mixed_marginal, x, y, m, 0, out) ? out : VAL_NONE;
}

val op_mixed_draw(graph *g, val x, val y, const mixed_model *m, val eps, val coefficients,
                  bool noisy) {
    check(g, "mixed_draw", x, y, m);
    if (!graph_ok(g)) return VAL_NONE;
    const value *ve = graph_at(g, eps), *vc = graph_at(g, coefficients);
    int64_t X = graph_at(g, x)->cols;
    int64_t R = natural_columns(X, m->fixed) + natural_columns(X, m->random);
    if (ve->ext != EXT_N || ve->ld != 1 || vc->ext != EXT_FIXED || vc->rows != 1 ||
        vc->cols != 1 + R || vc->sampled != ve->sampled)
        graph_fail(g, "mixed_draw: %s must be a number per point, %s one row of %lld", ve->name,
                   vc->name, (long long)R + 1);
    val out = graph_scalars(g, "mixed draw", EXT_N, 1, ve->sampled);
    instr *ins = record(g, OP_mixed_draw, x, y, m, noisy, out);
    if (!ins) return VAL_NONE;
    ins->in[MIXED_EPS] = eps, ins->in[MIXED_COEFFICIENTS] = coefficients;
    return out;
}

/* ---- reference ------------------------------------------------------------------------------- */

typedef struct problem {
    ref_array x, y, knots, mean, spread, curve, noise, knee;
    bool own; /* each law has its knots and its knee */
    int64_t n, m, draws;
    int32_t fixed, random, p, r, R;
    natural *bases;    /* (2 X)                                    */
    double *features;  /* (n, R)                                   */
    double *u, *slope; /* (n) y on the law's scale, log |du / dy| */
    double knee_now;   /* the knee of that scale; -1: none yet     */
    double *evidence;  /* (draws) log p_k(context)                 */
    double *g;         /* (R) a row                                */
    mixed_seen seen;   /* of one law: the context                  */
} problem;

static void fill_features(problem *q, int64_t law) {
    int32_t X = (int32_t)q->x.cols;
    const double *knots = q->knots.at + (q->own ? law : 0) * 2 * X * q->knots.cols;
    for (int32_t c = 0; c < 2 * X; c++)
        natural_make(&q->bases[c], knots + c * q->knots.cols, c < X ? q->fixed : q->random);
    for (int64_t k = 0; k < q->n; k++) {
        double *h = q->features + k * q->R;
        const double *x = q->x.at + k * X;
        if (k > 0 && memcmp(x - X, x, (size_t)X * sizeof *x) == 0) { /* bands ask so */
            memcpy(h, h - q->R, (size_t)q->R * sizeof *h);
            continue;
        }
        natural_row(q->bases, X, q->fixed, x, h);
        natural_row(q->bases + X, X, q->random, x, h + q->p);
    }
}

static mixed_law law_at(problem *q, int64_t k) {
    if (q->own || k == 0) fill_features(q, k);
    bool fresh = q->own && q->knee.at[k] != q->knee_now;
    if (fresh) q->knee_now = q->knee.at[k];
    for (int64_t i = 0; fresh && i < q->n; i++) {
        q->u[i] = mixed_knee_to(q->y.at[i], q->knee.at[k]);
        q->slope[i] = mixed_knee_slope(q->y.at[i], q->knee.at[k]);
    }
    return (mixed_law){.p = q->p,
                       .r = q->r,
                       .mean = q->mean.at + k * q->mean.cols,
                       .spread = q->spread.at + k * q->spread.cols,
                       .curve = q->curve.at + k * q->curve.cols,
                       .noise = q->noise.at[k]};
}

/* log |du / dy| of the first rows. */
static double slopes(const problem *q, int64_t rows) {
    double sum = 0;
    for (int64_t i = 0; q->own && i < rows; i++) sum += q->slope[i];
    return sum;
}

/* Row i of law k as (g, d); the answer is the mean of the population. */
static double row_at(const problem *q, const mixed_law *law, int64_t i, double *d) {
    double mean = mixed_row(law, q->features + i * q->R, q->g);
    *d = (q->u[i] - mean) / law->noise;
    return mean;
}

static void add_rows(const problem *q, const mixed_law *law, int64_t lo, int64_t hi,
                     mixed_seen *seen) {
    for (int64_t i = lo; i < hi; i++) {
        double d;
        row_at(q, law, i, &d);
        mixed_add(law, seen, q->g, d);
    }
}

/* The context under law k, in q->seen. */
static double see_context(problem *q, const mixed_law *law) {
    mixed_start(law, &q->seen);
    add_rows(q, law, 0, q->m, &q->seen);
    return mixed_solve(law, &q->seen) + slopes(q, q->m);
}

static mixed_seen new_seen(ref_run *r, int64_t R) {
    return (mixed_seen){.l = ref_scratch(r, R * R), .w = ref_scratch(r, R)};
}

static problem set_up(ref_run *r) {
    problem q = {.x = ref_in(r, MIXED_X),
                 .y = ref_in(r, MIXED_Y),
                 .knots = ref_in(r, MIXED_KNOTS),
                 .mean = ref_in(r, MIXED_MEAN),
                 .spread = ref_in(r, MIXED_SPREAD),
                 .curve = ref_in(r, MIXED_CURVE),
                 .noise = ref_in(r, MIXED_NOISE),
                 .own = r->ins->in[MIXED_KNEE] != VAL_NONE,
                 .n = r->f->n,
                 .m = r->f->m,
                 .knee_now = -1,
                 .fixed = r->ins->i[MIXED_FIXED],
                 .random = r->ins->i[MIXED_RANDOM]};
    const int64_t each = (int64_t)(sizeof(natural) / sizeof(double)) + 1;
    if (q.own) q.knee = ref_in(r, MIXED_KNEE);
    q.draws = q.mean.rows, q.p = (int32_t)q.mean.cols;
    q.r = natural_columns(q.x.cols, q.random);
    q.R = q.p + q.r;
    q.evidence = ref_scratch(r, q.draws);
    q.g = ref_scratch(r, q.R);
    q.seen = new_seen(r, q.R);
    q.bases = (natural *)(void *)ref_scratch(r, 2 * q.x.cols * each);
    q.features = ref_scratch(r, q.n * q.R);
    q.u = q.own ? ref_scratch(r, q.n) : q.y.at;
    q.slope = q.own ? ref_scratch(r, q.n) : NULL;
    return q;
}

static void ref_mixed_logp(ref_run *r) {
    problem q = set_up(r);
    ref_array out = ref_out(r, 0);
    mixed_seen all = new_seen(r, q.R);
    double *joint = ref_scratch(r, q.draws);
    if (r->failed) return;
    if (r->ins->i[MIXED_WHAT] == ROWS_ALL) q.m = 0;
    for (int64_t k = 0; k < q.draws; k++) {
        mixed_law law = law_at(&q, k);
        mixed_start(&law, &all);
        add_rows(&q, &law, 0, q.n, &all);
        joint[k] = mixed_solve(&law, &all) + slopes(&q, q.n);
        q.evidence[k] = see_context(&q, &law);
    }
    out.at[0] += mixed_log_sum(joint, q.draws) - mixed_log_sum(q.evidence, q.draws);
}

/* Row i given the context, as (q->g, d). */
static double row_given(const problem *q, const mixed_law *law, int64_t i, double *d) {
    double mean = row_at(q, law, i, d), moved = mixed_given(law, &q->seen, q->g);
    *d -= moved;
    return mean + law->noise * moved;
}

static void ref_mixed_again(ref_run *r) {
    problem q = set_up(r);
    ref_array out = ref_out(r, 0);
    mixed_seen fresh = new_seen(r, q.R);
    double *joint = ref_scratch(r, q.draws);
    if (r->failed) return;
    for (int64_t k = 0; k < q.draws; k++) {
        mixed_law law = law_at(&q, k);
        q.evidence[k] = see_context(&q, &law);
        mixed_start(&law, &fresh);
        for (int64_t i = 0; i < q.n; i++) {
            double d;
            row_given(&q, &law, i, &d);
            mixed_add(&law, &fresh, q.g, d);
        }
        joint[k] = q.evidence[k] + mixed_solve(&law, &fresh) + slopes(&q, q.n);
    }
    out.at[0] += mixed_log_sum(joint, q.draws) - mixed_log_sum(q.evidence, q.draws);
}

static double variance_of(const problem *q) { /* of a fresh observation, in units of the noise's */
    double sum = 1;
    for (int32_t j = 0; j < q->R; j++) sum += q->g[j] * q->g[j];
    return sum;
}

/* Is row i at the place of the row before? Bands ask about many values there. */
static bool same_place(const problem *q, int64_t i) {
    const double *h = q->features + i * q->R;
    return memcmp(h - q->R, h, (size_t)q->R * sizeof *h) == 0;
}

static void ref_mixed_marginal(ref_run *r) {
    problem q = set_up(r);
    ref_array out = ref_out(r, 0);
    double *logp = ref_scratch(r, q.draws * q.n), *column = ref_scratch(r, q.draws);
    if (r->failed) return;
    for (int64_t k = 0; k < q.draws; k++) {
        mixed_law law = law_at(&q, k);
        q.evidence[k] = see_context(&q, &law);
        double mean = 0, moved = 0, variance = 1, of_variance = 0, of_noise = log(law.noise);
        for (int64_t i = 0; i < q.n; i++) {
            if (i == 0 || !same_place(&q, i)) {
                double d;
                mean = row_at(&q, &law, i, &d), moved = mixed_given(&law, &q.seen, q.g);
                variance = variance_of(&q), of_variance = log(variance);
            }
            double d = (q.u[i] - mean) / law.noise - moved;
            logp[i * q.draws + k] = q.evidence[k] - 0.5 * (d * d / variance + of_variance) -
                                    of_noise - HALF_LOG_2PI + (q.own ? q.slope[i] : 0);
        }
    }
    double total = mixed_log_sum(q.evidence, q.draws);
    for (int64_t i = 0; i < q.n; i++) {
        memcpy(column, logp + i * q.draws, (size_t)q.draws * sizeof *column);
        out.at[i] += mixed_log_sum(column, q.draws) - total;
    }
}

/* The law whose share of the weights the level u in (0, 1) falls into. */
static int64_t law_of(const problem *q, double total, double u) {
    double sum = 0;
    for (int64_t k = 0; k + 1 < q->draws; k++) {
        sum += exp(q->evidence[k] - total);
        if (u < sum) return k;
    }
    return q->draws - 1;
}

/* Sample s of law k: the curve's u | context is L^-T (w + normals), and a row given the context is
 * L^-1 g, so their product needs no second solve. */
static void draw_sample(const problem *q, const mixed_law *law, double knee, double mean,
                        ref_array normals, ref_array eps, bool noisy, int64_t s, int64_t i,
                        ref_array out) {
    double value = mean;
    for (int32_t j = 0; j < q->R; j++)
        value += law->noise * q->g[j] * *ref_el(normals, s, 0, 1 + j);
    if (noisy) value += law->noise * *ref_el(eps, s, i, 0);
    *ref_el(out, s, i, 0) += mixed_knee_from(value, knee);
}

static void ref_mixed_draw(ref_run *r) {
    problem q = set_up(r);
    ref_array eps = ref_in(r, MIXED_EPS), normals = ref_in(r, MIXED_COEFFICIENTS);
    ref_array out = ref_out(r, 0);
    double *chosen = ref_scratch(r, out.samples);
    if (r->failed) return;
    for (int64_t k = 0; k < q.draws; k++) {
        mixed_law law = law_at(&q, k);
        q.evidence[k] = see_context(&q, &law);
    }
    double total = mixed_log_sum(q.evidence, q.draws);
    for (int64_t s = 0; s < out.samples; s++) {
        double level = 0.5 * erfc(-*ref_el(normals, s, 0, 0) * M_SQRT1_2);
        chosen[s] = isfinite(total) ? (double)law_of(&q, total, level) : -1;
        for (int64_t i = 0; i < q.m; i++) *ref_el(out, s, i, 0) += q.y.at[i];
        for (int64_t i = q.m; chosen[s] < 0 && i < q.n; i++) *ref_el(out, s, i, 0) = NAN;
    }
    for (int64_t k = 0; k < q.draws; k++) {
        bool wanted = false;
        for (int64_t s = 0; s < out.samples; s++) wanted |= (int64_t)chosen[s] == k;
        if (!wanted) continue;
        mixed_law law = law_at(&q, k);
        double knee = q.own ? q.knee.at[k] : 0;
        see_context(&q, &law);
        for (int64_t i = q.m; i < q.n; i++) {
            double d, mean = row_given(&q, &law, i, &d);
            for (int64_t s = 0; s < out.samples; s++)
                if ((int64_t)chosen[s] == k)
                    draw_sample(&q, &law, knee, mean, normals, eps, r->ins->i[MIXED_WHAT] != 0, s,
                                i, out);
        }
    }
}

/* ---- cases: a = X, b = fixed knots, c = random knots, d = laws; S > 1: draws are sampled; d < 0:
 * -d laws with knots and knees of their own. */

static const double rising[] = {-1.5, -0.7, 0.1, 0.8, 1.6}, sizes[] = {0.3, 0.5, 0.4};
/* Of several laws: five, three, two different ones. */
static const double several[] = {-1.5, -0.7, 0.1, 0.8, 1.6, -1, 0.2, 1, 1, 1, -2, 2, 2, 2, 2};
static const double knees[] = {0, 0.7, 2};

static mixed_model inputs(case_build *b, const op_case *c, val *x, val *y) {
    int32_t p = natural_columns(c->a, c->b), r = natural_columns(c->a, c->c);
    bool own = c->d < 0;
    int32_t laws = own ? -c->d : c->d;
    case_fill knots = {.values = own ? several : rising, .count = own ? 15 : 5};
    case_fill noise = {.values = sizes, .count = 3}, knee = {.values = knees, .count = 3};
    *x = case_matrix(b, "x", EXT_N, 0, c->a, false, false, CASE_NORMAL(0, 1));
    *y = case_scalars(b, "y", EXT_N, false, false, CASE_NORMAL(0, 1));
#define FIXED(name, rows, cols, fill)                                                              \
    case_matrix(b, name, EXT_FIXED, rows, cols, false, false, fill)
    return (mixed_model){.knots = FIXED("knots", 2 * c->a * (own ? laws : 1), 5, knots),
                         .mean = FIXED("mean", laws, p, CASE_NORMAL(0, 1)),
                         .spread = FIXED("spread", laws, p * p, CASE_NORMAL(0, 0.2)),
                         .curve = FIXED("curve", laws, r * r, CASE_NORMAL(0, 0.6)),
                         .noise = FIXED("noise", laws, 1, noise),
                         .knee = own ? FIXED("knee", laws, 1, knee) : VAL_NONE,
                         .fixed = c->b,
                         .random = c->c};
}

static void build_logp(case_build *b, const op_case *c) {
    val x, y;
    mixed_model m = inputs(b, c, &x, &y);
    case_output(b, op_mixed_logp(b->g, x, y, &m, c->m ? ROWS_REST : ROWS_ALL));
}

static void build_again(case_build *b, const op_case *c) {
    val x, y;
    mixed_model m = inputs(b, c, &x, &y);
    case_output(b, op_mixed_again(b->g, x, y, &m));
}

static void build_marginal(case_build *b, const op_case *c) {
    val x, y;
    mixed_model m = inputs(b, c, &x, &y);
    case_output(b, op_mixed_marginal(b->g, x, y, &m));
}

static void build_draw(case_build *b, const op_case *c) {
    val x, y;
    mixed_model m = inputs(b, c, &x, &y);
    int32_t R = natural_columns(c->a, c->b) + natural_columns(c->a, c->c);
    val eps = case_scalars(b, "eps", EXT_N, c->S > 1, false, CASE_NORMAL(0, 1));
    val normals =
        case_matrix(b, "normals", EXT_FIXED, 1, 1 + R, c->S > 1, false, CASE_NORMAL(0, 1));
    case_output(b, op_mixed_draw(b->g, x, y, &m, eps, normals, c->n % 2 == 0));
}

static const op_case cases[] = {
    {"24 points given 3", 24, 3, 1, 1, 5, 3, 64, CASE_BENCH | CASE_DOUBLE, 0, 0},
    {"two inputs", 20, 7, 3, 2, 4, 2, 3, CASE_DOUBLE, 0, 0},
    {"nothing given", 15, 0, 2, 1, 1, 1, 2, CASE_DOUBLE, 0, 0},
    {"all given", 9, 9, 1, 3, 2, 1, 1, CASE_DOUBLE, 0, 0},
    {"one point", 1, 0, 1, 1, 5, 5, 1, CASE_DOUBLE, 0, 0},
    {"knots and knees", 12, 4, 3, 1, 5, 3, -3, CASE_DOUBLE, 0, 0},
    {"knees, two inputs", 10, 0, 1, 2, 3, 2, -4, CASE_DOUBLE, 0, 0},
};

#define CASES .cases = cases, .n_cases = sizeof cases / sizeof *cases
const op_def op_mixed_logp_def = {
    .name = "mixed_logp", .ref = ref_mixed_logp, .build = build_logp, CASES};
const op_def op_mixed_again_def = {
    .name = "mixed_again", .ref = ref_mixed_again, .build = build_again, CASES};
const op_def op_mixed_marginal_def = {
    .name = "mixed_marginal", .ref = ref_mixed_marginal, .build = build_marginal, CASES};
const op_def op_mixed_draw_def = {
    .name = "mixed_draw", .ref = ref_mixed_draw, .build = build_draw, CASES};
