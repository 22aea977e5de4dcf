/* service_points.c: see service_points.h. */
#include "serve/service_points.h"

#include <math.h>
#include <string.h>

void places_fill(int64_t x_dim, const double *lo, const double *hi, const int64_t *n, double *x) {
    int64_t total = 1;
    for (int64_t k = 0; k < x_dim; k++) total *= n[k];
    for (int64_t i = 0; i < total; i++) {
        int64_t rest = i;
        for (int64_t k = x_dim - 1; k >= 0; k--) {
            int64_t at = rest % n[k];
            rest /= n[k];
            double part = n[k] > 1 ? (double)at / (double)(n[k] - 1) : 0;
            x[i * x_dim + k] = lo[k] + part * (hi[k] - lo[k]);
        }
    }
}

void points_name(const mnp_model *m, int64_t k, char out[POINTS_NAME]) {
    int64_t dims = mnp_model_x_dim(m);
    const char *names = mnp_model_note(m, k < dims ? "x_names" : "y_name");
    if (k >= dims) {
        snprintf(out, POINTS_NAME, "%s", names && *names ? names : "y");
        return;
    }
    snprintf(out, POINTS_NAME, "x");
    if (dims > 1) snprintf(out, POINTS_NAME, "x%lld", (long long)k + 1);
    for (int64_t i = 0; names && *names && i < k; i++) {
        names += strcspn(names, ",");
        names += *names == ',';
    }
    int length = names ? (int)strcspn(names, ",") : 0;
    if (length > 0) snprintf(out, POINTS_NAME, "%.*s", length, names);
}

void points_outside(const mnp_model *m, const mnp_set *set, const char *what, buf *to) {
    int64_t dims = mnp_model_x_dim(m);
    for (int64_t k = 0; k < dims + (set->y != NULL); k++) {
        const double *v = k < dims ? set->x + k : set->y;
        double lo, hi, least = INFINITY, most = -INFINITY;
        if (!mnp_model_range(m, k, &lo, &hi)) continue;
        double slack = (k < dims ? 0.05 : 0.25) * (hi - lo);
        int64_t out = 0;
        for (int64_t i = 0; i < set->n; i++, v += k < dims ? dims : 1) {
            out += *v < lo - slack || *v > hi + slack;
            least = fmin(least, *v), most = fmax(most, *v);
        }
        if (!out) continue;
        char name[POINTS_NAME], from[64], till[64], low[64], high[64];
        points_name(m, k, name);
        mnp_model_text(m, k, least, from, sizeof from);
        mnp_model_text(m, k, most, till, sizeof till);
        mnp_model_text(m, k, lo, low, sizeof low);
        mnp_model_text(m, k, hi, high, sizeof high);
        buf_printf(to,
                   "%lld of %lld %s points lie outside the training curves: %s goes from %s to %s, "
                   "theirs from %s to %s\n",
                   (long long)out, (long long)set->n, what, name, from, till, low, high);
    }
}

void points_far(const mnp_model *m, const mnp_set *set, const char *what, buf *to) {
    int64_t dims = mnp_model_x_dim(m), far = 0;
    if (mnp_model_note(m, "table")) return;
    for (int64_t i = 0; i < set->n; i++) {
        bool away = set->y && mnp_model_distance(m, dims, set->y[i]) > MNP_FAR;
        for (int64_t k = 0; k < dims; k++)
            away |= mnp_model_distance(m, k, set->x[i * dims + k]) > MNP_FAR;
        far += away;
    }
    if (far)
        buf_printf(to,
                   "%lld of %lld %s points lie more than %g times its spread from the training "
                   "data: the model knows nothing there (are the units right?)\n",
                   (long long)far, (long long)set->n, what, MNP_FAR);
}

void points_many(const mnp_model *m, int64_t n, buf *to) {
    int64_t most = mnp_model_context_max(m);
    bool network = mnp_model_latent(m) > 0 || mnp_model_factorises(m);
    if (network && most > 0 && n > most)
        buf_printf(to, "%lld observed points are more than the model was trained with (%lld)\n",
                   (long long)n, (long long)most);
}
