/* log.c: see log.h. */
#include "bandit/log.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "bandit/problem.h"
#include "util/real.h"

enum { NONE = CSV_COLUMNS_MAX };

typedef struct reading {
    env *e;
    decision_log *l;
    const log_source *s;
    size_t action, reward, propensity;
    size_t x[BANDIT_DIMS_MAX];
    char known[ACTIONS_MAX][ACTIONS_NAME_MAX]; /* the actions of a model */
    int32_t n_known;
} reading;

/* ---- columns --------------------------------------------------------------------------------- */

static size_t find(const csv_table *t, const char *name) {
    for (size_t k = 0; k < t->columns; k++)
        if (strcasecmp(csv_header(t, k), name) == 0) return k;
    return NONE;
}

static mnp_status take_context(reading *r, size_t column) {
    if (r->l->dims == BANDIT_DIMS_MAX)
        return env_fail(r->e, MNP_EINVAL, "%s: more than %d columns of context", r->l->table->name,
                        BANDIT_DIMS_MAX);
    r->x[r->l->dims++] = column;
    return MNP_OK;
}

/* "a,b" or a model's inputs, whose "action=NAME" are the actions it knows. */
static mnp_status take_list(reading *r, const char *list, bool context) {
    static const char prefix[] = "action=";
    const size_t skip = sizeof prefix - 1;
    while (*list) {
        char name[256];
        size_t length = strcspn(list, ","), column = 0;
        if (length == 0 || length >= sizeof name)
            return env_fail(r->e, MNP_EINVAL, "columns are named a,b,c, not \"%.80s\"", list);
        memcpy(name, list, length);
        name[length] = '\0';
        list += length + (list[length] == ',');
        if (strncmp(name, prefix, skip) == 0 && r->n_known < ACTIONS_MAX &&
            strlen(name + skip) < ACTIONS_NAME_MAX) {
            snprintf(r->known[r->n_known++], ACTIONS_NAME_MAX, "%.63s", name + skip);
            continue;
        }
        if (!context) continue;
        MNP_TRY(csv_find(r->e, r->l->table, name, &column));
        MNP_TRY(take_context(r, column));
    }
    return MNP_OK;
}

static bool is_number_column(const csv_table *t, size_t column) {
    double v;
    for (size_t row = 0; row < t->rows; row++) {
        const char *cell = csv_cell(t, row, column);
        if (!fsio_parse_double(cell, strlen(cell), &v)) return false;
    }
    return true;
}

