/* places.c: see places.h. */
#include "cli/places.h"

#include <math.h>

#include "cli/source.h"

places_span places_nothing(void) {
    return (places_span){{INFINITY, INFINITY}, {-INFINITY, -INFINITY}};
}

void places_widen(places_span *s, int64_t x_dim, const double *x) {
    for (int64_t k = 0; k < x_dim; k++) {
        s->lo[k] = fmin(s->lo[k], x[k]);
        s->hi[k] = fmax(s->hi[k], x[k]);
    }
}

bool places_of_data(cli *c, const mnp_model *m, int64_t x_dim, places_span *s) {
    mnp_data *data = NULL;
    if (!mnp_model_note(m, "data") || source_open_test(c, m, 100, NULL, &data) != MNP_OK)
        return false;
    bool good = mnp_data_x_dim(data) == x_dim && mnp_data_points(data) > 0;
    int64_t functions = good ? mnp_data_functions(data) : 0;
    for (int64_t i = 0; i < functions && good; i++) {
        const float *x, *y;
        int64_t n;
        good = mnp_data_function(c->ctx, data, i, &n, &x, &y) == MNP_OK;
        for (int64_t j = 0; good && j < n; j++) {
            double at[2] = {0};
            for (int64_t k = 0; k < x_dim && k < 2; k++)
                at[k] = (double)x[j * x_dim + k] + mnp_data_x_origin(data, k);
            places_widen(s, x_dim, at);
        }
    }
    mnp_data_destroy(data);
    return good;
}

/* Outwards to round numbers, so that the ends of the axis can carry labels. */
static void round_outwards(double *lo, double *hi) {
    double step = pow(10, floor(log10(*hi - *lo)) - 1);
    *lo = floor(*lo / step + 1e-9) * step;
    *hi = ceil(*hi / step - 1e-9) * step;
}

void places_round(places_span *s, int64_t x_dim) {
    if (!(s->lo[0] <= s->hi[0])) *s = (places_span){{-2, -2}, {2, 2}};
    for (int64_t k = 0; k < x_dim; k++)
        if (s->hi[k] > s->lo[k]) round_outwards(&s->lo[k], &s->hi[k]);
}
