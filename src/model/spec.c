/* spec.c: the table of model options and the presets. */
#include "model/spec.h"

#include <string.h>

#include "model/process/process.h"
#include "util/limits.h"
#include "util/text.h"

#define INT(f, def, lo, hi, help)  OPTION_INT(model_spec, f, def, lo, hi, help)
#define REAL(f, def, lo, hi, help) OPTION_REAL(model_spec, f, def, lo, hi, help)
#define BOOL(f, def, help)         OPTION_BOOL(model_spec, f, def, help)
#define ENUM(f, def, all, help)    OPTION_ENUM(model_spec, f, def, all, help)

/* The choices of an enum that is a registry are the registry's names, in its order. */
#define TRANSITION(name)  "|" #name
#define ENCODER(name)     "|" #name
#define PROCESS(id, name) "|" name

static const char transition_names[] =
#include "model/transition/transitions.def"
    ;
static const char encoder_names[] =
#include "model/encoder/encoders.def"
    ;

static const char process_names[] =
#include "model/process/processes.def"
    ;

static const option_def table[] = {
    ENUM(kind, "mnp", process_names + 1, "the process; np is mnp with one Gaussian step"),
    INT(x_dim, "1", 1, MODEL_X_MAX, "inputs of a function (taken from the data)"),
    INT(T, "7", 1, MODEL_STEPS_MAX, "Markov steps from noise to function"),
    ENUM(transition, "rqs", transition_names + 1, "the map of one step; rqs is a spline"),
    ENUM(encoder, "sab", encoder_names + 1,
         "network that sums up a set of points; sab and isab attend, deepset takes a mean"),
    REAL(y_shift, "0", -1e9, 1e9, "subtracted from y inside the model, where y_scale is set"),
    REAL(y_scale, "0", 0, 1e9,
         "y is divided by this inside the model; 0 standardises files and leaves families alone"),
    INT(rff, "80", 0, MODEL_WIDTH_MAX,
        "random Fourier frequencies that x is expressed by; 0 uses x itself"),
    REAL(rff_std, "1", 1e-6, 1e6, "standard deviation of the frequencies"),
    BOOL(rff_append_x, "off", "use x beside its Fourier features"),
    INT(d_z, "128", 1, MODEL_WIDTH_MAX, "numbers in a latent z_t"),
    INT(d_r, "64", 1, MODEL_WIDTH_MAX, "numbers in the summary r of a set"),
    INT(head_hidden, "64", 1, MODEL_WIDTH_MAX, "width of the hidden layers that infer z_t from r"),
    INT(head_layers, "2", 0, 8, "how many of these layers; 0 is one linear map"),
    ENUM(sigma_z, "sigmoid", "sigmoid|softplus",
         "how the standard deviation of z_t is kept positive"),
    REAL(sigma_z_floor, "0.05", 1e-6, 0.999, "least standard deviation of z_t"),
    INT(enc_width, "64", 1, MODEL_WIDTH_MAX, "width of the encoder"),
    INT(heads, "4", 1, 64, "sab, isab, tnp: attention heads; a divisor of enc_width"),
    INT(n_sab, "2", 1, 16, "sab, isab, tnp: attention blocks"),
    INT(n_inducing, "32", 1, MODEL_WIDTH_MAX, "isab: number of inducing points"),
    INT(ds_layers, "2", 1, 8, "deepset: hidden layers"),
    BOOL(enc_out_relu, "off", "ReLU on the summary r (deepset always has it)"),
    BOOL(layer_norm, "off", "sab, isab: layer norm in the attention blocks"),
    REAL(y_gain, "1", 0, 100, "factor on the encoder's weights for y, at the start of training"),
    ENUM(pool, "mean", "mean|sum", "deepset: what is taken over the points of a set"),
    BOOL(attend, "off",
         "mnp, np: every map also sees what attention from x to the context finds; training then "
         "scores the points outside the context"),
    INT(attend_width, "0", 0, MODEL_WIDTH_MAX, "attend: width of this attention; 0 is enc_width"),
    INT(attend_blocks, "0", 0, 16, "attend: its blocks; 0 is n_sab"),
    INT(flow_hidden, "128", 1, MODEL_WIDTH_MAX, "width of the hidden layers that make the maps"),
    INT(flow_layers, "2", 1, 8, "how many of these layers"),
    INT(bins, "10", 2, RQS_BINS_MAX, "spline: number of bins"),
    REAL(bound, "5", 0.1, 1e4,
         "spline: changes values in [-bound, bound] and leaves others as they are"),
    REAL(min_width, "1e-3", 1e-5, 0.5, "spline: least width of a bin, as a share of the interval"),
    REAL(min_height, "1e-3", 1e-5, 0.5, "spline: least height of a bin, likewise"),
    REAL(min_derivative, "1e-3", 1e-5, 0.99, "spline: least slope at a knot"),
    REAL(kappa, "5", 0.01, 40, "affine: the logarithm of a step's scale stays within +-kappa"),
    REAL(sigma_floor, "1e-3", 0, 0.999, "gauss, cnp, tnp, convcnp: least standard deviation of y"),
    REAL(flow_gain, "0.1", 0, 10,
         "factor on the weights of the last layer that makes the maps, at the start of training"),
    BOOL(identity_init, "off", "spline: start as the identity"),
    ENUM(init, "xavier", "xavier|authors",
         "how weights begin; authors is what the paper's code does"),
    ENUM(head, "normal", "normal|mixture",
         "cnp, tnp, convcnp: the density of a point given the context; a mixture has several "
         "normals"),
    INT(head_parts, "10", 1, MIXTURE_PARTS_MAX, "cnp, tnp, convcnp: normals of a mixture"),
    INT(conv_layers, "8", 0, 64, "convcnp: convolutions after the first; enc_width is their width"),
    INT(conv_taps, "5", 1, 63,
        "convcnp: places that one convolution takes together, an odd number"),
    INT(grid_points, "128", 2, 8192, "convcnp: places of the grid"),
    REAL(grid_lo, "0", -1e9, 1e9, "convcnp: where the grid begins, as the model sees x"),
    REAL(grid_hi, "0", -1e9, 1e9,
         "convcnp: where it ends; 0 and 0 is a tenth beyond the training data on both sides"),
    ENUM(kl, "analytic", "analytic|sampled",
         "the KL term: exact for each step, or from the latents that were drawn"),
    REAL(kl_weight, "1", 0, 1e3,
         "factor on the KL term; k / n suits steps that score k of a function's n points"),
    ENUM(objective, "elbo", "elbo|iwae", "what training maximises; iwae uses train_samples draws"),
    ENUM(train_score, "all", "all|rest",
         "points scored in training; rest is those outside the context"),
    BOOL(gp_rbf, "on", "gp, cbp: the kernel has an RBF part"),
    BOOL(gp_matern, "on", "gp, cbp: the kernel has a Matern-5/2 part"),
    BOOL(gp_periodic, "on", "gp, cbp: the kernel has a periodic part"),
    BOOL(gp_variances, "on", "gp, cbp: learn the variance of each part"),
    REAL(gp_variance, "1", 1e-12, 1e12, "gp, cbp: variance of each part, at the start"),
    REAL(gp_length, "1", 1e-6, 1e6, "gp, cbp: lengthscale of each part, at the start"),
    REAL(gp_period, "1", 1e-6, 1e6, "gp, cbp: period, at the start"),
    REAL(gp_noise, "1e-2", 1e-12, 1e12, "gp, cbp: variance of the noise, at the start"),
    REAL(gp_noise_floor, "1e-7", 0, 1, "gp, cbp: least variance of the noise"),
    BOOL(gp_softplus, "off",
         "gp, cbp: positive numbers are the softplus of a weight, not its exponential"),
    BOOL(gp_unsquared, "off", "gp, cbp: the periodic part divides by its length, not its square"),
    BOOL(gp_fading, "off",
         "gp, cbp: the periodic part fades with the distance, over the length of the RBF part"),
    REAL(gp_rate, "1", 1e-3, 1e3,
         "gp, cbp: how much faster the numbers of the kernel learn than other weights"),
    ENUM(
        gp_restarts, "on", "off|on|up",
        "gp, cbp: start from 1/4, 1/2, 1 and 2 times gp_period and keep the best; up: from 1 and 2 "
        "times, where the data gave it"),
    INT(cbp_layers, "5", 0, 16, "cbp: splines on top of the Gaussian process"),
    BOOL(cbp_condition_x, "on", "cbp: the splines depend on x"),
    ENUM(gp_mean, "constant", "constant|spline",
         "gp, cbp: the mean of all curves is a number, or a natural spline of each input"),
    INT(gp_season, "0", 0, 16,
        "gp, cbp: harmonics of a wave in the mean of all curves, with a period that begins at "
        "gp_period"),
    INT(gp_knots, "0", 0, NATURAL_KNOTS_MAX,
        "gp, cbp: knots of a spline mean for each input; 0 has them chosen by AIC"),
    INT(lmm_fixed, "0", 0, NATURAL_KNOTS_MAX,
        "lmm: knots of the population curve for each input; 0 has them chosen by AIC"),
    INT(lmm_random, "0", 0, NATURAL_KNOTS_MAX,
        "lmm: knots of a curve's own part, 1 is an offset, 2 a line; 0 has them chosen by AIC"),
    BOOL(lmm_smooth, "off",
         "lmm: a curve's own part is a smooth process of four parameters, for few curves; off "
         "estimates the whole covariance of its columns"),
    BOOL(lmm_average, "off",
         "lmm: an average of models of several sizes and scales of y, each with the share that "
         "held-out curves give it; lmm_fixed and lmm_random are the most knots"),
    INT(lmm_draws, "64", 0, MIXED_DRAWS_MAX,
        "lmm: draws of the parameters that predictions average over; 0 is the REML estimate alone"),
};