static mnp_status choose_columns(reading *r) {
    const csv_table *t = r->l->table;
    const log_source *s = r->s;
    MNP_TRY(csv_find(r->e, t, s->action ? s->action : "action", &r->action));
    MNP_TRY(csv_find(r->e, t, s->reward ? s->reward : "reward", &r->reward));
    r->propensity = s->propensity ? NONE : find(t, "propensity");
    if (s->propensity) MNP_TRY(csv_find(r->e, t, s->propensity, &r->propensity));
    bool model_context = s->inputs && strstr(s->inputs, "action=") && !s->context;
    if (s->inputs) MNP_TRY(take_list(r, s->inputs, model_context));
    if (s->context) return take_list(r, s->context, true);
    if (model_context) return MNP_OK;
    for (size_t k = 0; k < t->columns; k++)
        if (k != r->action && k != r->reward && k != r->propensity && is_number_column(t, k))
            MNP_TRY(take_context(r, k));
    return MNP_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* A finite number; the CSV reader's words for what is none, and what to do about it. */
static mnp_status number(reading *r, size_t row, size_t column, double *out) {
    const csv_table *t = r->l->table;
    const char *cell = csv_cell(t, row, column);
    bool parsed = fsio_parse_double(cell, strlen(cell), out);
    if (parsed && real_fits(*out)) return MNP_OK;
    const char *what = column == r->reward       ? "reward"
                       : column == r->propensity ? "propensity"
                                                 : "context";
    return env_fail(r->e, MNP_EFORMAT,
                    "%s:%" PRIu32 ": the %s \"%.40s\" in column \"%.80s\" is not a finite number%s "
                    "(correct it or drop the row)",
                    t->name, t->lines[1 + row], what, cell, csv_header(t, column),
                    parsed && isfinite(*out) ? " of single precision" : "");
}

static mnp_status unknown_action(reading *r, size_t row, const char *cell) {
    const csv_table *t = r->l->table;
    char list[512] = "";
    for (int32_t k = 0; k < r->n_known; k++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", k ? ", " : "", r->known[k]);
    }
    return env_fail(r->e, MNP_EFORMAT,
                    "%s:%" PRIu32 ": the model does not know the action \"%.60s\"; it knows %s "
                    "(train on a log that has it, or drop the row)",
                    t->name, t->lines[1 + row], cell, list);
}

static mnp_status read_row(reading *r, size_t row) {
    decision_log *l = r->l;
    const char *cell = csv_cell(l->table, row, r->action);
    for (int32_t k = 0; k < l->dims; k++)
        MNP_TRY(number(r, row, r->x[k], &l->x[row * (size_t)l->dims + (size_t)k]));
    l->action[row] = actions_find(&l->actions, cell);
    if (l->action[row] < 0) return unknown_action(r, row, cell);
    MNP_TRY(number(r, row, r->reward, &l->reward[row]));
    if (!l->propensity) return MNP_OK;
    MNP_TRY(number(r, row, r->propensity, &l->propensity[row]));
    if (l->propensity[row] > 0 && l->propensity[row] <= 1) return MNP_OK;
    return env_fail(r->e, MNP_EFORMAT,
                    "%s:%" PRIu32 ": a propensity lies above 0 and at most at 1, not at %g (it is "
                    "the probability with which the action was chosen)",
                    l->table->name, l->table->lines[1 + row], l->propensity[row]);
}

/* The model's actions, in its order; else those of the file. */
static mnp_status choose_actions(reading *r) {
    decision_log *l = r->l;
    MNP_TRY(actions_collect(&l->env, l->table, r->action, &l->actions));
    if (r->n_known == 0) return MNP_OK;
    for (size_t row = 0; row < l->table->rows; row++) {
        const char *cell = csv_cell(l->table, row, r->action);
        int32_t k = 0;
        while (k < r->n_known && strcmp(r->known[k], cell) != 0) k++;
        if (k == r->n_known) return unknown_action(r, row, cell);
    }
    const char **names = env_alloc(&l->env, (size_t)r->n_known, sizeof *names, "actions");
    if (!names) return MNP_ENOMEM;
    for (int32_t k = 0; k < r->n_known; k++) { /* a text of our own: the file may lack some */
        names[k] = env_strdup(&l->env, r->known[k]);
        if (!names[k]) {
            while (k-- > 0) env_free(&l->env, (void *)(uintptr_t)names[k]);
            env_free(&l->env, names);
            return MNP_ENOMEM;
        }
    }
    actions_free(&l->actions);
    l->actions = (actions){.e = &l->env, .count = r->n_known, .name = names};
    l->own_names = true;
    return MNP_OK;
}

static mnp_status read_rows(reading *r) {
    decision_log *l = r->l;
    size_t n = l->table->rows;
    l->n = (int64_t)n;
    if (n == 0)
        return env_fail(r->e, MNP_EFORMAT, "%s: there are no decisions below the header",
                        l->table->name);
    MNP_TRY(choose_columns(r));
    MNP_TRY(choose_actions(r));
    env *e = &l->env;
    l->x = env_alloc(e, n * (size_t)(l->dims + 1), sizeof *l->x, "a log");
    l->action = env_alloc(e, n, sizeof *l->action, "a log");
    l->reward = env_alloc(e, n, sizeof *l->reward, "a log");
    if (r->propensity != NONE) l->propensity = env_alloc(e, n, sizeof *l->propensity, "a log");
    if (!l->x || !l->action || !l->reward || (r->propensity != NONE && !l->propensity))
        return MNP_ENOMEM;
    for (size_t row = 0; row < n; row++) MNP_TRY(read_row(r, row));
    double squares = 0;
    for (size_t i = 0; i < n; i++) l->mean += l->reward[i] / (double)n;
    for (size_t i = 0; i < n; i++) squares += (l->reward[i] - l->mean) * (l->reward[i] - l->mean);
    l->se = n > 1 ? sqrt(squares / (double)(n - 1) / (double)n) : NAN;
    return MNP_OK;
}

mnp_status log_read(env *e, const char *path, const log_source *s, decision_log **out) {
    *out = NULL;
    decision_log *l = env_alloc(e, 1, sizeof *l, "a log");
    if (!l) return MNP_ENOMEM;
    l->env = *e;
    reading r = {.e = e, .l = l, .s = s};
    mnp_status status = csv_read(&l->env, path, '\0', &l->table);
    if (status == MNP_OK) {
        r.e = &l->env;
        status = read_rows(&r);
    }
    if (status != MNP_OK) {
        memcpy(e->error, l->env.error, sizeof e->error);
        log_destroy(l);
        return status;
    }
    *out = l;
    return MNP_OK;
}

void log_destroy(decision_log *l) {
    if (!l) return;
    env e = l->env;
    for (int32_t k = 0; k < l->actions.count && l->own_names; k++)
        env_free(&e, (void *)(uintptr_t)l->actions.name[k]);
    env_free(&e, l->actions.name);
    csv_destroy(l->table);
    env_free(&e, l->x);
    env_free(&e, l->action);
    env_free(&e, l->reward);
    env_free(&e, l->propensity);
    env_free(&e, l);
}
