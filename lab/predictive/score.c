/* score.c: one cell of predictive, see predictive.h. */
#include <math.h>

#include "lab/predictive/predictive.h"
#include "mnp_check.h"

const char *number_name(number k) {
    static const char *const names[NUMBERS] = {
        "context", "targets",   "joint", "in_turn",     "order_sd",   "marginal",
        "crps",    "covered95", "kl",    "joint_error", "joint_bias", "joint_hurried"};
    return names[k];
}

bool number_is_of(bool joint, number k) {
    if (k <= N_JOINT) return true;
    return joint == (k >= N_JOINT_ERROR);
}

/* ---- what is told of each function ----------------------------------------------------------- */

typedef struct hearing {
    predictive *s;
    predictive_cell *cell;
    progress bar;
    bool exact; /* densities of targets are those of the model itself, not of draws */
    size_t at;  /* in the ceiling */
} hearing;

static double *place(predictive_cell *cell, number k, int64_t function) {
    return &cell->number[(int64_t)k * cell->functions + function];
}

static void put_head(predictive_cell *cell, const mnp_function_scores *f) {
    *place(cell, N_CONTEXT, f->function) = (double)f->context;
    *place(cell, N_TARGETS, f->function) = (double)f->targets;
}

/* All targets together: a bound, an exact density or one in turn. */
static void hear_joint(void *user, const mnp_function_scores *f) {
    const hearing *h = user;
    put_head(h->cell, f);
    *place(h->cell, N_JOINT, f->function) = f->joint;
    *place(h->cell, N_TURN, f->function) = f->in_turn;
    *place(h->cell, N_ORDERS, f->function) = f->order_sd;
}

static double mean(const double *v, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += v[i] / (double)count;
    return sum;
}

/* KL(truth || normal(mean, sd)) is the cross entropy, which two moments of the truth fix, less its
 * entropy; the mean over targets. */
static double divergence(const true_function *t, const mnp_function_scores *f) {
    const double half_log_2pi = 0.91893853320467274178;
    double sum = 0;
    if (!t->target || t->targets != f->targets) return NAN;
    for (int64_t i = 0; i < f->targets; i++) {
        const double *v = t->target + 5 * i; /* log-density, CRPS, mean, sd, entropy */
        double off = v[2] - f->mean[i], sd = f->sd[i];
        sum += half_log_2pi + log(sd) + (v[3] * v[3] + off * off) / (2 * sd * sd) - v[4];
    }
    return sum / (double)f->targets;
}

/* Targets one by one. */
static void hear_draws(void *user, const mnp_function_scores *f) {
    hearing *h = user;
    true_function t;
    put_head(h->cell, f);
    *place(h->cell, N_MARGINAL, f->function) =
        mean(h->exact ? f->mixture : f->marginal, f->targets);
    *place(h->cell, N_CRPS, f->function) = mean(f->crps, f->targets);
    *place(h->cell, N_COVERED, f->function) = f->covered95;
    if (ceiling_next(&h->s->ceiling, &h->at, &t))
        *place(h->cell, N_KL, f->function) = divergence(&t, f);
}

static void show(void *user, int64_t done, int64_t total) {
    study_progress(&((hearing *)user)->bar, done, total);
}

/* ---- scoring --------------------------------------------------------------------------------- */

mnp_status predictive_numbers(predictive *s, predictive_cell *cell, int64_t functions) {
    env *e = &s->s.c->env;
    env_free(e, cell->number);
    cell->functions = functions;
    cell->number = env_alloc(e, (size_t)(NUMBERS * functions) + 1, sizeof(double), "scores");
    if (!cell->number) {
        s->s.c->status = study_failed(&s->s);
        return MNP_ENOMEM;
    }
    for (int64_t i = 0; i < NUMBERS * functions; i++) cell->number[i] = NAN;
    return MNP_OK;
}

