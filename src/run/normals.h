/* normals.h: a mixture of normal distributions: the scores of marginals.h and the levels of a law
 * that is known. KL of several parts is an integral. To about six digits for up to 512 parts, to
 * three for more. */
#ifndef MNP_RUN_NORMALS_H
#define MNP_RUN_NORMALS_H

#include <stdint.h>

typedef struct normals {
    int64_t parts;
    const double *weight, *mean, *sd; /* (parts); weights of sum 1 */
} normals;

double normals_log_density(const normals *p, double y);
double normals_cdf(const normals *p, double y);
double normals_quantile(const normals *p, double level); /* 0 < level < 1 */
double normals_crps(const normals *p, double y);
/* KL(p || q) of a normal q. */
double normals_kl(const normals *p, double mean_q, double sd_q);

#endif
