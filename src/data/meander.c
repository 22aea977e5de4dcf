/* meander.c: parameters, memory, the start and the step of a river. See meander.h. */
#include "data/meander.h"

#include <math.h>
#include <string.h>

/* ---- parameters ------------------------------------------------------------------------------ */

static const option_def table[] = {
    OPTION_INT(meander_opts, nit, "1500", 0, 1e6, "steps of a simulation"),
    OPTION_REAL(meander_opts, W, "200", 1e-3, 1e6, "channel width, m"),
    OPTION_REAL(meander_opts, D, "6", 1e-3, 1e6, "channel depth, m"),
    OPTION_REAL(meander_opts, Cf, "0.03", 0, 1e3, "friction factor"),
    OPTION_REAL(meander_opts, k, "1", 0, 1e3, "factor in the decay of upstream influence"),
    OPTION_REAL(meander_opts, kl, "60", 0, 1e6, "migration constant, m per year"),
    OPTION_REAL(meander_opts, dt, "0.1", 0, 1e6, "time step, years"),
    OPTION_REAL(meander_opts, Omega, "-1", -1e3, 1e3, "weight of the local curvature"),
    OPTION_REAL(meander_opts, Gamma, "2.5", -1e3, 1e3, "weight of the upstream curvature"),
    OPTION_REAL(meander_opts, ds0, "50", 1e-3, 1e6, "node spacing, m"),
    OPTION_REAL(meander_opts, crdist, "0", 0, 1e6, "neck width that is cut off, m; 0 = W"),
    OPTION_INT(meander_opts, pad, "100", 0, 1e5, "fixed nodes at the outlet"),
    OPTION_INT(meander_opts, pad1, "-1", -1, 1e5, "fixed nodes at the inlet; -1 = a tenth of pad"),
    OPTION_INT(meander_opts, n_bends, "30", 1, 1e5, "length of the rough reach, in 5 W"),
    OPTION_REAL(meander_opts, roughness, "10", 0, 1e6, "sideways roughness of the start, m"),
    OPTION_REAL(meander_opts, sinuosity_exponent, "-0.6666666666666666", -10, 10,
                "rates are multiplied by the sinuosity to this power; 0 = not"),
};

option_view meander_view(meander_opts *o) {
    return (option_view){table, OPTION_COUNT(table), o};
}

/* Nodes of the rough reach. */
static double rough_nodes(const meander_opts *o) {
    return floor((double)o->n_bends * 10 * o->W / 2 / o->ds0) + 1;
}

