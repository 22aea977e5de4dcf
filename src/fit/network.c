/* network.c: see network.h. */
#include "fit/network.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/frequency.h"
#include "fit/simulate.h"
#include "fit/tasks.h"
#include "run/make_model.h"
#include "run/train.h"
#include "util/least.h"

/* Small networks: a few hundred points decide them. x stands beside its features for the trend. Few
 * latents: how a curve differs is few numbers, and exact conditioning looks for them. */
#define NETWORK                                                                                    \
    "T=3 rff=16 rff_append_x=on d_z=8 d_r=32 enc_width=32 heads=2 n_sab=1 "                        \
    "head_hidden=32 head_layers=1 flow_hidden=48 bins=8"

/* Exact conditioning asks for q(z | nothing) and the likelihood of points alone, so most of the
 * steps train on whole curves without a context; the others keep the network's own conditioning a
 * good place to start from. */
#define STEPS "batch=32 clip=1 p_empty=0.7 prefix=0.5"
enum { STEP_POINTS = 64 }; /* of a curve, in a step and in a validation */

/* Validation by the density of whole curves, for the same reason. */
#define JUDGED "lr=5e-4 weight_decay=0.01 patience=8 valid_context=0:0 valid_samples=20"

enum { SIMULATED = 4000, PRE_STEPS = 4000 };
enum { FINE_LEAST = 8 };     /* curves below which the simulated ones say all there is to say */
enum { FINE_CURVES = 2000 }; /* of both kinds that the second part goes through again and again */
enum { EQUAL_CURVES = 40 };  /* so many real curves weigh as much as the simulated ones */
enum { VALIDATIONS = 40 };

typedef struct job {
    env *e;
    const dataset *curves;
    const network_opts *o;
    model *m;
    int64_t *order;           /* (curves) those to train on, then those to choose by */
    int64_t learned, judging; /* how many                                            */
} job;

static int64_t scaled(const job *j, double steps) {
    double effort = j->o->effort > 0 ? j->o->effort : 1;
    return (int64_t)fmax(steps * effort, VALIDATIONS);
}

/* ---- curves ---------------------------------------------------------------------------------- */

static mnp_status simulated(const job *j, int64_t curves, uint64_t more, dataset **out) {
    simulate_opts o = {.curves = curves, .seed = j->o->seed + more, .pool = j->o->pool};
    return simulate_curves(j->e, j->o->teacher, j->curves, &o, out);
}

typedef struct collection {
    double *x, *y;
    int64_t *n, functions, points;
} collection;

/* The points of the curve that are kept; keep NULL: all. */
static void add_curve(collection *c, const dataset *d, int64_t i, const bool *keep) {
    int64_t before = c->points, X = d->x_dim;
    for (int64_t j = d->start[i]; j < d->start[i + 1]; j++) {
        if (keep && !keep[j]) continue;
        for (int32_t col = 0; col < X; col++)
            c->x[c->points * X + col] = dataset_raw_x(d, i, j - d->start[i], col);
        c->y[c->points++] = dataset_raw_y(d, j);
    }
    c->n[c->functions++] = c->points - before;
}

/* Curves `which` (count) of d, at most `limit` points of each, all of them `times` times, and all
 * of `more`, which may be NULL. */
static mnp_status collect(env *e, const dataset *d, const int64_t *which, int64_t count,
                          int64_t times, int64_t limit, const dataset *more, dataset **out) {
    int64_t functions = count * times + (more ? more->functions : 0);
    int64_t points = more ? more->points : 0;
    bool *keep = env_alloc(e, (size_t)d->points, sizeof *keep, "curves to train on");
    if (!keep) return MNP_ENOMEM;
    for (int64_t k = 0; k < count; k++) points += times * task_thin(d, which[k], limit, keep);
    collection c = {0};
    c.x = env_alloc(e, (size_t)points * (size_t)d->x_dim, sizeof *c.x, "curves to train on");
    c.y = env_alloc(e, (size_t)points, sizeof *c.y, "curves to train on");
    c.n = env_alloc(e, (size_t)functions, sizeof *c.n, "curves to train on");
    mnp_status status = c.x && c.y && c.n ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) {
        for (int64_t k = 0; k < count * times; k++) add_curve(&c, d, which[k % count], keep);
        for (int64_t i = 0; more && i < more->functions; i++) add_curve(&c, more, i, NULL);
        status = dataset_from_arrays(e, DATASET_ARRAYS, functions, c.n, d->x_dim, c.x, c.y, out);
    }
    env_free(e, c.x);
    env_free(e, c.y);
    env_free(e, c.n);
    env_free(e, keep);
    return status;
}

