/* test_density.c: exp(log p(y | z)) of one point is a probability density. Numbers u_0 < u_1 < ...
 * are pushed through the model, from noise to data: y_k = F(u_k). Then the integral of the density
 * from y_k to y_{k+1} must be Phi(u_{k+1}) - Phi(u_k), and all of them add up to one. The density
 * comes from the inverse maps and their log-derivatives, the y_k from the other direction, so both
 * are held against each other, bin by bin.
 *
 * Quadrature: Gauss-Kronrod with 7 and 15 nodes on each piece of the y axis, cut in two until the
 * rules agree. A piece is cut at the image of the middle of its u: so the pieces are small where
 * the mass is, however narrow the peaks that stacked splines make, and close in on their knots. */
#include "lab.h"

enum { STEPS_MAX = 4, CELLS = 160, NODES = 15, WORK_MAX = 32768, ROUNDS = 40, CHUNK = 512 };
static const double reach = 8.5; /* noise within +-reach: all but 2e-17 of it */

typedef struct scene {
    lab *l;
    double x[2];             /* of the point                  */
    double z[STEPS_MAX][64]; /* latents                       */
    lab_run push, density;   /* noise -> data, and log p(y|z) */
    double rows[CHUNK * 2], in[CHUNK], out[CHUNK];
} scene;

static void record_push(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    val x = op_feed(g, "x", EXT_N, 0, (int32_t)s->x_dim, false, false);
    val u = op_feed_scalars(g, "u", EXT_N, false, false);
    val z[STEPS_MAX], path[STEPS_MAX + 1];
    for (int64_t t = 0; t < s->T; t++)
        z[t] = op_feed(g, "z", EXT_FIXED, 1, (int32_t)s->d_z, false, false);
    chain_record_draw(g, s, x, VAL_NONE, z, u, path);
    op_emit(g, path[s->T]);
}

static void record_density(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    val x = op_feed(g, "x", EXT_N, 0, (int32_t)s->x_dim, false, false);
    val y = op_feed_scalars(g, "y", EXT_N, false, false);
    val z[STEPS_MAX];
    for (int64_t t = 0; t < s->T; t++)
        z[t] = op_feed(g, "z", EXT_FIXED, 1, (int32_t)s->d_z, false, false);
    op_emit(g, chain_record_logp(g, s, x, VAL_NONE, y, z));
}

/* f of `count` numbers at the scene's x. */
static void ask(scene *c, lab_run *r, const double *in, int64_t count, double *out) {
    const model_spec *s = &c->l->m->spec;
    r->io.feed[0] = c->rows, r->io.feed[1] = c->in, r->io.emit[0] = c->out;
    for (int64_t t = 0; t < s->T; t++) r->io.feed[2 + t] = c->z[t];
    for (int64_t at = 0; at < count; at += CHUNK) {
        int64_t n = count - at < CHUNK ? count - at : CHUNK;
        for (int64_t i = 0; i < n * s->x_dim; i++) c->rows[i] = c->x[i % s->x_dim];
        memcpy(c->in, in + at, (size_t)n * sizeof *in);
        if (!lab_go(r, n, 0)) return;
        memcpy(out + at, c->out, (size_t)n * sizeof *out);
    }
}

/* ---- quadrature ------------------------------------------------------------------------------ */

/* Nodes on [0, 1) by symmetry; every second one is a Gauss node. */
static const double node[8] = {
    0.991455371120812639206854697526329, 0.949107912342758524526189684047851,
    0.864864423359769072789712788640926, 0.741531185599394439863864773280788,
    0.586087235467691130294144691693013, 0.405845151377397166906606412076961,
    0.207784955007898467600689403773245, 0.0};
static const double kronrod[8] = {
    0.022935322010529224963732008058970, 0.063092092629978553290700663189204,
    0.104790010322250183839876322541518, 0.140653259715525918745189590510238,
    0.169004726639267902826583426598550, 0.190350578064785409913256402421014,
    0.204432940075298892414161999234649, 0.209482141084727828012999174891714};
static const double gauss[4] = {
    0.129484966168869693270611432679082, 0.279705391489276667901467771423780,
    0.381830050505118944950369775488975, 0.417959183673469387755102040816327};

/* From y = F(u) to y = F(v). Around a kink the two rules may agree by chance, so a piece counts
 * only when they agreed on the piece it was cut from as well. */
typedef struct piece {
    double u, v, lo, hi;
    int cell;
    bool calm;
} piece;

static double node_at(const piece *p, int k) {
    double half = 0.5 * (p->hi - p->lo), mid = 0.5 * (p->hi + p->lo);
    return k < 8 ? mid - half * node[k] : mid + half * node[14 - k];
}

/* Integral over a piece from the log-densities at its nodes, and how far the two rules differ. */
static double integrate(const piece *p, const double *logp, double *error) {
    double half = 0.5 * (p->hi - p->lo), fine = 0, coarse = 0;
    for (int k = 0; k < NODES; k++) {
        int j = k < 8 ? k : 14 - k;
        double f = exp(logp[k]);
        fine += kronrod[j] * f;
        if (j % 2 == 1) coarse += gauss[j / 2] * f;
    }
    *error = fabs(fine - coarse) * half;
    return fine * half;
}

