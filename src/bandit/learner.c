/* learner.c: see learner.h. Training runs on the CPU and for this process alone. */
#include "bandit/learner.h"

#include <math.h>
#include <string.h>

#include "util/least.h"
#include "util/text.h"

const learner_def *learner_find(const char *kind) {
    static const learner_def *const all[] = {&learner_maml, &learner_cbruno};
    for (size_t k = 0; kind && k < sizeof all / sizeof *all; k++)
        if (strcmp(all[k]->kind, kind) == 0) return all[k];
    return NULL;
}

option_view learner_view(const learner_def *def, learner_opts *o) {
    return (option_view){def->options, def->n_options, o};
}

/* ---- making ---------------------------------------------------------------------------------- */

mnp_status learner_declare(env *e, const learner_def *def, const learner_opts *o, int32_t inputs,
                           learner **out) {
    *out = NULL;
    if (inputs > LEARNER_INPUTS_MAX)
        return env_fail(e, MNP_EINVAL, "%d inputs are too many for this agent; %d are possible",
                        (int)inputs, LEARNER_INPUTS_MAX);
    learner *l = env_alloc(e, 1, sizeof *l, "an agent");
    if (!l) return MNP_ENOMEM;
    *l = (learner){.e = e, .def = def, .opts = *o, .inputs = inputs};
    learner_scale_none(&l->scale);
    if (def->start) def->start(l);
    graph g;
    params_init(&l->params);
    graph_init(&g, e, &l->params);
    def->record(&g, l);
    mnp_status status = g.status;
    graph_free(&g);
    params_seal(&l->params);
    if (status == MNP_OK)
        *out = l;
    else
        learner_destroy(l);
    return status;
}

mnp_status learner_create(env *e, const learner_def *def, const learner_opts *o, int32_t inputs,
                          uint64_t seed, learner **out) {
    MNP_TRY(learner_declare(e, def, o, inputs, out));
    mnp_status status = learner_start(*out, seed);
    if (status == MNP_OK) return MNP_OK;
    learner_destroy(*out);
    *out = NULL;
    return status;
}

void learner_destroy(learner *l) {
    if (!l) return;
    params_free(l->e, &l->params);
    env_free(l->e, l->weights);
    env_free(l->e, l->data);
    env_free(l->e, l->x_names);
    env_free(l->e, l);
}

/* ---- the network ----------------------------------------------------------------------------- */

static val layer(graph *g, val x, int k, const learner_head *to, act_kind act) {
    char w[32], b[32];
    const param_init zero = {.kind = INIT_ZERO}; /* see learner_start() */
    snprintf(w, sizeof w, "w%d%s", k, to->name);
    snprintf(b, sizeof b, "b%d%s", k, to->name);
    val weight = graph_param(g, w, graph_at(g, x)->cols, to->cols, zero); /* before the bias */
    val bias = graph_param(g, b, 1, to->cols, zero);
    return op_linear(g, x, weight, bias, act, VAL_NONE);
}

void learner_net(graph *g, const learner *l, val x, const learner_head *heads, int n_heads,
                 val *out) {
    const learner_head hidden = {"", (int32_t)l->opts.hidden};
    int last = (int)l->opts.layers - 1;
    for (int k = 0; k < last; k++) x = layer(g, x, k, &hidden, ACT_RELU);
    for (int k = 0; k < n_heads; k++) out[k] = layer(g, x, last, &heads[k], ACT_NONE);
}

typedef struct recording {
    learner_record record;
    const learner *l;
} recording;

static void record_it(graph *g, const model_spec *s, void *arg) {
    const recording *r = arg;
    (void)s; /* there is no model */
    r->record(g, r->l);
}

mnp_status learner_runner(env *e, const learner *l, learner_record record, int64_t rows, pool *pool,
                          int32_t slots, runner **out) {
    runner_opts o = {.pool = pool, .capacity = {rows, 0, 1}, .slots = slots};
    recording r = {record, l};
    return runner_make_over(e, &l->params, l->weights, NULL, &o, record_it, &r, out);
}

