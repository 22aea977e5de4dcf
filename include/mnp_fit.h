/* mnp_fit.h: from a person's table of curves to a model that is worth its place: several models are
 * fitted to the curves, each is scored on curves that it did not see, and the best is named. A
 * chapter of its own beside mnp.h, whose rules hold here too.
 *
 *     mnp_data_opts table = {.size = sizeof table, .holdout = -1};      all curves
 *     mnp_fit_opts how = {.size = sizeof how, .seed = 1};
 *     mnp_data_open(ctx, "plants.csv", &table, &data);
 *     mnp_fit_run(ctx, data, &how, &fit);
 *     puts(mnp_fit_why(fit));
 *     mnp_fit_save(ctx, fit, "plants.safetensors");
 */
#ifndef MNP_FIT_H
#define MNP_FIT_H

#include "mnp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the models are asked about a curve: its later points given the first three, or all others
 * given three random ones. Short curves give fewer: one point at least is asked about. */
typedef enum mnp_fit_task { MNP_FIT_FIRST, MNP_FIT_RANDOM, MNP_FIT_TASKS } mnp_fit_task;

/* One model and one task, over curves that the model did not see. Every curve counts the same; se
 * are standard errors over curves, NaN for a single one. Texts are static. */
typedef struct mnp_fit_score {
    size_t size;       /* sizeof(mnp_fit_score)                                             */
    const char *model; /* "offset", "lmm", "gp", ...                                        */
    const char *title; /* the same in words                                                 */
    mnp_fit_task task;
    int64_t curves, targets;
    double logp, logp_se; /* log-density of a target, noise included, nats                  */
    double crps, crps_se; /* units of y                                                     */
    double coverage50, coverage80, coverage95, coverage95_se;
    double roughness;         /* of functions without noise between the measured times: mean */
                              /* absolute second difference over the mixed model's           */
    double pit[MNP_PIT_BINS]; /* shares of the targets by their rank among the draws         */
    int64_t warned;           /* curves whose draws a warning of mnp_draw_report is about    */
} mnp_fit_score;

typedef struct mnp_fit_opts {
    size_t size; /* sizeof(mnp_fit_opts) */
    uint64_t seed;
    int64_t
        folds; /* of the cross-validation by curve, 2 to 1000; 1 = a fifth of the curves is held */
               /* out once; 0 = 5 below 80 curves (or as many as there are), 1 from there on */
    double effort;  /* of models that are trained by steps: a factor of the usual number; 0 = 1,  */
                    /* < 0 = leave such models out                                                */
    double seconds; /* instead of effort: about how long the whole may take; 0 = no limit        */
    void (*progress)(void *user, const char *what, int64_t done, int64_t total); /* or NULL      */
    /* A model has its scores, `rows` of them: the mixed model first, at once; or NULL */
    void (*scored)(void *user, const mnp_fit_score *scores, int64_t rows);
    void *user;
} mnp_fit_opts;

/* Name and title of the k-th model that is tried, static texts; NULL after the last. title may be
 * NULL. */
MNP_API const char *mnp_fit_candidate(int k, const char **title);

typedef struct mnp_fit mnp_fit;

/* Fits to all curves of `data`, 3 or more, and scores by cross-validation; opts may be NULL.
 * Without seconds the same bits for the same seed, whatever the number of threads. */
MNP_API mnp_status mnp_fit_run(mnp_ctx *ctx, const mnp_data *data, const mnp_fit_opts *opts,
                               mnp_fit **out);
MNP_API void mnp_fit_destroy(mnp_fit *fit);

/* The table: for each model one row a task. False: there is no k-th; out is then untouched. */
MNP_API int64_t mnp_fit_rows(const mnp_fit *fit);
MNP_API bool mnp_fit_row(const mnp_fit *fit, int64_t k, mnp_fit_score *out);
/* The models, each fitted to all curves; the fit keeps them. NULL: there is no k-th. The number of
 * the best, -1 for NULL, and in one line why. */
MNP_API int64_t mnp_fit_models(const mnp_fit *fit);
MNP_API const char *mnp_fit_name(const mnp_fit *fit, int64_t k);
MNP_API const mnp_model *mnp_fit_model(const mnp_fit *fit, int64_t k);
MNP_API int64_t mnp_fit_best(const mnp_fit *fit);
MNP_API const char *mnp_fit_why(const mnp_fit *fit);
/* What is doubtful, a line each; "" where nothing is. */
MNP_API const char *mnp_fit_warnings(const mnp_fit *fit);
MNP_API int64_t mnp_fit_curves(const mnp_fit *fit); /* of the table                       */
MNP_API int64_t mnp_fit_folds(const mnp_fit *fit);
MNP_API double mnp_fit_effort(const mnp_fit *fit); /* that was used; NaN for NULL         */

/* The name that model k gets beside the best's, which is `path`: m.lmm.safetensors for
 * m.safetensors. Into a caller's buffer, cut to `size` bytes. */
MNP_API void mnp_fit_path(const mnp_fit *fit, int64_t k, const char *path, char *out, size_t size);
/* Writes all models under these names, or none: MNP_EINVAL where one of the files exists. */
MNP_API mnp_status mnp_fit_save(mnp_ctx *ctx, const mnp_fit *fit, const char *path);

/* What a report says of files; zeros where there are none. */
typedef struct mnp_fit_report_opts {
    size_t size;         /* sizeof(mnp_fit_report_opts)                     */
    const char *model;   /* where mnp_fit_save() wrote the best, or NULL    */
    const char *command; /* the command line that repeats the run, or NULL  */
} mnp_fit_report_opts;

/* The report: one HTML page that needs no other file, without scripts. Held-out curves with bands
 * and truth, the table, calibration, warnings, settings, what to do next. `data` is what was fitted
 * to, for what was understood of it; it and opts may be NULL. */
MNP_API mnp_status mnp_fit_report(mnp_ctx *ctx, mnp_fit *fit, const mnp_data *data,
                                  const mnp_fit_report_opts *opts, const char *path);
/* A picture of some held-out curves, given their first points: .svg, .png or .pdf as
 * mnp_plot_save() has it. */
MNP_API mnp_status mnp_fit_picture(mnp_ctx *ctx, mnp_fit *fit, const char *path);

#ifdef __cplusplus
}
#endif
#endif
