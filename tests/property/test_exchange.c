/* test_exchange.c: the order of points means nothing. For every encoder and transition: when the
 * context is reordered, and the rest among itself, each point keeps its log-density and the latents
 * stay what they were (their noise is given by the seed, not by the order). Latents inferred from
 * the context alone do not see the other points at all.
 *
 * How exactly, depends on how much a model amplifies rounding. A fresh model: each point's
 * log-density within 1e-5 in float, without regard to its size (a number of size 40 has no digit
 * below 4e-6); the models that miss this are listed with what was measured. With conditioners ten
 * times as strong as they start, and sums instead of means over the set, a latent's last digit
 * matters a million times as much: there the change that is seen in double says how badly
 * conditioned the model is, and float may lose as many digits as double does. */
#include "lab.h"

enum { N = 40, M = 15, S = 3, T_MAX = 3, Z_MAX = 16 };

typedef struct sight {
    double logp[S * N], z[T_MAX][S * Z_MAX];
} sight;

typedef struct points {
    double x[N * 2], y[N];
    int32_t order[N]; /* row k is row order[k] of the first set */
} points;

static void record(graph *g, const model_spec *s, void *arg) {
    chain_source source = *(const chain_source *)arg;
    val x = op_feed(g, "x", EXT_N, 0, (int32_t)s->x_dim, false, false);
    val y = op_feed_scalars(g, "y", EXT_N, false, false);
    chain_walk w;
    chain_walk_opts o = {.source = source, .to_base = true, .purpose = RNG_LATENT_EVAL};
    o.with_prior = source == CHAIN_ALL;
    chain_record_walk(g, s, x, y, &o, &w);
    op_emit(g, w.logp);
    for (int64_t t = 0; t < s->T; t++) op_emit(g, w.z[t]);
}

static void look(lab_run *r, const points *p, int64_t m, sight *out) {
    *out = (sight){0};
    r->io.feed[0] = p->x, r->io.feed[1] = p->y;
    r->io.emit[0] = out->logp;
    for (int t = 0; t < T_MAX; t++) r->io.emit[1 + t] = out->z[t];
    lab_go(r, N, m);
}

static void draw_points(points *p, int64_t dims, rng_stream *s) {
    for (int64_t i = 0; i < N * dims; i++) p->x[i] = (double)(float)(4 * rng_u01(s) - 2);
    for (int32_t i = 0; i < N; i++) p->y[i] = (double)(float)rng_normal(s), p->order[i] = i;
}

static void reorder(const points *p, int64_t dims, int64_t m, rng_stream *s, points *out) {
    *out = *p;
    rng_shuffle(s, out->order, (size_t)m);
    rng_shuffle(s, out->order + m, (size_t)(N - m));
    for (int i = 0; i < N; i++) {
        for (int64_t c = 0; c < dims; c++) out->x[i * dims + c] = p->x[out->order[i] * dims + c];
        out->y[i] = p->y[out->order[i]];
    }
}

static double latents_apart(const sight *a, const sight *b) {
    double off = 0;
    for (int t = 0; t < T_MAX; t++)
        for (int i = 0; i < S * Z_MAX; i++) off = fmax(off, fabs(a->z[t][i] - b->z[t][i]));
    return off;
}

static double densities_apart(const sight *a, const sight *b, const points *p) {
    double off = 0;
    for (int k = 0; k < S * N; k++) {
        double d = fabs(b->logp[k] - a->logp[k / N * N + p->order[k % N]]);
        off = isfinite(d) ? fmax(off, d) : INFINITY;
    }
    return off;
}

/* ---- the laws -------------------------------------------------------------------------------- */

typedef struct change {
    double density, latents;
} change;

/* The largest change over a few orders. */
static change shuffle(lab_run *r, int64_t m, uint32_t stream) {
    int64_t dims = r->l->m->spec.x_dim;
    rng_stream s = rng_stream_make((rng_key){5}, RNG_TEST, stream);
    points first, second;
    sight a, b;
    change most = {0};
    draw_points(&first, dims, &s);
    look(r, &first, m, &a);
    for (int turn = 0; turn < 3; turn++) {
        reorder(&first, dims, m, &s, &second);
        look(r, &second, m, &b);
        most.density = fmax(most.density, densities_apart(&a, &b, &second));
        most.latents = fmax(most.latents, latents_apart(&a, &b));
    }
    return most;
}

/* Other points after the context: the latents keep every bit. */
static void check_blindness(lab_run *r, uint32_t stream) {
    rng_stream s = rng_stream_make((rng_key){6}, RNG_TEST, stream);
    points p;
    sight a, b;
    draw_points(&p, r->l->m->spec.x_dim, &s);
    look(r, &p, M, &a);
    for (int i = M; i < N; i++) p.y[i] = 3 * rng_normal(&s);
    look(r, &p, M, &b);
    CHECK(latents_apart(&a, &b) == 0);
    CHECK(memcmp(a.logp, b.logp, M * sizeof *a.logp) == 0);
    CHECK(a.logp[N - 1] != b.logp[N - 1]);
}

