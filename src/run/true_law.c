/* true_law.c: see true_law.h. */
#include "run/true_law.h"

#include "run/gridded.h"
#include "run/normals.h"

bool true_law_known(const truth_law *law) {
    return law->parts > 0 || law->nodes > 0;
}

static normals mixture(const truth_law *law, int64_t t) {
    int64_t at = t * law->parts;
    return (normals){law->parts, law->weight, law->mean + at, law->sd + at};
}

static gridded grid(const truth_law *law, int64_t t) {
    int64_t at = t * law->nodes;
    return (gridded){law->nodes, law->at + at, law->logp + at};
}

double true_law_log_density(const truth_law *law, int64_t t, double y) {
    if (law->nodes) {
        gridded p = grid(law, t);
        return gridded_log_density(&p, y);
    }
    normals p = mixture(law, t);
    return normals_log_density(&p, y);
}

double true_law_crps(const truth_law *law, int64_t t, double y) {
    if (law->nodes) {
        gridded p = grid(law, t);
        return gridded_crps(&p, y);
    }
    normals p = mixture(law, t);
    return normals_crps(&p, y);
}

double true_law_kl(const truth_law *law, int64_t t, double mean_q, double sd_q) {
    if (law->nodes) {
        gridded p = grid(law, t);
        return gridded_kl(&p, mean_q, sd_q);
    }
    normals p = mixture(law, t);
    return normals_kl(&p, mean_q, sd_q);
}

void true_law_moments(const truth_law *law, int64_t t, double *mean, double *variance) {
    if (law->nodes) {
        gridded p = grid(law, t);
        gridded_moments(&p, mean, variance);
        return;
    }
    normals p = mixture(law, t);
    *mean = *variance = 0;
    for (int64_t k = 0; k < p.parts; k++) *mean += p.weight[k] * p.mean[k];
    for (int64_t k = 0; k < p.parts; k++) {
        double off = p.mean[k] - *mean;
        *variance += p.weight[k] * (p.sd[k] * p.sd[k] + off * off);
    }
}
