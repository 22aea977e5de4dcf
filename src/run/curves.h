/* curves.h: tables of points for a model (data/asked.h), and forecasts of many curves: each curve
 * is conditioned on its own points, and asked about its own places, by the names of the curves.
 *
 *     context ─ by curve ─▶ sets ─┐
 *     places  ─ by curve ─▶ sets ─┴─ many.h ─▶ back into the order of the places
 *
 * A curve's random numbers come from the seed and its name alone. So its answer is the same
 * whatever other curves are in the tables. */
#ifndef MNP_RUN_CURVES_H
#define MNP_RUN_CURVES_H

#include "data/asked.h"
#include "run/many.h"

/* Can the model be asked about all of these points? An error names the line; points that it knows
 * little about are added to the table's warnings. */
mnp_status curves_check(env *e, const model *m, asked *a);

typedef struct curves_ask {
    const model *m;
    pool *pool;
    backend_choice device;
    const asked *context; /* NULL: none, the population */
    const asked *places;
    int64_t samples;
    uint64_t seed;
    mnp_condition condition;
    int64_t gradients, work_max; /* see many.h */
    predict_base base;
    mnp_draw_report *reports; /* (curves of the places) or NULL */
    /* gradients where there is one curve, else curves */
    void (*progress)(void *user, int64_t done, int64_t total);
    void *progress_user;
} curves_ask;

/* Into arrays with a number for each row of the places: mean, sd (rows), quantiles (levels, rows),
 * draws (samples, rows); in the units of the row's output. */
mnp_status curves_predict(env *e, const curves_ask *q, const mnp_summary *out);

/* Fills in what is constant in a curve and was left out among the targets, from the context (NULL:
 * none). Curves meet by name; a table without a group column has one, and so must then the other.
 * MNP_EFORMAT: the context does not say it. */
mnp_status curves_fill(env *e, asked *targets, const asked *context);

/* Curves that only one of the two has, a line each. */
mnp_status curves_match(env *e, const asked *context, const asked *places, buf *to);

#endif
