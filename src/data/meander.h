/* meander.h: a meandering river in plan view, step by step.
 *
 * The centreline is a list of nodes, flow towards the last one. A step moves every node sideways at
 * a rate that depends on the curvature here and upstream (Howard and Knutson 1984), cuts off loops
 * whose neck has become narrow, and spaces the nodes evenly again. The valley is flat, so elevation
 * has no part in it. docs/user/maps.md has the formulas.
 *
 * One simulation is one `meander`, used by one thread. The start is the only random thing. */
#ifndef MNP_DATA_MEANDER_H
#define MNP_DATA_MEANDER_H

#include "base/options.h"
#include "base/rng.h"
#include "util/limits.h"

/* Lengths in metres, times in years of 365 days. */
typedef struct meander_opts {
    int64_t nit;       /* steps of a run                                             */
    double W, D;       /* channel width and depth                                    */
    double Cf, k;      /* friction factor; factor in the decay: alpha = 2 k Cf / D   */
    double kl, dt;     /* migration constant (m/yr), time step (yr)                  */
    double Omega;      /* weight of the curvature here                               */
    double Gamma;      /* weight of the curvature upstream                           */
    double ds0;        /* node spacing                                               */
    double crdist;     /* a neck this narrow is cut; 0 = W                           */
    int64_t pad, pad1; /* nodes that never move: last, first (-1 = max(5, pad / 10)) */
    int64_t n_bends;   /* the rough reach is n_bends * 5 W long                      */
    double roughness;  /* y of the start is uniform in -roughness .. roughness       */
    double sinuosity_exponent;
} meander_opts;

/* The table over o, for options.h. */
option_view meander_view(meander_opts *o);
/* Checks what the table cannot say and fills in crdist and pad1 where they are derived. */
mnp_status meander_settle(env *e, meander_opts *o);

/* Loops that were cut off: nodes start[k] .. start[k + 1] - 1 are loop k, both ends of the neck
 * included. */
typedef struct meander_loops {
    int64_t count, nodes;
    int64_t capacity, node_capacity;
    int64_t *start, *step; /* (count + 1), (count): the step (from 0) that cut it */
    double *x, *y;         /* (nodes) */
} meander_loops;

typedef struct meander {
    env *e;
    meander_opts o;
    int64_t step;     /* steps done */
    int64_t n;        /* nodes */
    double *x, *y;    /* (n) the centreline */
    double sinuosity; /* S of the last migration */
    meander_loops loops;
    /* Filled by meander_migrate, (n) of the line it started from. */
    double *dx, *dy, *ds; /* central differences and their length   */
    double *R0, *R1;      /* nominal and adjusted rates, m/s; R1 is 0 in the pads */
    /* Scratch. */
    int64_t capacity;
    double *block;                                   /* all arrays of doubles, one after another */
    double *new_x, *new_y, *u, *h, *upper, *Mx, *My; /* resampling */
    double *cell_x, *cell_y;                         /* nodes in the order of their cells */
    int32_t *node, *cell_of, *cell_start;
} meander;

/* A river without a line yet. o is settled. */
mnp_status meander_create(env *e, const meander_opts *o, meander **out);
void meander_destroy(meander *m); /* accepts NULL */

/* Start anew from a given line (copied), or from the straight rough one: one uniform number for
 * each node between the pads, in their order. */
mnp_status meander_set_line(meander *m, int64_t n, const double *x, const double *y);
mnp_status meander_start(meander *m, rng_stream *s);

/* The three parts of a step, in this order, and the step. MNP_ENUMERIC where the line degenerates,
 * which parameters far from the usual ones can bring about. */
mnp_status meander_migrate(meander *m);
mnp_status meander_cut(meander *m);
mnp_status meander_resample(meander *m);
mnp_status meander_step(meander *m);

/* Length of the line by the differences that a step uses: the sum of ds_1 .. ds_{n-1}. */
double meander_arc(const meander *m);
/* Length of the polyline. */
double meander_chord(const meander *m);

/* ---- for the files of the simulator ---------------------------------------------------------- */

enum { MEANDER_CELLS_MAX = 1 << 16 };

/* Makes room for n <= MEANDER_NODES_MAX nodes and keeps the line; every other array is void after
 * it has grown. */
mnp_status meander_reserve(meander *m, int64_t n);

#endif