/* Mass of each cell [y_k, y_{k+1}]. */
static void masses(scene *c, const double *u, const double *y, double *mass) {
    static piece now[WORK_MAX], next[WORK_MAX];
    static double at[WORK_MAX * NODES], logp[WORK_MAX * NODES];
    int64_t count = CELLS;
    for (int k = 0; k < CELLS; k++)
        now[k] = (piece){u[k], u[k + 1], y[k], y[k + 1], k, false}, mass[k] = 0;
    for (int round = 0; round < ROUNDS && count > 0; round++) {
        int64_t left = 0;
        for (int64_t i = 0; i < count * NODES; i++)
            at[i] = node_at(&now[i / NODES], (int)(i % NODES));
        ask(c, &c->density, at, count * NODES, logp);
        for (int64_t i = 0; i < count; i++) {
            double error, value = integrate(&now[i], logp + i * NODES, &error);
            bool small = error < 1e-13 + 1e-10 * value;
            bool grain = now[i].hi - now[i].lo < 1e-14 * (1 + fabs(now[i].lo));
            if ((small && now[i].calm) || grain || round == ROUNDS - 1 || left == WORK_MAX / 2)
                mass[now[i].cell] += value;
            else
                now[left] = now[i], now[left++].calm = small;
        }
        for (int64_t i = 0; i < left; i++) at[i] = 0.5 * (now[i].u + now[i].v);
        ask(c, &c->push, at, left, logp);
        for (int64_t i = 0; i < left; i++) {
            next[2 * i] = (piece){now[i].u, at[i], now[i].lo, logp[i], now[i].cell, now[i].calm};
            next[2 * i + 1] =
                (piece){at[i], now[i].v, logp[i], now[i].hi, now[i].cell, now[i].calm};
        }
        count = 2 * left;
        memcpy(now, next, (size_t)count * sizeof *now);
    }
}

/* ---- the law --------------------------------------------------------------------------------- */

static double worst_cell, worst_total;

/* A y_k is only as good as its last bit, which moves mass between neighbouring cells: in the worst
 * of these models a unit in the last place of y is 1e-7 of u. */
static double slack(const double *y, const double *logp, int k) {
    double lost = fmax(fabs(y[k]) * exp(logp[k]), fabs(y[k + 1]) * exp(logp[k + 1]));
    return 1e-10 + 4 * 2.3e-16 * lost;
}

static void check_scene(scene *c) {
    double u[CELLS + 1], y[CELLS + 1], logp[CELLS + 1], mass[CELLS], total = 0;
    for (int k = 0; k <= CELLS; k++) u[k] = reach * (2.0 * k / CELLS - 1.0);
    ask(c, &c->push, u, CELLS + 1, y);
    ask(c, &c->density, y, CELLS + 1, logp);
    masses(c, u, y, mass);
    for (int k = 0; k < CELLS; k++) {
        double want = 0.5 * (erfc(-u[k + 1] / sqrt(2)) - erfc(-u[k] / sqrt(2)));
        if (u[k] > 0) want = 0.5 * (erfc(u[k] / sqrt(2)) - erfc(u[k + 1] / sqrt(2)));
        CHECK(y[k] < y[k + 1]);
        NEAR(mass[k], want, slack(y, logp, k), 0);
        worst_cell = fmax(worst_cell, fabs(mass[k] - want));
        total += mass[k];
    }
    NEAR(total, 1.0, 1e-9, 0);
    worst_total = fmax(worst_total, fabs(total - 1.0));
}

static void check_model(const char *options, double gain, uint32_t stream) {
    lab l;
    if (!lab_open(&l, "mnp", options, 3)) return;
    lab_randomise(&l, gain, stream);
    static scene c;
    c = (scene){.l = &l};
    plan_opts capacity = {.n = CHUNK, .m = 0, .samples = 1};
    rng_stream s = rng_stream_make((rng_key){11}, RNG_TEST, stream);
    if (lab_start(&c.push, &l, "ref", capacity, record_push, NULL) &&
        lab_start(&c.density, &l, "ref", capacity, record_density, NULL))
        for (int point = 0; point < 2; point++) {
            for (int64_t k = 0; k < l.m->spec.x_dim; k++) c.x[k] = 2 * rng_normal(&s);
            for (int64_t i = 0; i < l.m->spec.T * l.m->spec.d_z; i++)
                c.z[i / l.m->spec.d_z][i % l.m->spec.d_z] = rng_normal(&s);
            check_scene(&c);
        }
    lab_stop(&c.push);
    lab_stop(&c.density);
    lab_close(&l);
}

#define SMALL "rff=4 d_z=3 flow_hidden=8 "

static void splines(void) {
    check_model("T=1 transition=rqs bins=10 " SMALL, 1.0, 1);
    check_model("T=3 transition=rqs bins=8 " SMALL, 0.3, 2);
    check_model("T=3 transition=rqs bins=8 " SMALL, 1.0, 3);
    check_model("T=3 transition=rqs bins=8 " SMALL, 3.0, 4);
    check_model("T=4 transition=rqs bins=10 x_dim=2 flow_layers=1 " SMALL, 1.5, 5);
    check_model("T=2 transition=rqs bins=3 bound=3 identity_init=on rff=0 d_z=3", 2.0, 6);
}

static void affine_maps(void) {
    check_model("T=1 transition=affine kappa=5 " SMALL, 1.0, 7);
    check_model("T=3 transition=affine kappa=2 " SMALL, 0.3, 8);
    check_model("T=3 transition=affine kappa=5 " SMALL, 3.0, 9);
    check_model("T=4 transition=affine kappa=1 x_dim=2 " SMALL, 10.0, 10);
}

static void gaussian_maps(void) {
    check_model("T=1 transition=gauss sigma_floor=1e-3 " SMALL, 1.0, 11);
    check_model("T=2 transition=gauss sigma_floor=0.05 " SMALL, 0.3, 12);
    check_model("T=3 transition=gauss sigma_floor=1e-2 x_dim=2 " SMALL, 3.0, 13);
}

int main(void) {
    RUN(splines);
    RUN(affine_maps);
    RUN(gaussian_maps);
    printf("largest error: %.1e in one of %d cells, %.1e in the total\n", worst_cell, CELLS,
           worst_total);
    return check_done();
}