option_view spec_view(model_spec *spec) {
    return (option_view){table, OPTION_COUNT(table), spec};
}

typedef struct preset {
    const char *name, *process, *options;
} preset;

#define AUTHORS "gp_variances=off gp_softplus=on gp_restarts=off gp_noise=1e-4"
#define COPULA  "rff=0 identity_init=on flow_gain=0 gp_rate=10"
/* Wheels: rewards reach 50, and a 50 that is missed costs far more than the noise. So the scale is
 * bounded, and errors of the mean weigh as squares: with free scales the exact fit of the many
 * constant rewards drowns what the radius has to say. The chain is small enough to push a history
 * of 2 000 back at every step. */
#define WHEEL_COMMON                                                                               \
    "rff=0 encoder=deepset d_z=32 d_r=64 head_hidden=64 head_layers=1 "                            \
    "sigma_z_floor=0.001 y_scale=2 "
#define WHEEL  WHEEL_COMMON "enc_width=128 ds_layers=3 flow_hidden=128 flow_layers=3 flow_gain=3"
#define WHEEL5 WHEEL_COMMON "enc_width=64 ds_layers=3 flow_hidden=128 flow_layers=2"

/* Predictors are scored where they are asked: outside the context. */
#define PREDICTOR "train_score=rest rff_append_x=on flow_gain=1 "

