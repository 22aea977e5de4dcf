/* true_law.h: the scores of one target under the law of truth_ask(), whichever form that has. */
#ifndef MNP_RUN_TRUE_LAW_H
#define MNP_RUN_TRUE_LAW_H

#include "data/truth.h"

bool true_law_known(const truth_law *law);
/* Of target t of a law that is known. */
double true_law_log_density(const truth_law *law, int64_t t, double y);
double true_law_crps(const truth_law *law, int64_t t, double y);
/* KL(law || q) of a normal q. */
double true_law_kl(const truth_law *law, int64_t t, double mean_q, double sd_q);
void true_law_moments(const truth_law *law, int64_t t, double *mean, double *variance);

#endif
