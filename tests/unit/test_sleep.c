/* test_sleep.c: the sleep phase, chain_record_sleep(). What it returns is log q(z | C) - log q(z |
 * nothing) of the latents and the function that the model draws with the counters of RNG_SLEEP,
 * rebuilt here with other recordings; its gradient is that of log q(z | C) with z and y held, by
 * central differences, and nothing of the maps' weights. In double. */
#include "base/rng_normal.h"
#include "lab.h"
#include "model/chain.h"

enum { N = 9, M = 4, S = 2, T_MAX = 3, Z_MAX = 16 };

typedef struct dreams {
    double x[N], base[S * N], y[S * N];
    double eps[T_MAX][S * Z_MAX], z[T_MAX][S * Z_MAX];
} dreams;

static double noise(int64_t sample, uint32_t point, int64_t dim) {
    rng_at at = {
        .purpose = RNG_SLEEP, .sample = (uint32_t)sample, .point = point, .dim = (uint32_t)dim};
    return (double)rng_normal_at((rng_key){1}, at);
}

/* ---- the same function, by the recordings of prediction -------------------------------------- */

static void record_draw(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    val x, y, eps[T_MAX], path[T_MAX + 1];
    process_feed_points(g, s, &x, &y);
    val base = op_feed_scalars(g, "base", EXT_N, true, false);
    for (int64_t t = 0; t < s->T; t++)
        eps[t] = op_feed(g, "eps", EXT_FIXED, 1, (int32_t)s->d_z, true, false);
    chain_walk w;
    chain_walk_opts o = {.source = CHAIN_CONTEXT, .eps = eps};
    chain_record_walk(g, s, x, y, &o, &w);
    chain_record_draw(g, s, x, VAL_NONE, w.z, base, path);
    op_emit(g, path[s->T]);
    for (int64_t t = 0; t < s->T; t++) op_emit(g, w.z[t]);
}

static void draw_dreams(lab *l, dreams *d) {
    const model_spec *spec = &l->m->spec;
    double zero[N] = {0};
    lab_run r;
    for (int i = 0; i < N; i++) d->x[i] = 4.0 * i / (N - 1) - 2;
    for (int s = 0; s < S; s++) {
        for (int i = 0; i < N; i++) d->base[s * N + i] = noise(s, (uint32_t)i, 0);
        for (int64_t t = 0; t < spec->T; t++)
            for (int64_t k = 0; k < spec->d_z; k++)
                d->eps[t][s * spec->d_z + k] = noise(s, (uint32_t)(-(t + 1)), k);
    }
    if (lab_start(&r, l, "ref", (plan_opts){.n = N, .m = M, .samples = S}, record_draw, NULL)) {
        r.io.feed[0] = d->x, r.io.feed[1] = zero, r.io.feed[2] = d->base;
        r.io.emit[0] = d->y;
        for (int64_t t = 0; t < spec->T; t++)
            r.io.feed[3 + t] = d->eps[t], r.io.emit[1 + t] = d->z[t];
        lab_go(&r, N, 0); /* without a context: the process's own draws */
    }
    lab_stop(&r);
}

static void record_q(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    val x = op_feed(g, "x", EXT_N, 0, (int32_t)s->x_dim, false, false);
    val y = op_feed_scalars(g, "y", EXT_N, true, false), z[T_MAX];
    for (int64_t t = 0; t < s->T; t++)
        z[t] = op_feed(g, "z", EXT_FIXED, 1, (int32_t)s->d_z, true, false);
    chain_walk w;
    chain_walk_opts o = {.source = CHAIN_CONTEXT, .z = z};
    chain_record_walk(g, s, x, y, &o, &w);
    for (int64_t t = 0; t < s->T; t++) op_emit(g, w.eps[t]);
    for (int64_t t = 0; t < s->T; t++) op_emit(g, w.raw[t]);
}

/* log q(z | the first m points), each sample's. raw of the top step is not sampled without points.
 */
static void log_q(lab *l, const dreams *d, int64_t m, double out[S]) {
    const model_spec *spec = &l->m->spec;
    double eps[T_MAX][S * Z_MAX] = {{0}}, raw[T_MAX][S * Z_MAX] = {{0}};
    lab_run r;
    if (lab_start(&r, l, "ref", (plan_opts){.n = N, .m = M, .samples = S}, record_q, NULL)) {
        r.io.feed[0] = d->x, r.io.feed[1] = d->y;
        for (int64_t t = 0; t < spec->T; t++) {
            r.io.feed[2 + t] = d->z[t];
            r.io.emit[t] = eps[t], r.io.emit[spec->T + t] = raw[t];
        }
        lab_go(&r, N, m);
    }
    lab_stop(&r);
    for (int s = 0; s < S; s++) {
        out[s] = 0;
        for (int64_t t = 0; t < spec->T; t++)
            for (int64_t k = s * spec->d_z; k < (s + 1) * spec->d_z; k++) {
                double share = 1 / (1 + exp(-raw[t][k])), floor = spec->sigma_z_floor;
                double sigma = floor + (1 - floor) * share;
                out[s] -= 0.5 * eps[t][k] * eps[t][k] + log(sigma) + 0.5 * log(2 * M_PI);
            }
    }
}

/* ---- the sleep phase ------------------------------------------------------------------------- */

static void record_sleep(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    val x = op_feed(g, "x", EXT_N, 0, (int32_t)s->x_dim, false, false);
    val gain = chain_record_sleep(g, s, x);
    op_append_grad(g, op_mean_samples(g, gain));
    op_emit(g, gain);
}

