/* write.c: the tables of predictive as Markdown, JSON and CSV. */
#include <math.h>
#include <string.h>

#include "lab/predictive/predictive.h"

/* ---- one row of a table ---------------------------------------------------------------------- */

typedef struct line {
    const predictive_cell *c, *truth, *base; /* the last two may be NULL */
    const predictive_row *row;
    number joint;
    paired_mean marginal, marginal_short, together, together_short, crps, crps_true;
    paired_mean marginal_more, together_more; /* than the base */
    paired_mean covered, kl;
    double order_sd;
} line;

static int find_row(const predictive *s, const char *label) {
    for (int r = 0; r < s->n_rows; r++)
        if (strcmp(s->row[r].label, label) == 0) return r;
    return -1;
}

/* What the others are compared with: mnp, or the first model there is. */
static int base_row(const predictive *s) {
    int r = find_row(s, "mnp");
    for (int k = 0; k < s->n_rows && r < 0; k++)
        if (!row_is_truth(&s->row[k])) r = k;
    return r;
}

static double root_mean_square(const predictive_cell *c, number k) {
    double sum = 0, count = 0;
    for (int64_t i = 0; i < c->functions; i++) {
        double v = numbers_of(c, k)[i];
        if (!isnan(v)) sum += v * v, count++;
    }
    return count > 0 ? sqrt(sum / count) : NAN;
}

static const paired_mean none = {NAN, NAN, 0};

static bool make_line(const predictive *s, int row, int task, int size, line *l) {
    int truth = predictive_truth_row(s), base = base_row(s);
    *l = (line){.c = predictive_done(s, row, task, size), .row = &s->row[row]};
    if (!l->c) return false;
    l->truth = truth < 0 ? NULL : predictive_done(s, truth, task, size);
    l->base = base < 0 || base == row ? NULL : predictive_done(s, base, task, size);
    const predictive_cell *c = l->c;
    l->joint = joint_of(s, c);
    l->marginal = mean_of(c, N_MARGINAL);
    l->together = mean_of(c, l->joint);
    l->crps = mean_of(c, N_CRPS);
    l->covered = mean_of(c, N_COVERED);
    l->kl = mean_of(c, N_KL);
    l->order_sd = root_mean_square(c, N_ORDERS);
    l->marginal_short = l->together_short = l->crps_true = none;
    l->marginal_more = l->together_more = none;
    if (l->truth) {
        int64_t count = c->functions < l->truth->functions ? c->functions : l->truth->functions;
        l->marginal_short = short_of(c, N_MARGINAL, l->truth, N_MARGINAL);
        l->together_short = short_of(c, l->joint, l->truth, N_JOINT);
        l->crps_true = paired_mean_of(numbers_of(l->truth, N_CRPS), count);
    }
    if (l->base && !row_is_truth(l->row)) {
        l->marginal_more = short_of(l->base, N_MARGINAL, c, N_MARGINAL);
        l->together_more = short_of(l->base, joint_of(s, l->base), c, l->joint);
    }
    return true;
}

static void put_given(char out[32], const predictive *s, int task, int size) {
    int64_t points = task_size(s, task, size);
    if (points == OWN_SIZES)
        snprintf(out, 32, "own");
    else
        snprintf(out, 32, "%lld", (long long)points);
}

/* ---- Markdown -------------------------------------------------------------------------------- */

static void put(buf *b, paired_mean v, int digits) {
    buf_text(b, " ");
    md_pm(b, v.mean, v.se, digits);
    buf_text(b, " |");
}

static void put_number(buf *b, double v, int digits) {
    buf_text(b, " ");
    md_pm(b, v, NAN, digits);
    buf_text(b, " |");
}

static void put_line(buf *b, const predictive *s, const line *l) {
    char given[32];
    put_given(given, s, l->c->task, l->c->size);
    buf_printf(b, "| %s | %s | %lld", given, l->row->label, (long long)l->c->functions);
    if (l->together.count > 0 && l->together.count < l->c->functions)
        buf_printf(b, ", together %lld", (long long)l->together.count);
    buf_text(b, " |");
    bool truth = row_is_truth(l->row);
    put(b, l->marginal, 3);
    put(b, truth ? none : l->marginal_short, 3);
    put(b, l->marginal_more, 3);
    put(b, l->together, 3);
    put(b, truth ? none : l->together_short, 3);
    put(b, l->together_more, 3);
    put_number(b, l->order_sd, 3);
    put_number(b, l->crps.mean, 4);
    put_number(b, truth ? NAN : l->crps.mean / l->crps_true.mean, 3);
    put_number(b, 100 * l->covered.mean, 1);
    put_number(b, truth ? NAN : l->kl.mean, 3);
    put_number(b, l->c->ms, 2);
    buf_text(b, "\n");
}

