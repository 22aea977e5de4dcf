/* cell.c: one cell of table2, see table2.h. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "lab/table2/table2.h"
#include "util/text.h"

/* ---- keys ------------------------------------------------------------------------------------ */

void table2_cell_name(const table2 *s, table2_cell *cell) {
    const table2_row *row = &s->rows[cell->row];
    char label[64];
    snprintf(label, sizeof label, "%s", row->label);
    for (char *p = label; *p; p++)
        if (!isalnum((unsigned char)*p)) *p = '-';
    snprintf(cell->key, sizeof cell->key,
             "mnp %s; agent %s, model %016llx; wheel %g, %lld trials of %lld steps, seed %llu",
             mnp_version(), row->agent, (unsigned long long)s->hash[cell->row],
             s->delta[cell->delta], (long long)s->trials[cell->horizon],
             (long long)s->steps[cell->horizon], (unsigned long long)s->c->seed);
    snprintf(cell->stem, sizeof cell->stem, "%.1500s/cells/%s-%g-%lld-%08llx", s->dir, label,
             s->delta[cell->delta], (long long)s->steps[cell->horizon],
             (unsigned long long)(text_hash(0, cell->key, strlen(cell->key)) >> 32));
}

/* ---- files ----------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t offset;
} score_fields[] = {{"cumulative", offsetof(mnp_bandit_scores, cumulative)},
                    {"cumulative_sd", offsetof(mnp_bandit_scores, cumulative_sd)},
                    {"cumulative_se", offsetof(mnp_bandit_scores, cumulative_se)},
                    {"simple", offsetof(mnp_bandit_scores, simple)},
                    {"simple_sd", offsetof(mnp_bandit_scores, simple_sd)},
                    {"simple_se", offsetof(mnp_bandit_scores, simple_se)},
                    {"uniform_cumulative", offsetof(mnp_bandit_scores, uniform_cumulative)},
                    {"uniform_simple", offsetof(mnp_bandit_scores, uniform_simple)},
                    {"seconds", offsetof(mnp_bandit_scores, seconds)}};
enum { SCORE_FIELDS = sizeof score_fields / sizeof *score_fields };

static void put_numbers(cli_json *j, const char *key, const double *v, int n) {
    json_key(&j->w, key);
    json_array_begin(&j->w);
    for (int k = 0; k < n; k++) json_put_number(&j->w, v[k]);
    json_array_end(&j->w);
}

mnp_status table2_cell_write(table2 *s, const table2_cell *cell) {
    cli_json j;
    cli_json_begin(s->c, &j);
    cli_json_text(&j, "key", cell->key);
    cli_json_text(&j, "agent", s->rows[cell->row].label);
    cli_json_number(&j, "delta", s->delta[cell->delta]);
    for (int k = 0; k < SCORE_FIELDS; k++)
        cli_json_number(&j, score_fields[k].name,
                        *(const double *)((const char *)&cell->scores + score_fields[k].offset));
    put_numbers(&j, "step", cell->step, cell->n_curve);
    put_numbers(&j, "regret", cell->regret, cell->n_curve);
    put_numbers(&j, "sd", cell->sd, cell->n_curve);
    cli_json_text(&j, "decisions", cell->decisions);
    return repro_cell_close(s->c, &j, cell->stem);
}

static double number(const json_value *v) { /* NaN was written as null */
    return v && v->kind == JSON_NUMBER ? v->number : NAN;
}

static bool get_numbers(const json_value *root, const char *key, double *out, int *n) {
    const json_value *list = json_get(root, key), *v;
    int k = 0;
    for (; k < TABLE2_CURVE && (v = json_at(list, (size_t)k)); k++) out[k] = number(v);
    bool same = *n < 0 || *n == k;
    *n = k;
    return same && k > 0;
}

