/* eval_draws.h: the part of mnp eval that scores draws (mnp_evaluate_draws): flags, lines, JSON. */
#ifndef MNP_CLI_EVAL_DRAWS_H
#define MNP_CLI_EVAL_DRAWS_H

#include "cli/condition.h"

#define EVAL_DRAW_FLAGS                                                                            \
    {"draws", "S",                                                                                 \
     "draws for coverage and CRPS (default 39; 0 = skip them); given, also scores of them target " \
     "by target"},                                                                                 \
        CONDITION_FLAGS("(default network; given, 512 draws unless --draws says)"),                \
        {"joint", "R",                                                                             \
         "also all targets jointly by the evidence, from R runs of each set (2 or more: slow)"},   \
        {"joint-particles", "P", "of each of these runs (default 64, whatever --draws is)"}, {     \
        "sandwich", NULL,                                                                          \
            "also bounds of log p(context) from both sides, on functions of the model itself"      \
    }

enum { EVAL_JOINT_PARTICLES = 64 };

typedef struct eval_draws {
    bool wanted, compared; /* compared: the network's too */
    mnp_predictive_opts how;
    mnp_predictive asked[MNP_PREDICTIVE_ROWS], network[MNP_PREDICTIVE_ROWS];
    double seconds, network_seconds;
} eval_draws;

/* What the flags ask for; check cli_bad() afterwards. Of images --draws alone asks for nothing. */
void eval_draws_read(cli *c, bool images, eval_draws *d);
mnp_status eval_draws_run(cli *c, const mnp_model *m, const mnp_data *data,
                          const mnp_eval_opts *opts, eval_draws *d);
/* A table by context size. */
void eval_draws_say(cli *c, const eval_draws *d);
/* Members of the object for all functions; of row k for those of a context size, k = 1 .. */
void eval_draws_json(cli_json *j, const eval_draws *d);
void eval_draws_json_row(cli_json *j, const eval_draws *d, int k);

#endif
