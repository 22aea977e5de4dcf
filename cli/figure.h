/* figure.h: the pictures of mnp plot: functions given points, the chain, maps for two inputs, and
 * training curves. Each makes a figure; the caller saves and destroys it, also after a failure. */
#ifndef MNP_CLI_FIGURE_H
#define MNP_CLI_FIGURE_H

#include "cli/map.h"
#include "mnp_plot.h"

enum { FIGURE_CONTEXTS_MAX = 12, FIGURE_BANDS_MAX = 6 };

/* What the figures of a model show. */
typedef struct figure_request {
    const question *q;
    int contexts; /* at least one; n = 0 is the prior */
    const points *context;
    const points *at;       /* places; for maps n[0] x n[1] of them, the second running fastest */
    int64_t grid[2];        /* for maps */
    int64_t samples, draws; /* for the bands; shown as lines */
    const char *title;      /* or NULL */
    drawn *drawn;           /* (contexts) gets how the functions were drawn */
} figure_request;

/* One input: f(0) -> ... -> f(T) in a row of panels, a row for each context. */
int figure_chain(cli *c, const figure_request *r, mnp_plot **out);
/* Two inputs: mean, sd and draws as maps, a row for each context. */
int figure_maps(cli *c, const figure_request *r, mnp_plot **out);
/* Loss, KL and validation score against the step, from M.log.csv. */
int figure_log(cli *c, const char *path, const char *title, mnp_plot **out);

/* ---- curves ---------------------------------------------------------------------------------- */

/* One curve. */
typedef struct panel {
    char *name;                    /* or NULL: "given 3 points" */
    points context;                /* what the functions are given, (n, x_dim) */
    points held;                   /* points held back, (n, x_dim) */
    bool borrowed;                 /* the points are another panel's */
    double fixed[POINTS_DIMS_MAX]; /* of several inputs: where each stays */
    double shift,
        scale; /* y in the picture is shift + scale y: several outputs have units of their own */
    const question *q; /* whose functions; NULL: those of all */
    drawn drawn;       /* gets how the functions were drawn */
} panel;

/* A picture of curves along one input of a model. */
typedef struct panels {
    const question *q;
    const char *truth; /* file of held-out points, or NULL */
    int count, left_out;
    panel panel[FIGURE_CONTEXTS_MAX];
    int64_t along;                  /* the input along the axis */
    bool is_asked[POINTS_DIMS_MAX]; /* --at fixes the input ... */
    double asked[POINTS_DIMS_MAX];  /* ... there                */
    int64_t outputs; /* the last inputs say which of so many outputs is meant; 0: there is one */
    double unit[POINTS_DIMS_MAX][2]; /* of these inputs: shift and scale of the output */
    points at;                       /* places along the axis, (n) */
    double data[2];                  /* range of the training curves; equal: not known */
    mnp_set *sets;                   /* (n_sets) training curves */
    int64_t n_sets;
    double *set_values; /* theirs */
    int64_t samples, draws;
    int bands;
    double share[FIGURE_BANDS_MAX]; /* widest first */
    const char *title, *label[2];
    double limits[2][2]; /* by axis; equal: the data's */
    bool log_y;
} panels;

/* The outputs of the model; before all else. */
int panels_units(cli *c, panels *s);
bool panels_output(const panels *s, int64_t k); /* does input k say which output is meant? */
/* Read from the flags, in this order. */
int panels_at(cli *c, panels *s);       /* --at temp=20 */
int panels_contexts(cli *c, panels *s); /* --context, --prior: a panel for each curve */
int panels_truth(cli *c, panels *s);
int panels_along(cli *c, panels *s);
int panels_look(cli *c, panels *s); /* labels, limits, bands */
int panels_places(cli *c, panels *s);
int panels_curves(cli *c, panels *s); /* training curves */
void panels_free(cli *c, panels *s);
/* Where the inputs of a panel stay. */
void panels_fix(const panels *s, panel *p);
bool panels_dates(const panels *s, mnp_plot_time *unit); /* are there dates along the axis? */

/* Bands, draws, mean, what is known and what was held back, a panel for each curve. */
int figure_functions(cli *c, panels *s, mnp_plot **out);

/* ---- maps (map.h) ---------------------------------------------------------------------------- */

typedef struct panel_request {
    int count;                /* contexts */
    const map *maps;          /* (count) of one frame */
    const points *seen;       /* (count) in the model's inputs */
    const char *const *names; /* (count) what a column is called, or NULL: "given 20 points" */
    const double *truth;      /* (rows, cols), or NULL */
    const char *title;        /* or NULL */
} panel_request;

/* Mean above, standard deviation below, a column for each context; the truth in front. */
int figure_panel(cli *c, const panel_request *r, mnp_plot **out);
int figure_sheet(cli *c, const map *m, const points *seen, int64_t draws, const char *title,
                 mnp_plot **out);

/* ---- what they share ------------------------------------------------------------------------- */

/* mnp_plot_create() and mnp_plot_save() with their errors in c->env, for points_failed(). */
mnp_status figure_create(cli *c, int rows, int cols, mnp_plot **out);
mnp_status figure_save(cli *c, mnp_plot *f, const char *path);

/* "prior" or "given 3 points". */
void figure_context_title(char out[64], int64_t n);

/* Functions of a model on a grid, smooth and with the process's own noise, at every step of the
 * chain. Each transition is monotone in y, so given its latents a function is, at each x, a
 * monotone map of the base noise e ~ N(0, 1). That map is measured at a few random e and read off
 * at the same fixed levels of e everywhere. Means, bands and quantiles over the levels are then
 * smooth in x, where as many plain draws would make them ragged. */
enum { CURVE_LEVELS = 16 }; /* of the noise, equally likely, scaled to variance one */
enum { CURVE_REPEATS_MAX = 128 };

typedef struct curves {
    int64_t steps, samples, n; /* T, S, places */
    double *smooth;            /* (T+1, S, n): y_0 = 0 pushed through */
    double *noisy;             /* (T+1, S, CURVE_LEVELS, n) */
    drawn drawn;
} curves;

/* S functions given a context at the places x (n, x_dim), in the units of the data at every step.
 */
int curves_make(cli *c, const question *q, const points *context, const points *at, int64_t samples,
                int repeats, curves *out);
void curves_free(cli *c, curves *v); /* accepts zeros */

/* Over the noise of function s after step t: mean, sd (n). */
mnp_status curves_moments(cli *c, const curves *v, int64_t t, int64_t s, double *mean, double *sd);
/* Over all functions and their noise after the last step. */
mnp_status curves_summary(cli *c, const curves *v, const mnp_summary *out);

#endif