/* docs/user/maps.md says why. */
#define IMAGE_CODE                                                                                 \
    "encoder=isab enc_width=96 heads=6 n_sab=2 n_inducing=32 d_r=128 d_z=128 head_hidden=128 "     \
    "head_layers=1 rff=63 rff_append_x=on y_gain=4 flow_layers=2 train_score=rest kl_weight=0.05"
#define IMAGE_SMALL_CODE                                                                           \
    "encoder=isab enc_width=32 heads=2 n_sab=1 n_inducing=16 d_r=64 d_z=64 head_hidden=64 "        \
    "head_layers=1 rff=31 rff_append_x=on y_gain=4 flow_layers=2 train_score=rest kl_weight=0.05"

static const struct {
    const char *name, *help;
} preset_names[] = {
    {"paper", "the networks of the paper"},
    {"wide", "those of the paper, with noisier latents"},
    {"tiny", "small networks for a first try"},
    {"wheel", "the wheel bandit, one step"},
    {"wheel5", "the wheel bandit, five steps"},
    {"image", "images and maps"},
    {"image-small", "images and maps, small networks"},
};

const char *spec_preset_at(int k, const char **help) {
    bool there = k >= 0 && (size_t)k < sizeof preset_names / sizeof *preset_names;
    if (help) *help = there ? preset_names[k].help : NULL;
    return there ? preset_names[k].name : NULL;
}

