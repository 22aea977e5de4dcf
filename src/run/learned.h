/* learned.h: the numbers that a Gaussian process has learned, for people to read. */
#ifndef MNP_RUN_LEARNED_H
#define MNP_RUN_LEARNED_H

#include "model/model.h"

/* One line in the units of the data, "Matern-5/2: sd 1.2, length 12 in day; noise: sd 0.1 in
 * height"; nothing for a model whose numbers mean nothing by themselves. */
mnp_status learned_print(const model *m, buf *out);

#endif
