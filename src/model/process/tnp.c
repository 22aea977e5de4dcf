/* tnp.c: the Transformer Neural Process with diagonal densities (TNP-D): the density of a point has
 * its numbers from what attention tells it of the context (model/attend.h). */
#include "model/attend.h"
#include "model/features.h"
#include "model/process/factorised.h"

static attend_opts tokens_of(const model_spec *s) {
    return (attend_opts){"", s->enc_width, s->heads, s->n_sab, s->y_gain};
}

static mnp_status check(env *e, const model_spec *s) {
    attend_opts o = tokens_of(s);
    return attend_check(e, &o);
}

static val numbers(graph *g, const model_spec *s, val x, val y) {
    attend_opts tokens = tokens_of(s);
    val h = attend_record(g, &tokens, model_features(g, s, x), y);
    nn_mlp_opts o = {.hidden = (int32_t)s->flow_hidden,
                     .layers = (int32_t)s->flow_layers,
                     .out = factorised_numbers(s),
                     .last_gain = s->flow_gain};
    return nn_mlp_rest(g, nn_dense(g, h, "dec.0", o.hidden, ACT_RELU, 1.0), "dec", &o);
}

const process_def process_tnp = {FACTORISED,
                                 .help = "transformer neural process: points attend to the context",
                                 .check = check, .numbers = numbers};