/* The gradient along `way`, where that is wanted. */
static double sleep_at(lab *l, const dreams *d, int64_t m, const double *way, double gain[S]) {
    lab_run r;
    double slope = 0;
    if (lab_start(&r, l, "ref", (plan_opts){.n = N, .m = M, .samples = S}, record_sleep, NULL)) {
        r.io.feed[0] = d->x, r.io.emit[0] = gain;
        lab_go(&r, N, m);
        const double *g = r.b->gradient(r.exec);
        for (int64_t i = 0; way && i < l->m->params.trainable; i++) slope += way[i] * g[i];
    }
    lab_stop(&r);
    return slope;
}

static void move_weights(lab *l, const double *way, double h) {
    for (int64_t i = 0; i < l->m->params.words; i++) l->w[i] += h * way[i];
}

/* A random direction in the weights of the maps, or in those of all else. */
static void choose_way(const lab *l, bool maps, double *way) {
    rng_stream s = rng_stream_make((rng_key){8}, RNG_TEST, 1);
    const params *p = &l->m->params;
    memset(way, 0, (size_t)p->words * sizeof *way);
    for (int32_t k = 0; k < p->count; k++) {
        const param *w = &p->list[k];
        bool of_maps = strncmp(w->name, "flow", 4) == 0;
        for (int64_t i = 0; i < (int64_t)w->rows * w->cols && !w->init.frozen; i++)
            if (of_maps == maps)
                way[w->offset + i / w->cols * w->ld + i % w->cols] = rng_normal(&s);
    }
}

static void check_sleep(const char *process, const char *options) {
    lab l;
    dreams d;
    double gain[S], with[S], without[S], up[S], down[S];
    const double h = 1e-6;
    CASE(options);
    if (!lab_open(&l, process, options, 4)) return;
    lab_randomise(&l, 0.7, 2);
    draw_dreams(&l, &d);
    double *way = calloc((size_t)l.m->params.words, sizeof *way);
    choose_way(&l, false, way);
    double slope = sleep_at(&l, &d, M, way, gain);
    log_q(&l, &d, M, with);
    log_q(&l, &d, 0, without);
    for (int s = 0; s < S; s++) NEAR(gain[s], with[s] - without[s], 1e-9, 1e-9);
    move_weights(&l, way, h);
    log_q(&l, &d, M, up);
    move_weights(&l, way, -2 * h);
    log_q(&l, &d, M, down);
    move_weights(&l, way, h);
    NEAR(slope, (up[0] + up[1] - down[0] - down[1]) / (4 * h), 1e-5, 1e-6);
    CHECK(fabs(slope) > 1e-2 && fabs(gain[0]) > 1e-2);
    choose_way(&l, true, way);
    CHECK(sleep_at(&l, &d, M, way, gain) == 0);
    sleep_at(&l, &d, 0, NULL, gain); /* without points there is nothing to gain */
    CHECK(fabs(gain[0]) < 1e-12 && fabs(gain[1]) < 1e-12);
    free(way);
    lab_close(&l);
}

static void the_chain(void) {
    check_sleep("mnp", "T=3");
    check_sleep("mnp", "T=2 transition=affine encoder=isab");
    check_sleep("np", "encoder=deepset");
}

/* ---- in a training step ---------------------------------------------------------------------- */

/* With sleep the maps get the gradient they get without, and the rest gets another. */
static void gradient_of_step(double sleep, double *out, const param **maps, const param **heads) {
    static const int64_t start[] = {0, N};
    float x[N], y[N];
    lab l;
    lab_run r = {0};
    for (int i = 0; i < N; i++) x[i] = 0.4f * (float)i - 2, y[i] = (float)sin((double)x[i]);
    data_view data = {1, 1, start, x, y, false, 0, 0};
    if (!lab_open(&l, "mnp", "T=2", 4)) return;
    lab_randomise(&l, 0.7, 2);
    process_train_opts o = {.sleep = sleep, .draw = {.train = true, .x_dim = 1, .lo = M, .hi = M}};
    r.l = &l, r.b = backend_find("ref");
    graph_init(&r.graph, &l.env, &l.m->params);
    process_at(l.m->spec.kind)->train_step(&r.graph, &l.m->spec, &o);
    exec_opts eo = {.slots = 1};
    plan_opts po = {.n = N, .m = M, .samples = 1};
    CHECK(plan_make(&r.graph, &po, op_is_step, &r.plan) == MNP_OK);
    CHECK(r.plan && r.b->compile(&l.env, r.plan, &eo, &r.exec) == MNP_OK);
    r.step = (step_block){.seed = 1, .bad_item = -1};
    r.io = (exec_io){.weights = l.w, .step = &r.step, .data = &data, .samples = 1};
    CHECK(r.exec && r.b->run(r.exec, &r.io, 1, 1) == MNP_OK);
    *maps = lab_param(&l, "flow.2.1.w"), *heads = lab_param(&l, "mu.2.1.w");
    out[0] = out[1] = NAN;
    if (r.exec && *maps && *heads) {
        out[0] = lab_gradient(&r, *maps, 0, 0);
        out[1] = lab_gradient(&r, *heads, 0, 0);
    }
    lab_stop(&r);
    lab_close(&l);
}

static void maps_learn_awake(void) {
    double plain[2], slept[2];
    const param *maps, *heads;
    gradient_of_step(0, plain, &maps, &heads);
    gradient_of_step(2, slept, &maps, &heads);
    CHECK(plain[0] != 0 && plain[0] == slept[0]);
    CHECK(isfinite(plain[1]) && isfinite(slept[1]) && fabs(plain[1] - slept[1]) > 1e-6);
}

int main(void) {
    RUN(the_chain);
    RUN(maps_learn_awake);
    return check_done();
}
