/* laws.c: see laws.h. Each function is cut in three parts, C | A | B; the parts and the orders are
 * drawn from its own stream. */
#include "run/laws.h"

#include <math.h>
#include <string.h>

#include "op/permute.h"
#include "run/predict.h"
#include "util/least.h"

enum { POINTS_MAX = LAWS_POINTS_MAX };
enum { DRAWS = 20 }; /* where densities given z are compared, and the samples are particles */
/* The parts of a check that have noise of their own: two for each replicate, and those between. */
enum { PART_PERMUTATION = 4, PART_MARGINAL, PART_EXACT };
enum { TERM_NEAR, TERM_FAR, TERM_JOINT, TERMS = 4 };

typedef struct gap {
    double order, joint;
} gap;

/* Sums over functions. Of two replicates g and h of a gap, g h has the mean of the squared gap,
 * whatever the noise; (g - h)^2 / 2 that of the noise. */
typedef struct gap_sums {
    double product, squares, noise; /* of g h, (g h)^2, (g - h)^2 / 2: means over the pairs */
    double joint, joint2;           /* of the mean over the replicates, and its square */
} gap_sums;

/* Estimates with one number of samples. */
typedef struct meter {
    int64_t samples;
    uint32_t number;
    scorer *scorer;   /* the network's scores, or */
    sampler *sampler; /* evidences */
    gap_sums sums;
} meter;

/* The sets whose evidences make a gap, each twice: no term is used for two. */
enum { SET_C, SET_CA, SET_CB, SET_CAB, SETS };

typedef struct bench {
    env *env;
    const model *m;
    const dataset *d;
    const laws_opts *o;
    int64_t samples; /* of scores and of densities given z */
    meter meter[2];
    int meters;
    scorer *scorer; /* of densities given z */
    predictor *predictor;
    double *x, *y, *x2, *y2; /* C A B, and C B A: (POINTS_MAX, X), (POINTS_MAX) */
    double *logp, *logp2;
    double *at_x, *at_y; /* (2, POINTS_MAX, X), (2, POINTS_MAX): both, scaled */
    gap *gaps;           /* (replicates) */
    sampler_set *sets;   /* (replicates, 2, SETS) */
    double *evidence;    /* the same */
    int32_t *memory;
    uint64_t seed;
    int64_t hurried;
} bench;

/* A score's place among those of a check. */
typedef struct draw_place {
    int64_t function;
    uint32_t part;
} draw_place;

static uint32_t part_of(int64_t replicate) {
    return (uint32_t)(replicate < 2 ? 2 * replicate : 2 * replicate + PART_EXACT);
}

/* The seed of its noise: one Philox word pair there, beside the stream that cuts the function. */
static uint64_t seed_at(const bench *b, draw_place at, uint32_t term) {
    rng_at place = {.purpose = RNG_SPLIT_EVAL,
                    .step = 2 + at.part,
                    .function = (uint32_t)at.function,
                    .sample = term};
    rng_words w = rng_words_at((rng_key){b->seed}, place);
    return (uint64_t)w.w[0] << 32 | w.w[1];
}

static mnp_status make_arrays(bench *b) {
    size_t n = POINTS_MAX, X = (size_t)b->d->x_dim, S = (size_t)b->samples;
    size_t terms = (size_t)b->o->replicates * 2 * SETS;
    double **arrays[] = {&b->x,     &b->x2,   &b->y,    &b->y2,      &b->logp,
                         &b->logp2, &b->at_x, &b->at_y, &b->evidence};
    size_t counts[] = {n * X, n * X, n, n, S * n, S * n, 2 * n * X, 2 * n, terms};
    for (int k = 0; k < 9; k++) {
        *arrays[k] = env_alloc(b->env, counts[k], sizeof(double), "a check");
        if (!*arrays[k]) return MNP_ENOMEM;
    }
    size_t words = (size_t)permute_words(b->d->longest);
    b->memory = env_alloc(b->env, words, sizeof *b->memory, "a check");
    b->gaps = env_alloc(b->env, (size_t)b->o->replicates, sizeof *b->gaps, "a check");
    b->sets = env_alloc(b->env, terms, sizeof *b->sets, "a check");
    return b->memory && b->gaps && b->sets ? MNP_OK : MNP_ENOMEM;
}

