/* cell.c: one cell of table2, see table2.h. */
#include <math.h>
#include <string.h>

#include "lab/table2/table2.h"

/* ---- files ----------------------------------------------------------------------------------- */

static const field fields[] = {
    {"cumulative", offsetof(mnp_bandit_scores, cumulative), false},
    {"cumulative_sd", offsetof(mnp_bandit_scores, cumulative_sd), false},
    {"cumulative_se", offsetof(mnp_bandit_scores, cumulative_se), false},
    {"simple", offsetof(mnp_bandit_scores, simple), false},
    {"simple_sd", offsetof(mnp_bandit_scores, simple_sd), false},
    {"simple_se", offsetof(mnp_bandit_scores, simple_se), false},
    {"uniform_cumulative", offsetof(mnp_bandit_scores, uniform_cumulative), false},
    {"uniform_simple", offsetof(mnp_bandit_scores, uniform_simple), false},
    {"seconds", offsetof(mnp_bandit_scores, seconds), false}};
enum { FIELDS = sizeof fields / sizeof *fields };

void table2_put_scores(cli_json *j, const mnp_bandit_scores *v) {
    fields_put(j, fields, FIELDS, v);
}

void table2_put(cli_json *j, const study *s, const void *cell) {
    const table2_cell *c = cell;
    cli_json_put(j, TEXT("agent", c->head.label),
                 NUMBER("delta", ((const table2 *)s)->delta[c->delta]));
    table2_put_scores(j, &c->scores);
    numbers_put(j, "step", c->step, c->n_curve);
    numbers_put(j, "regret", c->regret, c->n_curve);
    numbers_put(j, "sd", c->sd, c->n_curve);
    cli_json_put(j, TEXT("decisions", c->decisions));
}

bool table2_get(const json_value *root, const study *s, void *cell) {
    table2_cell *c = cell;
    (void)s;
    const json_value *decisions = json_get(root, "decisions");
    if (!decisions || decisions->kind != JSON_STRING ||
        !fields_get(root, fields, FIELDS, &c->scores) || !isfinite(c->scores.cumulative))
        return false;
    c->n_curve = numbers_get(root, "step", c->step, TABLE2_CURVE);
    snprintf(c->decisions, sizeof c->decisions, "%s", decisions->string);
    return c->n_curve > 0 && numbers_get(root, "regret", c->regret, TABLE2_CURVE) == c->n_curve &&
           numbers_get(root, "sd", c->sd, TABLE2_CURVE) == c->n_curve;
}

/* ---- playing --------------------------------------------------------------------------------- */

typedef struct plays {
    double *regret, *sum; /* (trials, steps), (trials) */
    int32_t *actions;     /* (trials, steps) */
} plays;

/* Cumulative regret at places that are even on a logarithmic axis, mean and sd over trials, in
 * percent of what the uniform agent has at the end. */
static void make_curve(const table2 *s, table2_cell *cell, const plays *p) {
    int64_t steps = s->steps[cell->horizon], trials = s->trials[cell->horizon];
    double unit = 100 / (cell->scores.uniform_cumulative * (double)steps), n = (double)trials;
    int64_t next = 10 < steps ? 10 : steps;
    for (int64_t t = 0; t < steps; t++) {
        for (int64_t k = 0; k < trials; k++) p->sum[k] += p->regret[k * steps + t];
        if (t + 1 < next || cell->n_curve == TABLE2_CURVE) continue;
        double mean = 0, squares = 0;
        for (int64_t k = 0; k < trials; k++) mean += unit * p->sum[k] / n;
        for (int64_t k = 0; k < trials; k++)
            squares += (unit * p->sum[k] - mean) * (unit * p->sum[k] - mean);
        cell->step[cell->n_curve] = (double)(t + 1);
        cell->regret[cell->n_curve] = mean;
        cell->sd[cell->n_curve++] = trials > 1 ? sqrt(squares / (n - 1)) : 0;
        double share = (double)cell->n_curve / (TABLE2_CURVE - 1);
        next = (int64_t)floor(10 * pow((double)steps / 10, share) + 0.5);
        if (next <= t + 1) next = t + 2;
        if (next > steps || share >= 1) next = steps;
    }
}

static void keep_decisions(const table2 *s, table2_cell *cell, const plays *p) {
    int64_t steps = s->steps[cell->horizon], shown = steps < TABLE2_SHOWN ? steps : TABLE2_SHOWN;
    for (int64_t k = 0; k < shown; k++)
        cell->decisions[k] = (char)('0' + p->actions[steps - shown + k]);
    cell->decisions[shown] = '\0';
}

static mnp_status play(const table2 *s, table2_cell *cell, plays *p) {
    cli *c = s->s.c;
    const char *file = s->file[cell->row], *agent = s->rows[cell->row].agent;
    mnp_model *m = NULL;
    progress bar;
    mnp_bandit_opts o = {.size = sizeof o,
                         .agent = agent,
                         .seed = c->seed,
                         .delta = s->delta[cell->delta],
                         .trials = s->trials[cell->horizon],
                         .steps = s->steps[cell->horizon],
                         .regret = p->regret,
                         .actions = p->actions,
                         .progress = study_progress,
                         .progress_user = &bar};
    mnp_status status = MNP_OK;
    cell->scores = (mnp_bandit_scores){.size = sizeof cell->scores};
    if (mnp_agent_trains(agent))
        o.agent_file = file;
    else if (*file)
        status = mnp_model_load(c->ctx, file, &m);
    progress_begin(&bar, c, s->s.what, 0, o.trials);
    if (status == MNP_OK) status = mnp_bandit_wheel(c->ctx, m, &o, &cell->scores);
    progress_end(&bar);
    mnp_model_destroy(m);
    return status;
}

int table2_play(study *of, void *at) {
    const table2 *s = (const table2 *)of;
    table2_cell *cell = at;
    env *e = &of->c->env;
    size_t trials = (size_t)s->trials[cell->horizon];
    size_t words = trials * (size_t)s->steps[cell->horizon];
    plays p = {.regret = env_alloc(e, words, sizeof(double), "the regret of every step"),
               .sum = env_alloc(e, trials, sizeof(double), "the regret of every trial"),
               .actions = env_alloc(e, words, sizeof(int32_t), "the decisions")};
    int code = 0;
    if (!p.regret || !p.sum || !p.actions)
        code = study_failed(of);
    else {
        mnp_status status = play(s, cell, &p);
        if (status != MNP_OK)
            code = status == MNP_ECANCELLED ? EXIT_INTERRUPTED : cli_failed(of->c, status);
    }
    if (code == 0) {
        cell->n_curve = 0;
        make_curve(s, cell, &p);
        keep_decisions(s, cell, &p);
        cell->head.seconds = cli_now() - of->started;
    }
    env_free(e, p.regret);
    env_free(e, p.sum);
    env_free(e, p.actions);
    return code;
}
