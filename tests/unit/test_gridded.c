/* test_gridded.c: the scores of densities on grids against closed forms: a normal, a uniform, and a
 * mixture of normals on an uneven grid. */
#include "run/gridded.h"

#include "check.h"
#include "run/marginals.h"
#include "run/normals.h"

enum { NODES = 512 };

typedef struct grid {
    double at[NODES], logp[NODES];
} grid;

static gridded of(const grid *g) {
    return (gridded){NODES, g->at, g->logp};
}

static void a_normal(void) {
    static grid g;
    const double mean = 0.3, sd = 0.05;
    for (int k = 0; k < NODES; k++) {
        g.at[k] = mean + sd * (-12 + 24.0 * k / (NODES - 1)); /* as coarse as grids of sde are */
        g.logp[k] = normal_log_density(mean, sd, g.at[k]);
    }
    gridded p = of(&g);
    double m, v, sum = 0, worst = 0;
    for (double z = -4.03; z < 4; z += 0.0711) {
        double y = mean + z * sd;
        double off = gridded_log_density(&p, y) - normal_log_density(mean, sd, y);
        worst = fmax(worst, fabs(off)), sum += off * 0.0711 / 8;
        NEAR(gridded_crps(&p, y), normal_crps(mean, sd, y), 5e-4 * sd, 0);
    }
    CHECK(worst < 4e-4 && fabs(sum) < 2e-4);
    NEAR(gridded_kl(&p, 0.31, 0.07), normal_kl(mean, sd, 0.31, 0.07), 1e-9, 0);
    gridded_moments(&p, &m, &v);
    NEAR(m, mean, 1e-12, 0);
    NEAR(v, sd * sd, 0, 1e-9);
    CHECK(gridded_log_density(&p, mean + 13 * sd) == -INFINITY);
    CHECK(gridded_log_density(&p, mean - 13 * sd) == -INFINITY);
}

/* E |Y - y| of a uniform on [a, b] by its two sides; E |Y - Y'| is a third of its width. */
static void a_uniform(void) {
    static grid g;
    const double a = 0.2, b = 0.6, w = b - a;
    for (int k = 0; k < NODES; k++) g.at[k] = a + w * k / (NODES - 1), g.logp[k] = -log(w);
    gridded p = of(&g);
    double m, v, inside = 0.33, cross = log(0.5 * sqrt(2 * acos(-1.0)));
    NEAR(gridded_crps(&p, inside),
         ((inside - a) * (inside - a) + (b - inside) * (b - inside)) / (2 * w) - w / 6, 1e-5, 0);
    NEAR(gridded_crps(&p, 0.9), 0.9 - 0.4 - w / 6, 1e-5, 0);
    gridded_moments(&p, &m, &v);
    NEAR(m, 0.4, 1e-9, 0);
    NEAR(v, w * w / 12, 1e-6, 0);
    NEAR(gridded_kl(&p, 0.1, 0.5), cross + (v + 0.09) / (2 * 0.25) - log(w), 1e-6, 0);
    NEAR(gridded_log_density(&p, a), -log(w), 1e-12, 0);
    NEAR(gridded_log_density(&p, b), -log(w), 1e-12, 0);
    CHECK(gridded_log_density(&p, b + 1e-3) == -INFINITY);
}

static void a_mixture_on_an_uneven_grid(void) {
    static const double weight[] = {0.7, 0.3}, mean[] = {-0.2, 0.25}, sd[] = {0.1, 0.08};
    static grid g;
    normals two = {2, weight, mean, sd};
    for (int k = 0; k < NODES; k++) {
        g.at[k] = tanh(-1.5 + 3.0 * k / (NODES - 1));
        g.logp[k] = normals_log_density(&two, g.at[k]);
    }
    gridded p = of(&g);
    for (double y = -0.5; y < 0.6; y += 0.0137) {
        NEAR(gridded_log_density(&p, y), normals_log_density(&two, y), 3e-3, 0);
        NEAR(gridded_crps(&p, y), normals_crps(&two, y), 5e-5, 0);
    }
    NEAR(gridded_kl(&p, 0, 0.3), normals_kl(&two, 0, 0.3), 1e-5, 0);
}

static void what_is_not_known_is_no_number(void) {
    static grid g;
    for (int k = 0; k < NODES; k++) g.at[k] = k, g.logp[k] = NAN;
    gridded p = of(&g);
    CHECK(isnan(gridded_log_density(&p, 7)) && isnan(gridded_log_density(&p, -7)));
    CHECK(isnan(gridded_crps(&p, 7)) && isnan(gridded_kl(&p, 0, 1)));
}

int main(void) {
    RUN(a_normal);
    RUN(a_uniform);
    RUN(a_mixture_on_an_uneven_grid);
    RUN(what_is_not_known_is_no_number);
    return check_done();
}