static const preset presets[] = {
    {"paper", "mnp", ""},
    {"wide", "mnp", "sigma_z_floor=0.2"},
    {"wide", "np", "T=1 transition=gauss flow_gain=1 sigma_z_floor=0.2"},
    {"paper", "gp", ""},
    {"tiny", "gp", ""},
    {"paper", "gp-authors", AUTHORS},
    {"tiny", "gp-authors", AUTHORS},
    {"paper", "cbp", COPULA},
    {"tiny", "cbp", COPULA " cbp_layers=2 flow_hidden=32"},
    {"paper", "oracle", "gp_restarts=off gp_variances=off gp_noise_floor=0"},
    {"tiny", "oracle", "gp_restarts=off gp_variances=off gp_noise_floor=0"},
    {"paper", "np", "T=1 transition=gauss flow_gain=1"},
    {"wheel", "mnp", "T=1 transition=affine kappa=1.5 " WHEEL},
    {"wheel", "np", "T=1 transition=gauss sigma_floor=0.1 " WHEEL},
    {"wheel5", "mnp", "T=5 transition=affine kappa=0.3 flow_gain=1 " WHEEL5},
    {"wheel5", "np", "T=1 transition=gauss sigma_floor=0.1 flow_gain=3 " WHEEL5},
    {"image", "mnp", IMAGE_CODE " T=3 flow_hidden=192 bins=8"},
    {"image", "np", IMAGE_CODE " T=1 transition=gauss flow_gain=1 flow_hidden=192"},
    {"image-small", "mnp", IMAGE_SMALL_CODE " T=2 flow_hidden=64 bins=8"},
    {"image-small", "np", IMAGE_SMALL_CODE " T=1 transition=gauss flow_gain=1 flow_hidden=64"},
    {"tiny", "mnp",
     "T=3 rff=16 d_z=16 d_r=32 enc_width=32 heads=2 n_sab=1 head_hidden=32 head_layers=1 "
     "flow_hidden=48 bins=8"},
    {"tiny", "np",
     "T=1 transition=gauss flow_gain=1 rff=16 d_z=16 d_r=32 enc_width=32 heads=2 n_sab=1 "
     "head_hidden=32 head_layers=1 flow_hidden=48"},
    {"paper", "cnp",
     PREDICTOR "encoder=deepset enc_width=128 ds_layers=2 d_r=128 flow_hidden=128 flow_layers=3"},
    {"paper", "tnp", PREDICTOR "enc_width=128 heads=8 n_sab=6 flow_hidden=128 flow_layers=1"},
    {"tiny", "tnp", PREDICTOR "rff=16 enc_width=32 heads=2 n_sab=2 flow_hidden=48 flow_layers=1"},
    {"paper", "convcnp",
     PREDICTOR "enc_width=96 conv_layers=12 grid_points=256 flow_hidden=96 flow_layers=1 "
               "flow_gain=0.1"},
    {"tiny", "convcnp",
     PREDICTOR "enc_width=32 conv_layers=4 grid_points=128 flow_hidden=48 flow_layers=1 "
               "flow_gain=0.1"},
    {"tiny", "cnp",
     PREDICTOR "encoder=deepset rff=16 enc_width=32 ds_layers=2 d_r=32 flow_hidden=48"},
};

mnp_status spec_preset(env *e, const char *process, const char *name, model_spec *spec) {
    option_view view = spec_view(spec);
    MNP_TRY(options_defaults(e, &view, 1));
    MNP_TRY(options_set(e, &view, 1, "kind", process));
    char meant[TEXT_NAMES];
    bool plain = true; /* a kind without presets of its own: its defaults, by any preset's name */
    text_nearest near = text_nearest_to(name);
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        if (strcmp(presets[i].process, process) != 0) continue;
        plain = false;
        text_nearest_try(&near, presets[i].name);
        if (strcmp(presets[i].name, name) == 0)
            return options_parse(e, &view, 1, presets[i].options);
    }
    if (plain) return MNP_OK;
    return env_fail(e, MNP_EINVAL, "there is no preset '%.60s' for %s%s", name, process,
                    text_meant_or_all(meant, &near));
}

mnp_status spec_check(env *e, const model_spec *s) {
    if ((double)s->bins * s->min_width >= 1 || (double)s->bins * s->min_height >= 1)
        return env_fail(e, MNP_EINVAL, "bins=%lld bins of at least min_width=%g do not fit",
                        (long long)s->bins,
                        s->min_width > s->min_height ? s->min_width : s->min_height);
    if (s->attend && s->kind != PROCESS_mnp && s->kind != PROCESS_np)
        return env_fail(e, MNP_EINVAL, "attend=on is for the models mnp and np, not for %s",
                        process_name(s->kind));
    const process_def *p = process_at(s->kind);
    return p->check ? p->check(e, s) : MNP_OK;
}

row_range spec_scored(const model_spec *s) {
    return s->train_score == 0 ? ROWS_ALL : ROWS_REST;
}

int32_t spec_features(const model_spec *s) {
    if (s->rff == 0) return (int32_t)s->x_dim;
    return (int32_t)(2 * s->rff + (s->rff_append_x ? s->x_dim : 0));
}