/* The most points that C, A and B have together. */
static int64_t most_points(const bench *b) {
    int64_t m = b->o->context ? b->o->context : b->d->policy.context_hi;
    return b->o->targets ? least(m + b->o->targets, POINTS_MAX) : POINTS_MAX;
}

static mnp_status make_meter(bench *b, pool *pool, int number) {
    meter *k = &b->meter[number];
    k->number = (uint32_t)number;
    k->samples = number ? most(b->o->samples / 2, 1) : b->o->samples;
    const backend_choice cpu = {0};
    if (!b->o->exact) {
        if (number == 0) k->scorer = b->scorer;
        return number ? scorer_create(b->env, b->m, pool, cpu, POINTS_MAX, k->samples, &k->scorer)
                      : MNP_OK;
    }
    sampler_shape shape = {.points = most_points(b),
                           .particles = most(k->samples, 2),
                           .contexts = b->o->replicates * 2 * SETS};
    return sampler_create(b->env, b->m, pool, b->o->device, &shape, &k->sampler);
}

static mnp_status make(bench *b, pool *pool) {
    const backend_choice cpu = {0};
    MNP_TRY(make_arrays(b));
    MNP_TRY(scorer_create(b->env, b->m, pool, cpu, POINTS_MAX, b->samples, &b->scorer));
    MNP_TRY(predictor_create(b->env, b->m, pool, cpu, &b->predictor));
    for (int k = 0; k < b->meters; k++) MNP_TRY(make_meter(b, pool, k));
    return MNP_OK;
}

static void release(bench *b) {
    for (int k = 0; k < b->meters; k++) {
        if (b->meter[k].scorer != b->scorer) scorer_destroy(b->meter[k].scorer);
        sampler_destroy(b->meter[k].sampler);
    }
    scorer_destroy(b->scorer);
    predictor_destroy(b->predictor);
    void *arrays[] = {b->x,    b->x2,   b->y,        b->y2,     b->logp, b->logp2,
                      b->at_x, b->at_y, b->evidence, b->memory, b->gaps, b->sets};
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++) env_free(b->env, arrays[k]);
}

/* Up to POINTS_MAX points of function i in random order; returns how many. */
static int64_t load(bench *b, int64_t i, rng_stream *s) {
    const dataset *d = b->d;
    int64_t total = d->start[i + 1] - d->start[i], n = least(total, POINTS_MAX);
    const int32_t *order = permute_prefix(s, total, n, b->memory);
    for (int64_t k = 0; k < n; k++) {
        int64_t from = d->start[i] + order[k];
        for (int32_t c = 0; c < d->x_dim; c++)
            b->x[k * d->x_dim + c] = dataset_raw_x(d, i, order[k], c);
        b->y[k] = dataset_raw_y(d, from);
    }
    return n;
}

/* Row k of the second copy is row order[k] of the first. */
static void reorder(bench *b, const int32_t *order, int64_t n) {
    size_t dims = (size_t)b->d->x_dim;
    for (int64_t k = 0; k < n; k++) {
        memcpy(b->x2 + (size_t)k * dims, b->x + (size_t)order[k] * dims, dims * sizeof(double));
        b->y2[k] = b->y[order[k]];
    }
}

static mnp_status measure_permutation(bench *b, int64_t i, int64_t n, int64_t m, rng_stream *s,
                                      laws *out) {
    int32_t order[POINTS_MAX];
    for (int32_t k = 0; k < n; k++) order[k] = k;
    rng_shuffle(s, order, (size_t)m); /* the context among itself, the rest among itself */
    rng_shuffle(s, order + m, (size_t)(n - m));
    reorder(b, order, n);
    uint64_t seed = seed_at(b, (draw_place){i, PART_PERMUTATION}, 0); /* the same for both */
    MNP_TRY(scorer_logp(b->scorer, b->x, b->y, n, m, seed, b->logp));
    MNP_TRY(scorer_logp(b->scorer, b->x2, b->y2, n, m, seed, b->logp2));
    for (int64_t k = 0; k < b->samples * n; k++) {
        double off = fabs(b->logp2[k] - b->logp[k / n * n + order[k % n]]);
        if (!(off <= out->permutation)) out->permutation = off; /* a NaN stays */
    }
    return MNP_OK;
}