/* The truth's own cell: nothing where it has no density. */
static mnp_status score_truth(predictive *s, predictive_cell *cell) {
    const ceiling *c = &s->ceiling;
    size_t at = 0;
    true_function t;
    cell->ms = 1000 * c->seconds / (double)s->functions;
    MNP_TRY(predictive_numbers(s, cell, c->functions));
    for (int64_t i = 0; i < c->functions && ceiling_next(c, &at, &t); i++) {
        double marginal = 0, crps = 0, n = (double)t.targets;
        for (int64_t k = 0; t.target && k < t.targets; k++)
            marginal += t.target[5 * k], crps += t.target[5 * k + 1];
        *place(cell, N_CONTEXT, i) = t.context;
        *place(cell, N_TARGETS, i) = n;
        *place(cell, N_JOINT, i) = t.joint;
        if (!t.target) continue;
        *place(cell, N_MARGINAL, i) = marginal / n;
        *place(cell, N_CRPS, i) = crps / n;
        *place(cell, N_KL, i) = 0;
    }
    return MNP_OK;
}

static mnp_eval_opts eval_options(const predictive *s, const predictive_cell *cell, hearing *h,
                                  bool network) {
    cli *c = s->s.c;
    int64_t size = task_size(s, cell->task, cell->size);
    return (mnp_eval_opts){.size = sizeof(mnp_eval_opts),
                           .functions = cell->functions,
                           .samples = s->samples,
                           .draws = -1,
                           .context_lo = size,
                           .context_hi = size,
                           .seed = c->seed,
                           .device =
                               network ? cli_device(c) : "cpu", /* the others have no kernels */
                           .progress = show,
                           .progress_user = h,
                           .each_user = h,
                           .no_truth = true};
}

static mnp_status score_joint(predictive *s, const mnp_model *m, hearing *h, mnp_eval_opts o,
                              bool factorises) {
    mnp_scores r = {.size = sizeof r};
    o.each = hear_joint;
    if (factorises) o.orders = s->orders, o.order = MNP_ORDER_RANDOM;
    progress_begin(&h->bar, s->s.c, s->s.what, 0, o.functions);
    mnp_status status = mnp_evaluate(s->s.c->ctx, m, s->test, &o, &r);
    progress_end(&h->bar);
    h->exact = r.samples == 0;
    return status;
}

static mnp_status score_draws(predictive *s, const mnp_model *m, hearing *h, mnp_eval_opts o,
                              bool exact) {
    mnp_predictive r = {.size = sizeof r};
    mnp_predictive_opts how = {
        .size = sizeof how, .draws = s->draws, .condition = exact ? MNP_EXACT : MNP_NETWORK};
    o.each = hear_draws;
    progress_begin(&h->bar, s->s.c, s->s.what, 0, o.functions);
    double began = cli_now();
    mnp_status status = mnp_evaluate_draws(s->s.c->ctx, m, s->test, &o, &how, &r, 1);
    h->cell->ms = 1000 * (cli_now() - began) / (double)o.functions;
    progress_end(&h->bar);
    return status;
}

/* How far the model's conditionals are from being those of one process. */
static mnp_status score_laws(predictive *s, const mnp_model *m, predictive_cell *cell, bool exact,
                             const char *device) {
    mnp_laws_opts o = {.size = sizeof o,
                       .condition = exact ? MNP_EXACT : MNP_NETWORK,
                       .functions = s->law_functions,
                       .context = task_size(s, cell->task, cell->size),
                       .targets = 8,
                       .samples = exact ? 0 : s->samples,
                       .seed = s->s.c->seed,
                       .device = device};
    mnp_laws r = {.size = sizeof r};
    if (s->law_functions == 0 || cell->size > 0) return MNP_OK;
    MNP_TRY(mnp_check_laws(s->s.c->ctx, m, s->test, &o, &r));
    cell->gap = r.conditional;
    cell->gap_se = r.conditional_se;
    return MNP_OK;
}

