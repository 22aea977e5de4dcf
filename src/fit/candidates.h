/* candidates.h: the models that are fitted and compared: rows of candidates.def. A candidate is a
 * function from curves to a model; the order is from simple to complicated, and a later one may use
 * the models of those before it. */
#ifndef MNP_FIT_CANDIDATES_H
#define MNP_FIT_CANDIDATES_H

#include "data/dataset.h"
#include "model/model.h"

#define CANDIDATE(name, title, condition) CANDIDATE_##name,
enum {
#include "fit/candidates.def"
    CANDIDATES
};
#undef CANDIDATE

typedef struct candidate_input {
    const dataset *curves;      /* all that may be learned from                     */
    const model *const *before; /* (CANDIDATES) fitted to the same curves, or NULL  */
    bool part;                  /* these are some of the curves: all of them decided */
    double effort;              /* of those that train by steps: 1 = the usual      */
    uint64_t seed;
    pool *pool;
    buf *warnings;                              /* a line each; NULL: not wanted */
    void (*progress)(void *user, double share); /* of those that take long; or NULL */
    void *progress_user;
} candidate_input;

typedef struct candidate_def {
    const char *name, *title;
    mnp_condition condition; /* how it is asked, in the table and later */
    /* *out NULL and MNP_OK: it is for curves of another kind; not where they are a part. */
    mnp_status (*fit)(env *e, const candidate_input *in, model **out);
} candidate_def;

const candidate_def *candidate_at(int k); /* NULL after the last */

#endif
