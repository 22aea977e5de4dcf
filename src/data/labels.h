/* labels.h: numbers for distinct texts, in the order of their first appearance. */
#ifndef MNP_DATA_LABELS_H
#define MNP_DATA_LABELS_H

#include "util/env.h"

typedef struct labels {
    env *e;
    size_t count, cap; /* slots is a power of two, at most half full */
    size_t *slots;     /* number + 1, or 0 */
    const char **text; /* (count), borrowed */
} labels;

/* Room for up to `most` distinct texts. */
mnp_status labels_init(labels *l, env *e, size_t most);
void labels_free(labels *l);
/* The number of a text, a new one where it was not seen before. The text must stay alive. */
size_t labels_number(labels *l, const char *text);

#endif