static mnp_status measure_marginal(bench *b, int64_t i, int64_t n, int64_t m, laws *out) {
    const double *x = b->x + m * b->d->x_dim, *y = b->y + m;
    int64_t targets = n - m, kept = (targets + 1) / 2;
    MNP_TRY(predictor_condition(b->predictor, b->x, b->y, m));
    uint64_t seed = seed_at(b, (draw_place){i, PART_MARGINAL}, 0);
    MNP_TRY(predictor_draw_latents(b->predictor, seed, b->samples));
    MNP_TRY(predictor_logp(b->predictor, x, y, targets, b->logp));
    MNP_TRY(predictor_logp(b->predictor, x, y, kept, b->logp2));
    for (int64_t s = 0; s < b->samples; s++)
        for (int64_t k = 0; k < kept; k++) {
            double all = b->logp[s * targets + k], some = b->logp2[s * kept + k];
            double off = fabs(some - all) / (fabs(all) + 1.0);
            if (!(off <= out->marginal)) out->marginal = off;
        }
    return MNP_OK;
}

/* ---- conditional consistency ----------------------------------------------------------------- */

/* One function, cut: the rows of x, y are C A B, those of x2, y2 are C B A. */
typedef struct cut {
    int64_t function;
    int64_t n, m, a; /* all points; those of C; those of A */
} cut;

static void cut_parts(bench *b, const cut *f) {
    int64_t m = f->m, a = f->a, rest = f->n - m - a;
    int32_t order[POINTS_MAX];
    for (int64_t k = 0; k < m; k++) order[k] = (int32_t)k;
    for (int64_t k = 0; k < rest; k++) order[m + k] = (int32_t)(m + a + k);
    for (int64_t k = 0; k < a; k++) order[m + rest + k] = (int32_t)(m + k);
    reorder(b, order, f->n);
}

/* log p(A | C) + log p(B | C, A), with the rows in the order C A B. */
static mnp_status chain_rule(bench *b, const meter *k, const double *x, const double *y,
                             const cut *f, int64_t first, uint32_t part, double *out) {
    draw_place at = {f->function, part};
    uint32_t term = TERMS * k->number;
    int64_t m = f->m;
    double near = 0, far = 0;
    MNP_TRY(
        scorer_unbiased(k->scorer, x, y, m + first, m, seed_at(b, at, term + TERM_NEAR), &near));
    MNP_TRY(
        scorer_unbiased(k->scorer, x, y, f->n, m + first, seed_at(b, at, term + TERM_FAR), &far));
    *out = near + far;
    return MNP_OK;
}

/* By scores of the network, for which each context is a set of its own. */
static mnp_status gaps_of_scores(bench *b, const meter *k, const cut *f) {
    int64_t targets = f->n - f->m;
    for (int64_t r = 0; r < b->o->replicates; r++) {
        uint32_t part = part_of(r);
        double ab = 0, ba = 0, joint = 0;
        MNP_TRY(chain_rule(b, k, b->x, b->y, f, f->a, part, &ab));
        MNP_TRY(chain_rule(b, k, b->x2, b->y2, f, targets - f->a, part + 1, &ba));
        b->gaps[r].order = (ab - ba) / (double)targets;
        if (b->o->gap_only_once) continue;
        uint64_t seed = seed_at(b, (draw_place){f->function, part}, TERMS * k->number + TERM_JOINT);
        MNP_TRY(scorer_unbiased(k->scorer, b->x, b->y, f->n, f->m, seed, &joint));
        b->gaps[r].joint = (joint - ab) / (double)targets;
    }
    return MNP_OK;
}

