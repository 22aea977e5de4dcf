/* log.h: a person's log of decisions: a CSV file with one row per decision, in the order of time:
 * the context (numbers), the action that was played (names or numbers), the reward it brought, and
 * perhaps how likely the action was (propensity). Everything must be there: a reward, a number of
 * the context or a propensity that is missing, NaN or infinite is refused with file, line and what
 * to do. */
#ifndef MNP_BANDIT_LOG_H
#define MNP_BANDIT_LOG_H

#include "data/actions.h"
#include "util/csv.h"

typedef struct log_source {
    /* Columns; NULL: action, reward, propensity by these names, and all numbers that are left as
     * the context. A file without a propensity column has none. */
    const char *action, *reward, *propensity;
    const char *context; /* "a,b" */
    /* The inputs of a model, as its notes have them: "x1,x2,action=a,action=b". They name the
     * context unless that is given, and fix the order of the actions; NULL: as the file has them.
     */
    const char *inputs;
} log_source;

typedef struct decision_log {
    env env; /* its own copy */
    csv_table *table;
    actions actions;
    bool own_names; /* private: the names of the actions are copies */
    int32_t dims;
    int64_t n;
    double *x;          /* (n, dims) */
    int32_t *action;    /* (n)       */
    double *reward;     /* (n)       */
    double *propensity; /* (n), in (0, 1]; NULL: the file has none */
    double mean, se;    /* of the rewards: what the policy that was logged earned */
} decision_log;

mnp_status log_read(env *e, const char *path, const log_source *s, decision_log **out);
void log_destroy(decision_log *l); /* accepts NULL */

#endif