static change worst[2][2]; /* (fresh, strong) x (ref, cpu) */

/* Digits lost in double, in units of float; a double is never better than 1e-14. */
static double as_float(double off) {
    return 10 * 0x1p29 * fmax(off, 1e-14);
}

/* Fresh models that miss 1e-5 somewhere: the largest change of a point's log-density that was
 * measured in float with gcc 12 and clang 14 and avx512, avx2 or base. Everything else holds 1e-5;
 * so do these in their latents. */
static const struct exception {
    const char *options;
    double measured;
} exceptions[] = {
    {"encoder=deepset pool=sum transition=gauss", 2.7e-5},
    {"encoder=deepset pool=sum transition=rqs", 1.7e-5},
    {"encoder=sab transition=gauss", 1.1e-5},                       /* base               */
    {"encoder=deepset pool=mean transition=rqs", 1.1e-5},           /* avx512 and avx2    */
    {"encoder=sab layer_norm=on n_sab=2 transition=gauss", 1.2e-5}, /* avx512 of clang    */
};

/* How far a fresh model's log-density may move in float: 1e-5, or half as much again as measured
 * in the table (another compiler rounds differently). */
static double fresh_limit(const char *options) {
    for (size_t k = 0; k < sizeof exceptions / sizeof *exceptions; k++)
        if (strstr(options, exceptions[k].options)) return 1.5 * exceptions[k].measured;
    return 1e-5;
}

static void check_change(const change off[2], const char *options, bool strong) {
    CHECK(off[0].density <= (strong ? 1e-9 : 1e-12));
    CHECK(off[0].latents <= (strong ? 1e-11 : 1e-12));
    NEAR(off[1].density, 0, strong ? as_float(off[0].density) : fresh_limit(options), 0);
    NEAR(off[1].latents, 0, strong ? as_float(off[0].latents) : 1e-5, 0);
    for (int device = 0; device < 2; device++) {
        change *w = &worst[strong][device];
        w->density = fmax(w->density, off[device].density);
        w->latents = fmax(w->latents, off[device].latents);
    }
}

static void check_source(lab *l, chain_source from, const char *options, bool strong,
                         uint32_t stream) {
    lab_run r[2];
    plan_opts capacity = {.n = N, .m = N, .samples = S};
    bool ok = lab_start(&r[0], l, "ref", capacity, record, &from);
    ok = lab_start(&r[1], l, "cpu", capacity, record, &from) && ok;
    static const int64_t contexts[] = {M, N, 0};
    for (int k = 0; ok && k < 3; k++) {
        change off[2];
        for (int d = 0; d < 2; d++) off[d] = shuffle(&r[d], contexts[k], stream);
        check_change(off, options, strong);
    }
    for (int d = 0; ok && from == CHAIN_CONTEXT && d < 2; d++) check_blindness(&r[d], stream);
    lab_stop(&r[0]);
    lab_stop(&r[1]);
}

static void check_model(const char *process, const char *options, bool strong, uint32_t stream) {
    lab l;
    CASE(options);
    if (!lab_open(&l, process, options, stream)) return;
    CHECK(l.m->spec.T <= T_MAX && l.m->spec.d_z <= Z_MAX);
    check_source(&l, CHAIN_ALL, options, strong, stream);
    check_source(&l, CHAIN_CONTEXT, options, strong, stream);
    lab_close(&l);
}

static void check_all(bool strong) {
    static const char *const encoders[] = {"sab", "isab n_inducing=5", "deepset pool=mean",
                                           "deepset pool=sum", "sab layer_norm=on n_sab=2"};
    static const char *const transitions[] = {"rqs", "affine", "gauss"};
    for (int k = 0; k < 15; k++) {
        char options[160];
        snprintf(options, sizeof options, "flow_gain=%s encoder=%s transition=%s x_dim=%d T=3",
                 strong ? "1" : "0.1", encoders[k / 3], transitions[k % 3], 1 + k / 3 % 2);
        check_model("mnp", options, strong, (uint32_t)k + 1);
    }
}

static void fresh_models(void) {
    check_all(false);
    check_model("np", "encoder=sab", false, 50);
    check_model("np", "encoder=deepset", false, 51);
}

static void strong_conditioners(void) {
    check_all(true);
}

int main(void) {
    RUN(fresh_models);
    RUN(strong_conditioners);
    for (int strong = 0; strong < 2; strong++)
        printf("%s: log-density changes by %.1e in double, %.1e in float, latents by %.1e, %.1e\n",
               strong ? "strong" : "fresh", worst[strong][0].density, worst[strong][1].density,
               worst[strong][0].latents, worst[strong][1].latents);
    return check_done();
}