/* The evidences of `count` sets, as many at a time as the sampler takes; 0 of an empty one. */
static mnp_status find_evidences(bench *b, const meter *k, const sampler_opts *o, int64_t count) {
    for (int64_t done = 0, now; done < count; done += now) {
        now = least(count - done, sampler_room(k->sampler));
        MNP_TRY(sampler_begin(k->sampler, o, b->sets + done, now));
        for (int64_t j = 0; j < now; j++) {
            const sampler_report *r = sampler_look(k->sampler, j);
            b->evidence[b->sets[done + j].id] = r->log_evidence;
            b->hurried += r->hurried;
        }
    }
    return MNP_OK;
}

/* By differences of evidences: log p(A | C) = log p(C, A) - log p(C). Each comes from a run of its
 * own, or all would cancel and nothing be measured. */
static mnp_status gaps_of_evidences(bench *b, const meter *k, const cut *f) {
    int64_t X = b->d->x_dim, R = b->o->replicates, terms = R * 2 * SETS, count = 0;
    double *x2 = b->at_x + (size_t)POINTS_MAX * (size_t)X, *y2 = b->at_y + POINTS_MAX;
    runner_scale_x(b->m, b->x, f->n, b->at_x);
    runner_scale_y(b->m, b->y, f->n, b->at_y);
    runner_scale_x(b->m, b->x2, f->n, x2);
    runner_scale_y(b->m, b->y2, f->n, y2);
    const sampler_set known[SETS] = {[SET_C] = {b->at_x, b->at_y, f->m, 0},
                                     [SET_CA] = {b->at_x, b->at_y, f->m + f->a, 0},
                                     [SET_CB] = {x2, y2, f->n - f->a, 0},
                                     [SET_CAB] = {b->at_x, b->at_y, f->n, 0}};
    for (int64_t id = 0; id < terms; id++) {
        sampler_set set = known[id % SETS];
        set.id = id;
        b->evidence[id] = 0;
        if (set.n > 0) b->sets[count++] = set;
    }
    sampler_opts o = *b->o->exact;
    o.seed = seed_at(b, (draw_place){f->function, PART_EXACT}, k->number);
    MNP_TRY(find_evidences(b, k, &o, count));
    for (int64_t r = 0; r < R; r++) {
        const double *one = b->evidence + r * 2 * SETS, *two = one + SETS;
        double ab = one[SET_CA] - one[SET_C] + one[SET_CAB] - two[SET_CA];
        double ba = one[SET_CB] - two[SET_C] + two[SET_CAB] - two[SET_CB];
        double joint = two[SET_CAB] - two[SET_C];
        b->gaps[r].order = (ab - ba) / (double)(f->n - f->m);
        b->gaps[r].joint = (joint - ab) / (double)(f->n - f->m);
    }
    return MNP_OK;
}

/* One function's gaps into the sums. */
static void add_gaps(const bench *b, gap_sums *s) {
    int64_t R = b->o->replicates;
    double product = 0, noise = 0, joint = 0, pairs = (double)R * (double)(R - 1) / 2;
    for (int64_t r = 0; r < R; r++) {
        joint += b->gaps[r].joint / (double)R;
        for (int64_t q = 0; q < r; q++) {
            double g = b->gaps[q].order, h = b->gaps[r].order;
            product += g * h;
            noise += (g - h) * (g - h) / 2;
        }
    }
    s->product += product / pairs;
    s->squares += product / pairs * (product / pairs);
    s->noise += noise / pairs;
    s->joint += joint;
    s->joint2 += joint * joint;
}

/* The standard error of a mean over k functions, from sums. */
static double error_of(double sum, double squares, double k) {
    double mean = sum / k, variance = fmax(squares / k - mean * mean, 0);
    return k > 1 ? sqrt(variance / (k - 1)) : NAN;
}