bool table2_cell_read(table2 *s, table2_cell *cell) {
    char path[REPRO_PATH + 8];
    json_doc *doc = NULL;
    snprintf(path, sizeof path, "%s.json", cell->stem);
    if (json_read(&s->c->env, path, 1 << 20, &doc) != MNP_OK) return false;
    const json_value *root = json_root(doc), *key = json_get(root, "key");
    const json_value *decisions = json_get(root, "decisions");
    bool ok = key && key->kind == JSON_STRING && strcmp(key->string, cell->key) == 0 && decisions &&
              decisions->kind == JSON_STRING;
    for (int k = 0; k < SCORE_FIELDS && ok; k++)
        *(double *)((char *)&cell->scores + score_fields[k].offset) =
            number(json_get(root, score_fields[k].name));
    cell->n_curve = -1;
    ok = ok && isfinite(cell->scores.cumulative) &&
         get_numbers(root, "step", cell->step, &cell->n_curve) &&
         get_numbers(root, "regret", cell->regret, &cell->n_curve) &&
         get_numbers(root, "sd", cell->sd, &cell->n_curve);
    if (ok) {
        snprintf(cell->decisions, sizeof cell->decisions, "%s", decisions->string);
        cell->state = REPRO_DONE;
    }
    json_destroy(doc);
    return ok;
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

static void show(void *user, int64_t done, int64_t total) {
    (void)total;
    progress_show(user, done, "");
}

static mnp_status play(table2 *s, table2_cell *cell, const char *what, plays *p) {
    cli *c = s->c;
    const table2_row *row = &s->rows[cell->row];
    const char *file = s->file[cell->row];
    mnp_model *m = NULL;
    progress bar;
    mnp_bandit_opts o = {.size = sizeof o,
                         .agent = row->agent,
                         .seed = c->seed,
                         .delta = s->delta[cell->delta],
                         .trials = s->trials[cell->horizon],
                         .steps = s->steps[cell->horizon],
                         .regret = p->regret,
                         .actions = p->actions,
                         .progress = show,
                         .progress_user = &bar};
    mnp_status status = MNP_OK;
    cell->scores = (mnp_bandit_scores){.size = sizeof cell->scores};
    if (mnp_agent_trains(row->agent))
        o.agent_file = file;
    else if (*file)
        status = mnp_model_load(c->ctx, file, &m);
    progress_begin(&bar, c, what, 0, o.trials);
    if (status == MNP_OK) status = mnp_bandit_wheel(c->ctx, m, &o, &cell->scores);
    progress_end(&bar);
    mnp_model_destroy(m);
    return status;
}

int table2_cell_run(table2 *s, table2_cell *cell, const char *what) {
    env *e = &s->c->env;
    size_t trials = (size_t)s->trials[cell->horizon];
    size_t words = trials * (size_t)s->steps[cell->horizon];
    plays p = {.regret = env_alloc(e, words, sizeof(double), "the regret of every step"),
               .sum = env_alloc(e, trials, sizeof(double), "the regret of every trial"),
               .actions = env_alloc(e, words, sizeof(int32_t), "the decisions")};
    mnp_status status = MNP_ENOMEM;
    int code = 0;
    if (!p.regret || !p.sum || !p.actions)
        code = cli_fail(s->c, EXIT_FAILED, "%s", e->error);
    else if ((status = play(s, cell, what, &p)) == MNP_ECANCELLED)
        code = EXIT_INTERRUPTED;
    else if (status != MNP_OK)
        code = cli_failed(s->c, status);
    if (code == 0) {
        cell->n_curve = 0;
        make_curve(s, cell, &p);
        keep_decisions(s, cell, &p);
        cell->state = REPRO_DONE;
        if (table2_cell_write(s, cell) != MNP_OK)
            code = s->c->status = cli_fail(s->c, EXIT_FAILED, "%s", e->error); /* cli_bad() */
    }
    env_free(e, p.regret);
    env_free(e, p.sum);
    env_free(e, p.actions);
    return code;
}
