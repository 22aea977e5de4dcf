/* spec.h: the options of a model, as one table that parser, help and the model file's metadata
 * share. A spec says everything about a model but its weights. */
#ifndef MNP_MODEL_SPEC_H
#define MNP_MODEL_SPEC_H

#include "base/options.h"
#include "nn/nn.h"

/* The kinds of models, PROCESS_<id>. */
typedef enum process_id {
#define PROCESS(id, name) PROCESS_##id,
#include "model/process/processes.def"
#undef PROCESS
    PROCESS_COUNT
} process_id;

typedef struct model_spec {
    int kind;                /* process_id                                                 */
    int64_t x_dim;           /* inputs per point                                           */
    int64_t T;               /* Markov steps                                               */
    int transition;          /* index in transitions.def                                   */
    int encoder;             /* index in encoders.def                                      */
    double y_shift, y_scale; /* y' = (y - y_shift) / y_scale inside; scale 0: set by the data */
    /* features of x */
    int64_t rff;       /* random frequencies; 0 = x itself                        */
    double rff_std;    /* their standard deviation                                */
    bool rff_append_x; /* x beside the features                                   */
    /* latents and inference heads */
    int64_t d_z, d_r, head_hidden, head_layers;
    int sigma_z; /* sigma_kind */
    double sigma_z_floor;
    /* set encoder */
    int64_t enc_width, heads, n_sab, n_inducing, ds_layers;
    bool enc_out_relu, layer_norm;
    double y_gain; /* initial gain of the weights on y                            */
    int pool;      /* 0 mean, 1 sum */
    /* attention of every point to the context */
    bool attend;                         /* transitions see h_C(x) (model/attend.h)         */
    int64_t attend_width, attend_blocks; /* 0: enc_width, n_sab                             */
    /* transitions */
    int64_t flow_hidden, flow_layers, bins;
    double bound, min_width, min_height, min_derivative;
    double kappa;       /* affine: log-scale at most kappa per step               */
    double sigma_floor; /* Gaussian output: least sigma                           */
    double flow_gain;   /* initial gain of the conditioner's last layer           */
    bool identity_init; /* start the splines at the identity                      */
    int init;           /* nn_init */
    /* predictors */
    int head;           /* head_kind */
    int64_t head_parts; /* normals of a mixture */
    int64_t conv_layers, conv_taps, grid_points;
    double grid_lo, grid_hi; /* equal: by the data */
    /* training objective */
    int kl;           /* 0 analytic per step, 1 sampled ratio                      */
    double kl_weight; /* analytic: factor on the KL term                          */
    int objective;    /* 0 elbo, 1 iwae                                            */
    int train_score;  /* 0 all points, 1 the rest                                  */
    /* Gaussian processes */
    bool gp_rbf, gp_matern, gp_periodic;                /* parts of the kernel                   */
    bool gp_variances;                                  /* each part's variance is learned       */
    double gp_variance, gp_length, gp_period, gp_noise; /* where they start       */
    double gp_noise_floor;                              /* least variance of the noise           */
    bool gp_softplus;                                   /* positive numbers by softplus, not exp */
    bool gp_unsquared;                                  /* periodic part with l instead of l^2   */
    bool gp_fading;                                     /* periodic part times an RBF            */
    double gp_rate;                                     /* speed against that of the weights     */
    int gp_restarts;                                    /* gp_restarts_kind                      */
    int gp_mean;                                        /* gp_mean_kind                          */
    int64_t gp_knots;                                   /* of a spline mean; 0: by the data      */
    int64_t gp_season;    /* harmonics of a wave in the mean of all curves  */
    int64_t cbp_layers;   /* splines over the process              */
    bool cbp_condition_x; /* splines that depend on x              */
    /* mixed model */
    int64_t lmm_fixed,
        lmm_random;    /* knots of the population's and the curves' basis; 0: by the data */
    bool lmm_smooth;   /* the curves' covariance has four parameters                        */
    bool lmm_average;  /* several forms of the model, each with its share                   */
    int64_t lmm_draws; /* of the parameters; 0: the estimate alone                          */
} model_spec;

typedef enum head_kind { HEAD_NORMAL, HEAD_MIXTURE } head_kind;
/* Starts of a period: one, 1/4 to 2 times gp_period, or 1 and 2 times. */
typedef enum gp_restarts_kind { RESTARTS_OFF, RESTARTS_ON, RESTARTS_UP } gp_restarts_kind;
typedef enum gp_mean_kind { MEAN_CONSTANT, MEAN_SPLINE } gp_mean_kind;

/* A view of the table on `spec`, for base/options.h. */
option_view spec_view(model_spec *spec);
/* Name and one line of help of the k-th preset; NULL after the last. help may be NULL. */
const char *spec_preset_at(int k, const char **help);
/* Defaults of the preset for the process ("mnp", "gp", ...). Not every process has every preset. */
mnp_status spec_preset(env *e, const char *process, const char *preset, model_spec *spec);
/* What no single option's range can say: heads divide the width, bins fit, ... */
mnp_status spec_check(env *e, const model_spec *spec);

/* The points that training scores. */
row_range spec_scored(const model_spec *spec);

/* Width F of the features phi(x). */
int32_t spec_features(const model_spec *spec);

#endif