mnp_status learner_optimiser(learner *l, learner_record record, int64_t rows, double clip,
                             pool *pool, float **moments, runner **out) {
    size_t words = (size_t)l->params.words;
    MNP_TRY(learner_runner(l->e, l, record, rows, pool, 0, out));
    *moments = env_alloc(l->e, 2 * words, sizeof **moments, "an optimiser's moments");
    if (!*moments) return MNP_ENOMEM;
    (*out)->step = (step_block){.total = l->opts.steps,
                                .schedule = 1,
                                .rate_max = l->opts.lr,
                                .beta1 = 0.9,
                                .beta2 = 0.999,
                                .eps = 1e-8,
                                .clip = clip,
                                .bad_item = -1};
    (*out)->io.moment1 = *moments, (*out)->io.moment2 = *moments + words;
    return MNP_OK;
}

/* ---- episodes -------------------------------------------------------------------------------- */

mnp_status episodes_create(env *e, const dataset *d, int64_t count, episodes *out) {
    *out = (episodes){.count = count, .longest = d->longest};
    size_t rows = (size_t)(count * d->longest);
    out->x = env_alloc(e, rows * (size_t)d->x_dim, sizeof *out->x, "episodes");
    out->y = env_alloc(e, rows, sizeof *out->y, "episodes");
    out->points = env_alloc(e, 2 * (size_t)count, sizeof *out->points, "episodes");
    if (out->points) out->context = out->points + count;
    if (out->x && out->y && out->points) return MNP_OK;
    episodes_free(e, out);
    return MNP_ENOMEM;
}

void episodes_free(env *e, episodes *ep) {
    env_free(e, ep->x);
    env_free(e, ep->y);
    env_free(e, ep->points);
    *ep = (episodes){0};
}

static int64_t within(int64_t v, int64_t lo, int64_t hi) {
    return v < lo ? lo : v > hi ? hi : v;
}

static void draw_one(episodes *ep, const dataset *d, const learner_scale *scale, uint64_t seed,
                     int64_t step, int64_t item) {
    rng_at at = {.purpose = RNG_SPLIT, .step = (uint32_t)step, .function = (uint32_t)item};
    rng_stream s = rng_stream_at((rng_key){seed}, at);
    int64_t f = (int64_t)rng_below(&s, (uint64_t)d->functions), first = d->start[f];
    int64_t n = d->start[f + 1] - first;
    int64_t hi = within(d->policy.context_hi, 1, n - 1), lo = within(d->policy.context_lo, 1, hi);
    int64_t context = lo + (int64_t)rng_below(&s, (uint64_t)(hi - lo + 1));
    ep->context[item] = context;
    ep->points[item] = within(context + EPISODE_TARGETS, 0, n);
    at.sample = 1; /* a place of its own beside the stream's */
    rng_perm order = rng_perm_make((rng_key){seed}, at, (uint64_t)n);
    double *x = ep->x + item * ep->longest * d->x_dim, *y = ep->y + item * ep->longest;
    for (int64_t i = 0; i < ep->points[item]; i++) {
        int64_t from = first + (int64_t)rng_perm_apply(&order, (uint64_t)i);
        for (int32_t k = 0; k < d->x_dim; k++)
            x[i * d->x_dim + k] =
                learner_x(scale, k, (double)d->x[from * d->x_dim + k] + d->x_origin[k]);
        y[i] = learner_y(scale, dataset_raw_y(d, from));
    }
}

void episodes_draw(episodes *ep, const dataset *d, const learner_scale *scale, uint64_t seed,
                   int64_t step) {
    for (int64_t item = 0; item < ep->count; item++) draw_one(ep, d, scale, seed, step, item);
}

/* ---- scales ---------------------------------------------------------------------------------- */

