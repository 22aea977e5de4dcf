/* hyper.h: laws with unknown numbers theta, which every function draws anew from a uniform prior:
 * what is known of its values with theta integrated out.
 *
 * The integral is an adaptive cubature. The box of the prior is cut into cells; the likelihood at a
 * cell's centre times the cell's prior mass is its share. The points of a function are taken in few
 * at a time, so that the likelihood narrows step by step, and after each step cells are cut in
 * three, or left out, by how much of the integral they hold and how steep it is there. So narrow
 * and many peaks are found that a fixed grid would miss. No random numbers. */
#ifndef MNP_DATA_HYPER_H
#define MNP_DATA_HYPER_H

#include "base/options.h"

enum { HYPER_DIMS = 3 };
typedef enum hyper_scale { HYPER_LINEAR, HYPER_LOG, HYPER_INVERSE } hyper_scale;

/* A place in the prior, and how far the cell around it reaches, on its scale. A law
 * whose density is narrower than a cell may answer with a wider one that stands for the whole cell:
 * so its peaks are seen from afar. With `half` zero it is the law itself. */
typedef struct hyper_cell {
    double theta[HYPER_DIMS], half[HYPER_DIMS];
    int root;
} hyper_cell;

/* Both answers take hyper_work(n) doubles of scratch. */
typedef struct hyper_law hyper_law;
struct hyper_law {
    int dims, roots; /* numbers; and choices of equal prior mass beside them, 1 or more          */
    option_range range[HYPER_DIMS]; /* of the uniform prior                                      */
    hyper_scale scale[HYPER_DIMS];  /* along which the law changes evenly: cells are cut along it */
    double pieces[HYPER_DIMS]; /* of the range, over which the law hardly changes: a first guess */
    int64_t cells; /* the most that are looked at with 32 points or more ...                     */
    double growth; /* ... and with n < 32, this power of 32 / n times as many                    */
    int64_t parts; /* the most that a cell may hold of p(theta | context) is 1 / parts; 0: any   */
    const void *opts; /* of the family, and which of several laws they are the constants of */
    int32_t kind;
    /* log p(y_0 .. y_n-1 | theta). */
    double (*logp)(const hyper_law *law, const hyper_cell *at, const double *x, const double *y,
                   int64_t n, double *work);
    /* Mean and sd (n - m each) of y_m .. y_n-1, each by itself, given theta and the context. */
    void (*marginals)(const hyper_law *law, const hyper_cell *at, const double *x, const double *y,
                      int64_t n, int64_t m, double *mean, double *sd, double *work);
};

int64_t hyper_work(int64_t n);

/* Accuracy: the estimated relative error of an evidence; a factor of the number of cells. */
typedef struct hyper_effort {
    double tolerance, cells;
} hyper_effort;
hyper_effort hyper_usual(void);

/* p(theta | context) as points, for the predictions of targets. */
typedef struct hyper_posterior {
    int64_t count;
    hyper_cell *at; /* (count)           */
    double *weight; /* (count), of sum 1 */
} hyper_posterior;

/* log p(y_m .. y_n-1 | y_0 .. y_m-1) in *logp, and p(theta | y_0 .. y_m-1); either may be NULL. */
mnp_status hyper_integrate(env *e, const hyper_law *law, const hyper_effort *effort,
                           const double *x, const double *y, int64_t n, int64_t m, double *logp,
                           hyper_posterior *posterior);
void hyper_posterior_free(env *e, hyper_posterior *p);

#endif
