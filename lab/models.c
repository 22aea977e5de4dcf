/* models.c: how each model is trained in a study, what the paper reports, and what no model
 * can exceed. */
#include <math.h>
#include <string.h>

#include "lab/runs.h"

/* ---- training -------------------------------------------------------------------------------- */

/* An empty text leaves the process's own defaults. */
#define QUICK_GP "steps=120 batch=5 valid_functions=30 valid_every=40"
#define QUICK_NP "steps=1000 batch=16"

static const recipe models[] = {
    {"oracle", "steps=1", "steps=1 valid_functions=1", .fixed = true, .some = true},
    {"gp", "", QUICK_GP " lr=0.05", .network = false},
    {"gp-authors", "", QUICK_GP " lr=0.05", .network = false},
    {"cbp", "", QUICK_GP " lr=0.005", .network = false},
    {"np", "steps=60000", QUICK_NP, .network = true},
    {"mnp", "steps=60000", QUICK_NP, .network = true},
};
enum { MODELS = sizeof models / sizeof *models };

const recipe *recipe_of(const char *model) {
    static const recipe other = {NULL, "", QUICK_NP, .network = false};
    for (int k = 0; k < MODELS; k++)
        if (strcmp(models[k].name, model) == 0) return &models[k];
    return &other;
}

/* ---- the paper's table ----------------------------------------------------------------------- */

enum { FAMILIES = 6 };
static const char *const families[FAMILIES] = {"rbf",       "matern", "periodic",
                                               "monotonic", "convex", "sde"};

typedef struct paper_row {
    const char *model;
    double score[FAMILIES], se[FAMILIES]; /* 0: none */
} paper_row;

static const paper_row paper[] = {
    {"oracle", {2.846, 2.709, 0.641}, {0.012, 0.013, 0.006}},
    {"gp", {2.844, 2.708, 0.419, 0.633, 2.976, 1.719}, {0.013, 0.014, 0.013, 0.059, 0.224, 0.034}},
    {"gp-authors",
     {2.844, 2.708, 0.419, 0.633, 2.976, 1.719},
     {0.013, 0.014, 0.013, 0.059, 0.224, 0.034}},
    {"cbp", {2.628, 2.604, 0.169, 1.776, 4.268, 1.842}, {0.016, 0.015, 0.022, 0.088, 0.035, 0.024}},
    {"np", {0.935, 1.115, 0.356, 1.823, 1.956, 1.621}, {0.019, 0.021, 0.020, 0.006, 0.004, 0.009}},
    {"mnp", {2.491, 2.290, 0.594, 2.755, 5.582, 1.942}, {0.024, 0.021, 0.032, 0.010, 0.081, 0.019}},
};

/* Its place among the families, the variant aside; -1: none of them. */
static int family_of(const char *data) {
    size_t length = strcspn(data, ":");
    for (int k = 0; k < FAMILIES; k++)
        if (strlen(families[k]) == length && strncmp(families[k], data, length) == 0) return k;
    return -1;
}

double paper_score(const char *model, const char *data, double *se) {
    int at = family_of(data);
    for (size_t k = 0; k < sizeof paper / sizeof *paper && at >= 0; k++)
        if (strcmp(paper[k].model, model) == 0 && paper[k].score[at] != 0) {
            *se = paper[k].se[at];
            return paper[k].score[at];
        }
    return *se = NAN;
}

const char *paper_data_note(const char *data) {
    static const char *const notes[FAMILIES] = {
        NULL,
        NULL,
        "periodic: the paper's text gives noise variance 1e-3; its numbers are those of 1e-2, as "
        "here. Its oracle and GPs divide by the lengthscale instead of its square: on these data "
        "the true oracle scores 0.756, not 0.641",
        "monotonic: x lies in [-2, 2] and the Dirichlet concentration is 1; the authors' "
        "configuration has [-5, 5] and 0.5",
        "convex: no noise, as in the authors' program. The paper's text adds noise of 0.01, under "
        "which no score above 3.186 is possible. Context points scored again have no ceiling",
        "sde: 128 points; the authors' configuration has 501 on [-5, 5]",
    };
    int at = family_of(data);
    if (at >= 0 && strchr(data, ':'))
        return "a name with constants is a variant of the family: the paper's data may differ";
    return at >= 0 ? notes[at] : NULL;
}

const char *paper_model_note(const char *model) {
    if (strcmp(model, "np") == 0)
        return "np: the paper's has a least sigma of 0.05, so no score above 2.077 is possible; "
               "ours has 1e-3 unless it was set (--set sigma_floor=0.05 is the paper's)";
    if (strcmp(model, "gp") == 0)
        return "gp: variances are learned and the period starts from four places; gp-authors has "
               "the paper's setting";
    return NULL;
}

/* ---- ceilings -------------------------------------------------------------------------------- */

typedef struct ceiling {
    const char *data;
    double score[PROTOCOLS]; /* strict, authors; NaN: none */
    const char *what;
} ceiling;

/* Constants, each found once on functions of its own: the oracle on the test functions at hand
 * differs by up to 0.01. */
double ceiling_of(const char *data, mnp_protocol protocol, const char **what) {
    static const char oracle[] = "the true density, 5000 other functions";
    static const ceiling known[] = {
        {"rbf", {2.780, 2.857}, oracle},
        {"matern", {2.603, 2.727}, oracle},
        {"periodic", {0.716, 0.752}, oracle},
        {"periodic:noise_var=0.001", {1.807, 1.853}, oracle},
        {"monotonic", {3.186, NAN}, "the noise alone"},
        {"convex:noise=0.01", {3.186, NAN}, "the noise alone"},
        {"sde", {2.446, NAN}, "near-exact density of the process, 600 other functions"},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strcmp(known[k].data, data) == 0 && isfinite(known[k].score[protocol])) {
            *what = known[k].what;
            return known[k].score[protocol];
        }
    *what = NULL;
    return NAN;
}
