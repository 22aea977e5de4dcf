/* make_model.h: a model for a data set. The data fix the number of inputs, the frequency scale and,
 * where they are not taken as they are, the standardisation; the model notes what they were. */
#ifndef MNP_RUN_MAKE_MODEL_H
#define MNP_RUN_MAKE_MODEL_H

#include "data/dataset.h"
#include "model/model.h"

typedef struct model_wish {
    const char *process, *preset;
    const char *options; /* on top of the preset, or NULL */
    uint64_t seed;
} model_wish;

/* The preset for a wish that names none: what a published model needs would only learn a table of
 * few curves by heart. d may be NULL. */
const char *model_preset_for(const char *process, const dataset *d);
/* d may be NULL: one input, unscaled. */
mnp_status model_for_data(env *e, const model_wish *wish, const dataset *d, model **out);

/* A model for d with the weights of another, whose own data it maps the new ones to, and its
 * options but for those of `options` (NULL: none), which may be attend and how it is trained. What
 * that adds starts from the seed where it is a network of its own, and at zero where it is one more
 * input of a network that is there: so it says at first what it said. */
mnp_status model_from_model(env *e, const model *from, const char *options, uint64_t seed,
                            const dataset *d, model **out);

/* What the model was trained on and how that was opened, from its notes. MNP_EINVAL: it does not
 * say. Texts are the notes' own. */
mnp_status model_data_source(env *e, const model *m, const char **what, data_source *out);
/* What its own table was, or inputs that are numbers with the names the model has for them. */
mnp_status model_roles(env *e, const model *m, roles *out);
/* How its own table was read: roles for roles_free(), which out->roles points to, the table's hash
 * and split. Zeros where the model does not say. */
mnp_status model_data_like(env *e, const model *m, roles *r, roles_like *out);

#endif