mnp_status meander_settle(env *e, meander_opts *o) {
    if (o->crdist == 0) o->crdist = o->W;
    if (o->pad1 < 0) o->pad1 = o->pad / 10 > 5 ? o->pad / 10 : 5;
    double nodes = rough_nodes(o) + (double)(o->pad + o->pad1);
    if (nodes < 4 || nodes > MEANDER_NODES_MAX)
        return env_fail(e, MNP_EINVAL,
                        "n_bends, W, ds0 and the pads make a line of %.0f nodes (from 4 to %d are "
                        "possible)",
                        nodes, MEANDER_NODES_MAX);
    return MNP_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

mnp_status meander_reserve(meander *m, int64_t n) {
    if (n <= m->capacity) return MNP_OK;
    double **arrays[] = {&m->x,  &m->y,     &m->dx,     &m->dy,    &m->ds, &m->R0,
                         &m->R1, &m->new_x, &m->new_y,  &m->u,     &m->h,  &m->upper,
                         &m->Mx, &m->My,    &m->cell_x, &m->cell_y};
    enum { ARRAYS = sizeof arrays / sizeof *arrays };
    size_t room = (size_t)n + (size_t)n / 2;
    double *block = env_alloc(m->e, room * ARRAYS, sizeof *block, "a river");
    int32_t *node = env_alloc(m->e, room * 2, sizeof *node, "a river");
    if (!block || !node) {
        env_free(m->e, block);
        env_free(m->e, node);
        return MNP_ENOMEM;
    }
    if (m->n > 0) {
        memcpy(block, m->x, (size_t)m->n * sizeof *block);
        memcpy(block + room, m->y, (size_t)m->n * sizeof *block);
    }
    env_free(m->e, m->block);
    env_free(m->e, m->node);
    for (size_t k = 0; k < ARRAYS; k++) *arrays[k] = block + k * room;
    m->block = block;
    m->node = node;
    m->cell_of = node + room;
    m->capacity = (int64_t)room;
    return MNP_OK;
}

mnp_status meander_create(env *e, const meander_opts *o, meander **out) {
    *out = NULL;
    meander *m = env_alloc(e, 1, sizeof *m, "a river");
    if (!m) return MNP_ENOMEM;
    m->e = e;
    m->o = *o;
    m->cell_start = env_alloc(e, MEANDER_CELLS_MAX + 1, sizeof *m->cell_start, "a river");
    if (!m->cell_start || meander_reserve(m, 2048) != MNP_OK) {
        meander_destroy(m);
        return MNP_ENOMEM;
    }
    *out = m;
    return MNP_OK;
}

void meander_destroy(meander *m) {
    if (!m) return;
    env *e = m->e;
    env_free(e, m->block);
    env_free(e, m->node);
    env_free(e, m->cell_start);
    env_free(e, m->loops.start);
    env_free(e, m->loops.step);
    env_free(e, m->loops.x);
    env_free(e, m->loops.y);
    env_free(e, m);
}

/* ---- the start ------------------------------------------------------------------------------- */

mnp_status meander_set_line(meander *m, int64_t n, const double *x, const double *y) {
    if (n < 4 || n > MEANDER_NODES_MAX)
        return env_fail(m->e, MNP_EINVAL, "a line of %lld nodes (from 4 to %d are possible)",
                        (long long)n, MEANDER_NODES_MAX);
    m->n = m->step = m->loops.count = m->loops.nodes = 0;
    MNP_TRY(meander_reserve(m, n));
    memcpy(m->x, x, (size_t)n * sizeof *x);
    memcpy(m->y, y, (size_t)n * sizeof *y);
    m->n = n;
    return MNP_OK;
}

mnp_status meander_start(meander *m, rng_stream *s) {
    const meander_opts *o = &m->o;
    int64_t rough = (int64_t)rough_nodes(o), n = rough + o->pad + o->pad1;
    m->n = m->step = m->loops.count = m->loops.nodes = 0;
    MNP_TRY(meander_reserve(m, n));
    m->n = n;
    for (int64_t i = 0; i < n; i++) {
        bool inside = i >= o->pad1 && i < o->pad1 + rough;
        m->x[i] = o->ds0 * (double)i;
        m->y[i] = inside ? o->roughness * (2 * rng_u01(s) - 1) : 0;
    }
    return MNP_OK;
}

/* ---- the step -------------------------------------------------------------------------------- */

mnp_status meander_step(meander *m) {
    MNP_TRY(meander_migrate(m));
    MNP_TRY(meander_cut(m));
    MNP_TRY(meander_resample(m));
    m->step++;
    return MNP_OK;
}

double meander_arc(const meander *m) {
    const double *x = m->x, *y = m->y;
    double sum = 0;
    for (int64_t i = 1; i + 1 < m->n; i++) {
        double dx = (x[i + 1] - x[i - 1]) / 2, dy = (y[i + 1] - y[i - 1]) / 2;
        sum += sqrt(dx * dx + dy * dy);
    }
    double dx = x[m->n - 1] - x[m->n - 2], dy = y[m->n - 1] - y[m->n - 2];
    return sum + sqrt(dx * dx + dy * dy);
}

double meander_chord(const meander *m) {
    double sum = 0;
    for (int64_t i = 1; i < m->n; i++) {
        double dx = m->x[i] - m->x[i - 1], dy = m->y[i] - m->y[i - 1];
        sum += sqrt(dx * dx + dy * dy);
    }
    return sum;
}