/* ---- training -------------------------------------------------------------------------------- */

/* The parts of the work: where each ends, as a share of the whole. */
enum { PART_SIMULATED, PART_JUDGED, PART_REAL };
static const double part_end[] = {0.5, 0.8, 1};

/* In pieces, which changes no bit, so that progress is told and a cancel is heard. */
static mnp_status run_steps(const job *j, trainer *t, int64_t steps, int part) {
    enum { PIECES = 50 };
    double from = part ? part_end[part - 1] : 0;
    for (int64_t k = 0; k < PIECES; k++) {
        MNP_TRY(trainer_run(t, steps * (k + 1) / PIECES - steps * k / PIECES));
        if (j->o->progress)
            j->o->progress(j->o->progress_user,
                           from + (part_end[part] - from) * (double)(k + 1) / PIECES);
    }
    return MNP_OK;
}

static void warn(const job *j, const char *text) {
    if (j->o->warnings) buf_printf(j->o->warnings, "%s\n", text);
}

/* `steps` of a schedule of `total`; with curves to judge by, the best weights, which may be those
 * it began with; without, the last. *best: the step they are from. */
static mnp_status train(const job *j, const dataset *d, const dataset *judges, const char *options,
                        int64_t steps, uint64_t more, int64_t *best) {
    env *e = j->e;
    train_spec spec;
    trainer *t = NULL;
    MNP_TRY(train_read_options(e, j->m, options, &spec));
    MNP_TRY(trainer_create(e, j->m, d, judges, &spec, j->o->seed + more, j->o->pool,
                           (backend_choice){0}, &t));
    mnp_status status = trainer_judge_start(t);
    int part = judges ? PART_JUDGED : more ? PART_REAL : PART_SIMULATED;
    if (status == MNP_OK) status = run_steps(j, t, steps, part);
    if (status == MNP_ENUMERIC && judges) {
        warn(j, "the training of the network diverged: it keeps its best weights before that");
        status = MNP_OK;
    }
    if (status == MNP_OK && judges) status = trainer_take_best(t);
    if (best) *best = trainer_state(t).best_step;
    trainer_destroy(t);
    return status;
}

/* Splines change values within `bound` = 5 units of the model and leave others as they are, which a
 * curve far off would pay for. So the unit is such that REACH of them hold all curves, simulated
 * ones too, where that is more than the usual standard deviation. */
#define REACH 4.0

static void widen_scale(const dataset *d, model_scaling *s) {
    for (int64_t k = 0; k < d->points; k++)
        s->y_scale = fmax(s->y_scale, fabs(dataset_raw_y(d, k) - s->y_shift) / REACH);
}

static mnp_status train_simulated(const job *j) {
    char options[300];
    dataset *d = NULL;
    int64_t steps = scaled(j, PRE_STEPS);
    snprintf(options, sizeof options, STEPS " max_points=%d steps=%lld", STEP_POINTS,
             (long long)steps);
    MNP_TRY(simulated(j, SIMULATED, 0, &d));
    widen_scale(j->curves, &j->m->scaling);
    widen_scale(d, &j->m->scaling);
    mnp_status status = train(j, d, NULL, options, steps, 0, NULL);
    dataset_destroy(d);
    return status;
}

/* The first `learned` curves of the order beside simulated ones, so many of each that what few
 * curves say does not drown what the classical model learned from all of them. */
static mnp_status mixture(const job *j, int64_t learned, dataset **out) {
    double share = (double)learned / (double)(learned + EQUAL_CURVES);
    int64_t times = most(1, (int64_t)(share * FINE_CURVES / (double)learned));
    int64_t others = (int64_t)((double)(learned * times) * (1 - share) / share);
    dataset *more = NULL;
    MNP_TRY(simulated(j, others, 1, &more));
    mnp_status status = collect(j->e, j->curves, j->order, learned, times, INT64_MAX, more, out);
    dataset_destroy(more);
    return status;
}