void learner_scale_none(learner_scale *s) {
    s->y[0] = 0;
    s->y[1] = 1;
    for (int k = 0; k < LEARNER_INPUTS_MAX; k++) s->x[k][0] = 0, s->x[k][1] = 1;
}

/* Mean and standard deviation; 1 where all are equal. */
static void measure(const float *values, int64_t n, int64_t stride, double out[2]) {
    double sum = 0, squares = 0, count = (double)n;
    for (int64_t i = 0; i < n; i++) sum += (double)values[i * stride];
    for (int64_t i = 0; i < n; i++) {
        double off = (double)values[i * stride] - sum / count;
        squares += off * off;
    }
    out[0] = sum / count;
    out[1] = squares > 0 ? sqrt(squares / count) : 1;
}

static void scale_of(const dataset *d, learner_scale *out) {
    learner_scale_none(out);
    measure(d->y, d->points, 1, out->y);
    out->y[0] += d->y_origin;
    for (int32_t k = 0; k < d->x_dim && !d->builtin; k++) {
        measure(d->x + k, d->points, d->x_dim, out->x[k]);
        out->x[k][0] += d->x_origin[k];
    }
}

/* ---- training -------------------------------------------------------------------------------- */

static mnp_status note_origin(learner *l, const dataset *d) {
    buf names;
    buf_init(&names, l->e);
    for (int32_t k = 0; k < d->x_dim; k++) buf_printf(&names, "%s%s", k ? "," : "", d->x_names[k]);
    env_free(l->e, l->data);
    env_free(l->e, l->x_names);
    l->data = env_strdup(l->e, d->name);
    l->x_names = env_strdup(l->e, buf_str(&names));
    mnp_status status = names.status;
    buf_free(&names);
    return l->data && l->x_names ? status : MNP_ENOMEM;
}

mnp_status learner_train(learner *l, const dataset *d, uint64_t seed, pool *pool,
                         const learner_watch *watch) {
    env *e = l->e, alone = *e;
    if (d->x_dim != l->inputs)
        return env_fail(e, MNP_EINVAL, "the agent has %d inputs, the data %d", (int)l->inputs,
                        (int)d->x_dim);
    for (int64_t f = 0; f < d->functions; f++)
        if (d->start[f + 1] - d->start[f] < 2)
            return env_fail(e, MNP_EINVAL,
                            "function %lld has one point: an agent learns from functions of two or "
                            "more, some of them given, some asked for",
                            (long long)f);
    scale_of(d, &l->scale);
    MNP_TRY(note_origin(l, d));
    alone.comm = NULL; /* in a job of many ranks, too */
    l->e = &alone;
    mnp_status status = l->def->train(l, d, seed, pool, watch);
    l->e = e;
    return status == MNP_OK ? MNP_OK : env_fail(e, status, "%s", alone.error);
}

enum { BAD_STEPS_MAX = 100 }; /* in a row */

mnp_status learner_run(const learner *l, mnp_status (*step)(void *self, int64_t k, double *loss),
                       void *self, const learner_watch *watch) {
    int64_t steps = l->opts.steps, bad = 0;
    for (int64_t k = 0; k < steps; k++) {
        double loss = NAN;
        mnp_status status = step(self, k, &loss);
        bad = status == MNP_ENUMERIC ? bad + 1 : 0;
        if (bad == least(steps, BAD_STEPS_MAX))
            return env_fail(l->e, MNP_ENUMERIC,
                            "the training diverged: no finite loss in %lld steps up to step %lld "
                            "(lower lr, or maml's inner_rate)",
                            (long long)bad, (long long)k + 1);
        if (status != MNP_ENUMERIC) MNP_TRY(status);
        if (env_cancelled(l->e)) return env_fail(l->e, MNP_ECANCELLED, "cancelled");
        if (watch && watch->progress) watch->progress(watch->user, k + 1, steps, loss);
    }
    return MNP_OK;
}