static void put_quoted(buf *b, const char *task) {
    const quoted *q;
    for (int k = 0; (q = quoted_at(k)); k++)
        if (strcmp(q->task, task) == 0)
            buf_printf(b, "- *%s (quoted)*: %s, %s. %s; %s\n", q->model, q->value, q->what,
                       q->source, q->note);
}

static void put_task(buf *b, const predictive *s, int task) {
    int base = base_row(s);
    line l;
    buf_printf(b, "## %s\n\n", s->tasks.at[task]);
    buf_printf(
        b,
        "| given | model | functions | each target | short of truth | more than %s | together "
        "| short of truth | more than %s | orders sd | CRPS | over truth's | in the 95 %% "
        "band, %% | KL | ms |\n",
        base < 0 ? "-" : s->row[base].label, base < 0 ? "-" : s->row[base].label);
    md_rule(b, 15);
    buf_text(b, "\n");
    for (int k = 0; k < task_sizes(s, task); k++)
        for (int r = 0; r < s->n_rows; r++)
            if (make_line(s, r, task, k, &l)) put_line(b, s, &l);
    buf_text(b, "\n");
    put_quoted(b, s->tasks.at[task]);
    for (int r = 0; r < s->n_rows; r++) {
        const predictive_model *m = predictive_model_of(s, r, task);
        if (*m->why) buf_printf(b, "- no %s: %s\n", s->row[r].label, m->why);
    }
    buf_text(b, "\n");
}

/* One number of all models on all tasks, at the middle size. */
static void put_overview(buf *b, const predictive *s, const char *name, bool together) {
    line l;
    int middle = s->n_sizes / 2;
    buf_printf(b, "## %s\n\n| model |", name);
    for (int t = 0; t < s->tasks.count; t++) buf_printf(b, " %s |", s->tasks.at[t]);
    buf_text(b, "\n");
    md_rule(b, s->tasks.count + 1);
    buf_text(b, "\n");
    for (int r = 0; r < s->n_rows; r++) {
        buf_printf(b, "| %s |", s->row[r].label);
        for (int t = 0; t < s->tasks.count; t++) {
            int size = middle < task_sizes(s, t) ? middle : 0;
            bool there = make_line(s, r, t, size, &l);
            put(b, there ? together ? l.together : l.marginal : none, 3);
        }
        buf_text(b, "\n");
    }
    buf_text(b, "\n");
}

static void put_models(buf *b, const predictive *s) {
    buf_text(b, "## Models\n\n| model | task | file | parameters | conditional gap |\n");
    md_rule(b, 5);
    buf_text(b, "\n");
    for (int t = 0; t < s->tasks.count; t++)
        for (int r = 0; r < s->n_rows; r++) {
            const predictive_model *m = predictive_model_of(s, r, t);
            const predictive_cell *c = predictive_done(s, r, t, 0);
            if (!*m->path || *m->why) continue;
            buf_printf(b, "| %s | %s | %s | %lld | ", s->row[r].label, s->tasks.at[t], m->path,
                       (long long)m->parameters);
            md_pm(b, c ? c->gap : NAN, c ? c->gap_se : NAN, 4);
            buf_text(b, " |\n");
        }
    buf_text(b, "\n");
}