static laws_gap summarise(const meter *of, double k) {
    const gap_sums *s = &of->sums;
    double mean = s->product / k, se = error_of(s->product, s->squares, k);
    laws_gap out = {.samples = of->samples};
    out.order = sqrt(fmax(mean, 0));
    /* by the slope of the root, or by its change over one error where that is steeper than it goes
     */
    out.order_se = mean > se ? se / (2 * out.order) : sqrt(se);
    out.noise = sqrt(s->noise / k);
    out.errors = mean / se;
    out.joint = s->joint / k;
    out.joint_se = error_of(s->joint, s->joint2, k);
    return out;
}

/* ---- all laws -------------------------------------------------------------------------------- */

/* A size that the data's contexts have, which leaves a point for A and one for B. */
static int64_t draw_context(const bench *b, int64_t n, rng_stream *s) {
    int64_t hi = least(b->d->policy.context_hi, n - 2), lo = least(b->d->policy.context_lo, hi);
    return lo + (int64_t)rng_below(s, (uint64_t)(hi - lo + 1));
}

static mnp_status measure(bench *b, int64_t i, int64_t n, rng_stream *s, laws *out) {
    int64_t m = b->o->context ? b->o->context : draw_context(b, n, s);
    if (b->o->targets) n = least(n, m + b->o->targets);
    MNP_TRY(measure_permutation(b, i, n, m, s, out));
    MNP_TRY(measure_marginal(b, i, n, m, out));
    cut f = {i, n, m, (n - m) / 2};
    cut_parts(b, &f);
    for (int j = 0; j < b->meters; j++) {
        meter *k = &b->meter[j];
        MNP_TRY(k->sampler ? gaps_of_evidences(b, k, &f) : gaps_of_scores(b, k, &f));
        add_gaps(b, &k->sums);
    }
    return MNP_OK;
}

static mnp_status measure_all(bench *b, int64_t functions, laws *out) {
    int64_t need = most(b->o->context, 1) + 2;
    for (int64_t i = 0; i < functions; i++) {
        rng_at at = {.purpose = RNG_SPLIT_EVAL, .step = 1, .function = (uint32_t)i};
        rng_stream s = rng_stream_at((rng_key){b->seed}, at);
        int64_t n = load(b, i, &s);
        if (n < need) continue;
        MNP_TRY(measure(b, i, n, &s, out));
        out->functions++;
        if (b->o->progress) b->o->progress(b->o->progress_user, i + 1, functions);
        if (env_cancelled(b->env))
            return env_fail(b->env, MNP_ECANCELLED, "the check was cancelled");
    }
    if (out->functions < 1)
        return env_fail(b->env, MNP_EINVAL, "no function has the %lld points a check needs",
                        (long long)need);
    out->all = summarise(&b->meter[0], (double)out->functions);
    if (b->meters > 1) out->half = summarise(&b->meter[1], (double)out->functions);
    out->hurried = b->hurried;
    return MNP_OK;
}

mnp_status laws_measure(env *e, const model *m, const dataset *d, pool *pool, const laws_opts *o,
                        laws *out) {
    *out = (laws){0};
    if (d->x_dim != m->spec.x_dim)
        return env_fail(e, MNP_EINVAL, "the data have %d inputs per point, the model %lld",
                        d->x_dim, (long long)m->spec.x_dim);
    laws_opts own = *o; /* a process without latents is exact as it is, with one sample */
    if (process_is_exact(&m->spec)) own.exact = NULL, own.samples = 1;
    bench b = {.env = e, .m = m, .d = d, .o = &own, .seed = o->seed};
    b.samples = own.exact ? DRAWS : own.samples;
    b.meters = own.gap_only_once ? 1 : 2;
    mnp_status status = make(&b, pool);
    if (status == MNP_OK) status = measure_all(&b, least(o->functions, d->functions), out);
    release(&b);
    if (status == MNP_OK &&
        !(isfinite(out->permutation) && isfinite(out->marginal) && isfinite(out->all.order)))
        status = env_fail(e, MNP_ENUMERIC,
                          "the model's densities are not finite, so there is nothing to compare "
                          "(are its weights or its data out of all proportion?)");
    return status;
}
