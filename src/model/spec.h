/* spec.h: the options of a model, as one table that parser, help and the model file's metadata
 * share. A spec says everything about a model but its weights. */
#ifndef MNP_MODEL_SPEC_H
#define MNP_MODEL_SPEC_H

#include "base/options.h"
#include "nn/nn.h"

enum { SPEC_MNP, SPEC_NP };

typedef struct model_spec {
    int kind;       /* SPEC_MNP or SPEC_NP                                        */
    int64_t x_dim;  /* inputs per point                                           */
    int64_t steps;  /* T, Markov steps                                            */
    int transition; /* index in transitions.def                                   */
    int encoder;    /* index in encoders.def                                      */
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
    int pool; /* 0 mean, 1 sum */
    /* transitions */
    int64_t flow_hidden, flow_layers, bins;
    double bound, min_width, min_height, min_derivative;
    double kappa;       /* affine: log-scale at most kappa per step               */
    double sigma_floor; /* Gaussian output: least sigma                           */
    double flow_gain;   /* initial gain of the conditioner's last layer           */
    bool identity_init; /* start the splines at the identity                      */
    int init;           /* nn_init */
    /* training objective */
    int kl;          /* 0 analytic per step, 1 sampled ratio                      */
    int objective;   /* 0 elbo, 1 iwae                                            */
    int train_score; /* 0 all points, 1 the rest                                  */
} model_spec;

/* A view of the table on `spec`, for base/options.h. */
option_view spec_view(model_spec *spec);
/* Defaults of the preset ("paper", "tiny") for the process ("mnp", "np"). */
mnp_status spec_preset(env *e, const char *process, const char *preset, model_spec *spec);
/* What no single option's range can say: heads divide the width, bins fit, ... */
mnp_status spec_check(env *e, const model_spec *spec);

/* Width F of the features phi(x). */
int32_t spec_features(const model_spec *spec);

#endif