static mnp_status train_real(const job *j, const dataset *judges, int64_t learned, int64_t steps,
                             int64_t total, int64_t *best) {
    char options[400];
    dataset *d = NULL;
    snprintf(options, sizeof options, STEPS " " JUDGED " max_points=%d steps=%lld valid_every=%lld",
             STEP_POINTS, (long long)total, (long long)most(1, total / VALIDATIONS));
    MNP_TRY(mixture(j, learned, &d));
    mnp_status status = train(j, d, judges, options, steps, 1, best);
    dataset_destroy(d);
    return status;
}

/* How long the real curves should train the network is found by holding some back; then, from the
 * same start, all of them train it for so long. */
static mnp_status fine_tune(const job *j) {
    env *e = j->e;
    size_t words = (size_t)j->m->params.words;
    int64_t total = scaled(j, fmin(10000, fmax(1000, 25.0 * (double)j->learned))), best = 0;
    float *start = env_alloc(e, words, sizeof *start, "weights");
    if (!start) return MNP_ENOMEM;
    memcpy(start, j->m->weights, words * sizeof *start);
    dataset *judges = NULL;
    mnp_status status =
        collect(e, j->curves, j->order + j->learned, j->judging, 1, STEP_POINTS, NULL, &judges);
    if (status == MNP_OK) status = train_real(j, judges, j->learned, total, total, &best);
    if (status == MNP_OK && best == 0)
        warn(j, "the curves themselves taught the network nothing that holds for curves held back: "
                "it stays as trained on simulated ones");
    if (status == MNP_OK && best > 0) {
        memcpy(j->m->weights, start, words * sizeof *start);
        status = train_real(j, NULL, j->learned + j->judging, best, total, NULL);
    }
    dataset_destroy(judges);
    env_free(e, start);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static mnp_status divide(job *j) {
    int64_t curves = j->curves->functions;
    rng_at at = {.purpose = RNG_BATCH, .step = UINT32_MAX}; /* beyond all epochs */
    rng_perm p = rng_perm_make((rng_key){j->o->seed}, at, (uint64_t)curves);
    j->order = env_alloc(j->e, (size_t)curves, sizeof *j->order, "an order of curves");
    if (!j->order) return MNP_ENOMEM;
    for (int64_t i = 0; i < curves; i++) j->order[i] = (int64_t)rng_perm_apply(&p, (uint64_t)i);
    j->judging = most(2, curves / 5);
    j->learned = curves - j->judging;
    return MNP_OK;
}

/* Features as smooth as the curves: layers above them make frequencies higher, not lower, so they
 * have some share of that of the teacher's curves. Curves that oscillate need their own. */
#define SHARE_OF_FREQUENCY 0.4
#define FREQUENCY_LEAST    0.1
#define FREQUENCY_MOST     0.4

static mnp_status choose_frequency(const job *j, double *std) {
    simulate_opts o = {.seed = j->o->seed, .pool = j->o->pool};
    curve_frequency own;
    double f;
    MNP_TRY(frequency_find(j->e, j->curves, &own));
    MNP_TRY(simulate_frequency(j->e, j->o->teacher, j->curves, dataset_time(j->curves), &o, &f));
    *std = fmin(fmax(SHARE_OF_FREQUENCY * f, FREQUENCY_LEAST), FREQUENCY_MOST);
    if (own.peak > 0 && j->curves->x_dim == 1)
        *std = fmax(*std, own.mean * j->o->teacher->scaling.x_scale[0]);
    return MNP_OK;
}

static mnp_status make_network(job *j) {
    char options[300];
    double std;
    MNP_TRY(choose_frequency(j, &std));
    snprintf(options, sizeof options, NETWORK " rff_std=%.3g", std);
    model_wish wish = {.process = "mnp", .preset = "tiny", .options = options, .seed = j->o->seed};
    return model_for_data(j->e, &wish, j->curves, &j->m);
}

mnp_status fit_network(env *e, const dataset *curves, const network_opts *o, model **out) {
    job j = {.e = e, .curves = curves, .o = o};
    char count[32];
    *out = NULL;
    MNP_TRY(make_network(&j));
    mnp_status status = train_simulated(&j);
    if (status == MNP_OK && curves->functions >= FINE_LEAST) status = divide(&j);
    if (status == MNP_OK && j.order) status = fine_tune(&j);
    snprintf(count, sizeof count, "%lld", (long long)curves->functions);
    if (status == MNP_OK) status = model_note_set(e, j.m, "train_functions", count);
    env_free(e, j.order);
    if (status == MNP_OK)
        *out = j.m;
    else
        model_destroy(j.m);
    return status;
}