void predictive_markdown(buf *b, const study *of) {
    const predictive *s = (const predictive *)of;
    char together[STUDY_TEXT] = "";
    if (s->joint)
        snprintf(together, sizeof together,
                 "; all targets together: the first %lld, by %lld runs of %lld particles",
                 (long long)s->joint_functions, (long long)s->joint, (long long)s->joint_particles);
    md_title(b, of, "Predictions from a few points",
             "tiny models, few steps, few functions. The tables show that everything runs.");
    buf_printf(b,
               "Nats per target, higher is better; mean ± standard error over functions. %lld test "
               "functions of seed %llu, the same for all models (mnp-exact: the first %lld%s), "
               "%lld draws, bounds with %lld samples, %lld random orders, mnp %s. "
               "lab/predictive/README.md says what each column is.\n\n",
               (long long)s->functions, (unsigned long long)of->c->seed,
               (long long)s->exact_functions, together, (long long)s->draws, (long long)s->samples,
               (long long)s->orders, mnp_version());
    char name[128];
    for (int together = 0; together < 2; together++) {
        snprintf(name, sizeof name, "%s, given %lld points or the task's own number",
                 together ? "All targets together" : "Each target by itself",
                 (long long)s->sizes[s->n_sizes / 2]);
        put_overview(b, s, name, together);
    }
    for (int t = 0; t < s->tasks.count; t++) put_task(b, s, t);
    put_models(b, s);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static const char *how_together(const line *l) {
    if (row_is_truth(l->row)) return "truth";
    if (l->row->exact) return "particles";
    return l->joint == N_TURN ? "in turn" : "bound or exact";
}

#define PAIR(name, v) NUMBER(name, (v).mean), NUMBER(name "_se", (v).se)

static paired_mean within(const line *l, number k, number k_true, bool lacking, double lo,
                          double hi) {
    const predictive_cell *c = l->c, *t = l->truth;
    const double *v = numbers_of(c, k), *m = numbers_of(c, N_CONTEXT);
    if (!lacking) return paired_within(NULL, v, m, lo, hi, c->functions);
    if (!t || t->functions < c->functions) return none;
    return paired_within(v, numbers_of(t, k_true), m, lo, hi, c->functions);
}

/* By context size, for tasks whose functions have contexts of many sizes. */
static void json_groups(cli_json *j, const line *l) {
    double lo[GROUPS], hi[GROUPS];
    int count = groups_of(l->c, lo, hi);
    list_begin(j, "by_context");
    for (int k = 0; k < count; k++) {
        paired_mean marginal = within(l, N_MARGINAL, N_MARGINAL, false, lo[k], hi[k]);
        paired_mean lacks = within(l, N_MARGINAL, N_MARGINAL, true, lo[k], hi[k]);
        paired_mean joint = within(l, l->joint, N_JOINT, false, lo[k], hi[k]);
        paired_mean joint_lacks = within(l, l->joint, N_JOINT, true, lo[k], hi[k]);
        json_object_begin(&j->w);
        cli_json_put(j, INTEGER("lo", lo[k]), INTEGER("hi", hi[k]),
                     INTEGER("functions", marginal.count), PAIR("marginal", marginal),
                     PAIR("marginal_short", lacks), PAIR("joint", joint),
                     PAIR("joint_short", joint_lacks));
        json_object_end(&j->w);
    }
    json_array_end(&j->w);
}

/* How exact a joint score by particles is: the standard error of its mean that comes from the runs,
 * its estimated bias, the share of runs whose gradients did not last. */
static void json_particles(cli_json *j, const predictive_cell *c) {
    double bias = mean_of(c, N_JOINT_BIAS).mean, hurried = mean_of(c, N_JOINT_HURRIED).mean;
    paired_mean joint = mean_of(c, N_JOINT);
    double error = root_mean_square(c, N_JOINT_ERROR) / sqrt((double)joint.count);
    cli_json_put(j, NUMBER("joint_error", joint.count ? error : NAN), NUMBER("joint_bias", bias),
                 NUMBER("joint_hurried", hurried), NUMBER("joint_ms", c->joint_ms));
}

static void json_cell(cli_json *j, const predictive *s, const predictive_cell *c, const line *l) {
    char given[32];
    const predictive_model *m = predictive_model_of(s, c->row, c->task);
    put_given(given, s, c->task, c->size);
    json_object_begin(&j->w);
    cli_json_put(j, TEXT("task", s->tasks.at[c->task]), TEXT("given", given),
                 TEXT("model", s->row[c->row].label), TEXT("state", cell_state_name(c->head.state)),
                 TEXT("why", *m->why ? m->why : NULL));
    if (l->c)
        cli_json_put(j, INTEGER("functions", c->functions), INTEGER("parameters", m->parameters),
                     PAIR("marginal", l->marginal), PAIR("marginal_short", l->marginal_short),
                     PAIR("joint", l->together), TEXT("joint_is", how_together(l)),
                     PAIR("joint_short", l->together_short),
                     INTEGER("joint_functions", l->together.count), NUMBER("order_sd", l->order_sd),
                     NUMBER("crps", l->crps.mean), NUMBER("crps_se", l->crps.se),
                     NUMBER("crps_true", l->crps_true.mean), NUMBER("coverage95", l->covered.mean),
                     PAIR("kl_true", l->kl), NUMBER("ms", c->ms), NUMBER("gap", c->gap),
                     NUMBER("gap_se", c->gap_se));
    if (l->c && l->row->exact) json_particles(j, c);
    if (l->c && task_size(s, c->task, c->size) == OWN_SIZES) json_groups(j, l);
    json_object_end(&j->w);
}

/* Every two models on the same functions: b - a. */
static void json_differences(cli_json *j, const predictive *s, int task, int size) {
    char given[32];
    put_given(given, s, task, size);
    for (int a = 0; a < s->n_rows; a++)
        for (int b = a + 1; b < s->n_rows; b++) {
            line la, lb;
            if (!make_line(s, a, task, size, &la) || !make_line(s, b, task, size, &lb)) continue;
            paired_mean marginal = short_of(la.c, N_MARGINAL, lb.c, N_MARGINAL);
            paired_mean joint = short_of(la.c, la.joint, lb.c, lb.joint);
            paired_mean crps = short_of(la.c, N_CRPS, lb.c, N_CRPS);
            json_object_begin(&j->w);
            cli_json_put(j, TEXT("task", s->tasks.at[task]), TEXT("given", given),
                         TEXT("from", la.row->label), TEXT("to", lb.row->label),
                         INTEGER("functions", marginal.count), PAIR("marginal", marginal),
                         INTEGER("joint_functions", joint.count), PAIR("joint", joint),
                         PAIR("crps", crps));
            json_object_end(&j->w);
        }
}

static void json_quoted(cli_json *j, const quoted *q) {
    json_object_begin(&j->w);
    cli_json_put(j, TEXT("task", q->task), TEXT("model", q->model), TEXT("what", q->what),
                 TEXT("value", q->value), TEXT("source", q->source), TEXT("note", q->note));
    json_object_end(&j->w);
}

void predictive_json(cli_json *j, const study *of) {
    const predictive *s = (const predictive *)of;
    const quoted *q;
    cli_json_put(j, INTEGER("seed", of->c->seed), INTEGER("functions", s->functions),
                 INTEGER("exact_functions", s->exact_functions), INTEGER("draws", s->draws),
                 INTEGER("samples", s->samples), INTEGER("orders", s->orders),
                 INTEGER("joint_runs", s->joint), INTEGER("joint_functions", s->joint_functions),
                 INTEGER("joint_particles", s->joint_particles));
    list_begin(j, "cells");
    for (int k = 0; k < of->count; k++) {
        const predictive_cell *c = predictive_at(of, k);
        line l;
        if (c->joint) continue; /* they stand in the others */
        make_line(s, c->row, c->task, c->size, &l);
        json_cell(j, s, c, &l);
    }
    json_array_end(&j->w);
    list_begin(j, "differences");
    for (int t = 0; t < s->tasks.count; t++)
        for (int k = 0; k < task_sizes(s, t); k++) json_differences(j, s, t, k);
    json_array_end(&j->w);
    list_begin(j, "quoted");
    for (int k = 0; (q = quoted_at(k)); k++) json_quoted(j, q);
    json_array_end(&j->w);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static void put_functions(buf *b, const predictive *s, const predictive_cell *c) {
    char given[32];
    put_given(given, s, c->task, c->size);
    for (int64_t i = 0; i < c->functions; i++) {
        buf_printf(b, "%s,%s,%lld", s->row[c->row].label, given, (long long)i);
        for (int k = 0; k < NUMBERS; k++) {
            double v = numbers_of(c, (number)k)[i];
            buf_text(b, ",");
            if (!isnan(v)) buf_double(b, v);
        }
        buf_text(b, "\n");
    }
}

static mnp_status write_functions(const predictive *s, int task) {
    char path[STUDY_PATH], name[128];
    buf b;
    snprintf(name, sizeof name, "%.100s", s->tasks.at[task]);
    study_plain(name);
    snprintf(path, sizeof path, "%.1500s/functions-%s.csv", s->s.dir, name);
    buf_init(&b, &s->s.c->env);
    buf_text(&b, "model,given,function");
    for (int k = 0; k < NUMBERS; k++) buf_printf(&b, ",%s", number_name((number)k));
    buf_text(&b, "\n");
    for (int size = 0; size < task_sizes(s, task); size++)
        for (int r = 0; r < s->n_rows; r++) {
            const predictive_cell *c = predictive_done(s, r, task, size);
            if (c) put_functions(&b, s, c);
        }
    mnp_status status = b.status;
    if (status == MNP_OK) status = fsio_write(&s->s.c->env, path, b.data, b.len);
    buf_free(&b);
    return status;
}

int predictive_files(study *of) {
    predictive *s = (predictive *)of;
    predictive_take_joint(s);
    for (int t = 0; t < s->tasks.count; t++)
        if (write_functions(s, t) != MNP_OK) return study_failed(of);
    return predictive_pictures(s);
}