static mnp_status score_model(predictive *s, predictive_cell *cell) {
    const predictive_row *row = &s->row[cell->row];
    const predictive_model *at = predictive_model_of(s, cell->row, cell->task);
    mnp_model *m = NULL;
    hearing h = {.s = s, .cell = cell};
    MNP_TRY(predictive_numbers(s, cell, row->exact ? s->exact_functions : s->functions));
    MNP_TRY(mnp_model_load(s->s.c->ctx, at->path, &m));
    mnp_eval_opts o = eval_options(s, cell, &h, at->network);
    mnp_status status = MNP_OK;
    if (!row->exact) status = score_joint(s, m, &h, o, at->factorises);
    if (status == MNP_OK) status = score_draws(s, m, &h, o, row->exact);
    if (status == MNP_OK) status = score_laws(s, m, cell, row->exact, o.device);
    mnp_model_destroy(m);
    return status;
}

static mnp_status score_cell(predictive *s, predictive_cell *cell) {
    MNP_TRY(ceiling_find(s, cell->task, cell->size));
    bool truth = row_is_truth(&s->row[cell->row]);
    mnp_status status = truth ? score_truth(s, cell) : score_model(s, cell);
    cell->head.seconds = cli_now() - s->s.started;
    return status;
}

int predictive_score(study *of, void *at) {
    predictive *s = (predictive *)of;
    predictive_cell *cell = at;
    cell->ms = cell->gap = cell->gap_se = NAN;
    mnp_status status = predictive_test(s, cell->task);
    if (status == MNP_OK)
        status = cell->joint ? predictive_score_joint(s, cell) : score_cell(s, cell);
    if (status == MNP_ECANCELLED) return EXIT_INTERRUPTED;
    return status == MNP_OK ? 0 : cli_failed(of->c, status);
}

/* ---- its file -------------------------------------------------------------------------------- */

static const field fields[] = {{"seconds", offsetof(predictive_cell, head.seconds), false},
                               {"ms", offsetof(predictive_cell, ms), false},
                               {"gap", offsetof(predictive_cell, gap), false},
                               {"gap_se", offsetof(predictive_cell, gap_se), false},
                               {"functions", offsetof(predictive_cell, functions), true}};
static const field joint_fields[] = {{"seconds", offsetof(predictive_cell, head.seconds), false},
                                     {"ms", offsetof(predictive_cell, ms), false},
                                     {"run", offsetof(predictive_cell, run), true},
                                     {"functions", offsetof(predictive_cell, functions), true}};
enum { FIELDS = sizeof fields / sizeof *fields };
enum { JOINT_FIELDS = sizeof joint_fields / sizeof *joint_fields };

static const field *fields_of(const predictive_cell *cell, size_t *count) {
    *count = cell->joint ? JOINT_FIELDS : FIELDS;
    return cell->joint ? joint_fields : fields;
}

void predictive_put(cli_json *j, const study *s, const void *at) {
    const predictive_cell *cell = at;
    size_t count;
    const field *list = fields_of(cell, &count);
    (void)s;
    fields_put(j, list, count, cell);
    for (int k = 0; k < NUMBERS; k++)
        if (number_is_of(cell->joint, (number)k))
            numbers_put(j, number_name((number)k), numbers_of(cell, (number)k),
                        (int)cell->functions);
}

bool predictive_get(const json_value *root, const study *of, void *at) {
    predictive *s = (predictive *)of;
    predictive_cell *cell = at, read = *cell;
    size_t count;
    const field *list = fields_of(cell, &count);
    if (!fields_get(root, list, count, &read) || read.functions > s->functions) return false;
    if (predictive_numbers(s, cell, read.functions) != MNP_OK) return false;
    for (int k = 0; k < NUMBERS; k++)
        if (number_is_of(cell->joint, (number)k) &&
            numbers_get(root, number_name((number)k), cell->number + k * cell->functions,
                        (int)cell->functions) != cell->functions)
            return false;
    read.number = cell->number;
    *cell = read;
    return true;
}
