/* test_consistency.c: marginals agree, and the special cases are what they should be.
 *
 *   - given the latents, dropping targets leaves the terms of the others as they were: 1e-6
 * relative in float, 1e-12 in double; the same for drawn values, and across blocks of many targets;
 *   - one Gaussian step is a Neural Process: log-likelihood, KL and objective agree with plain
 *     loops over the weights, written down here from the equations;
 *   - the same where the posterior sees a part of the points and the others are scored;
 *   - one affine step is the same with sigma = alpha. */
#include "lab.h"
#include "run/predict.h"

enum { N = 60, S = 3, T_MAX = 3, Z_MAX = 16, X = 2 };

/* ---- dropping targets ------------------------------------------------------------------------ */

static void record_logp(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    val x = op_feed(g, "x", EXT_N, 0, (int32_t)s->x_dim, false, false);
    val y = op_feed_scalars(g, "y", EXT_N, false, false);
    val z[T_MAX];
    for (int64_t t = 0; t < s->T; t++)
        z[t] = op_feed(g, "z", EXT_FIXED, 1, (int32_t)s->d_z, true, false);
    op_emit(g, chain_record_logp(g, s, x, VAL_NONE, y, z));
}

typedef struct targets {
    double x[N * X], y[N], z[T_MAX][S * Z_MAX];
} targets;

static void draw_targets(targets *a, uint32_t stream) {
    rng_stream s = rng_stream_make((rng_key){12}, RNG_TEST, stream);
    for (int i = 0; i < N * X; i++) a->x[i] = (double)(float)(4 * rng_u01(&s) - 2);
    for (int i = 0; i < N; i++) a->y[i] = (double)(float)(2 * rng_normal(&s));
    for (int i = 0; i < T_MAX * S * Z_MAX; i++)
        a->z[i / (S * Z_MAX)][i % (S * Z_MAX)] = (double)(float)rng_normal(&s);
}

static double worst[2];

/* Every `stride`-th target from `first` on, alone. */
static void check_subset(lab_run *r, const targets *all, const double *whole, int first, int stride,
                         double tol) {
    double x[N * X], y[N], logp[S * N];
    int kept = 0;
    for (int i = first; i < N; i += stride, kept++) {
        memcpy(x + kept * X, all->x + i * X, sizeof(double[X]));
        y[kept] = all->y[i];
    }
    r->io.feed[0] = x, r->io.feed[1] = y, r->io.emit[0] = logp;
    if (!lab_go(r, kept, 0)) return;
    for (int s = 0; s < S; s++)
        for (int k = 0; k < kept; k++) {
            double want = whole[s * N + first + k * stride];
            NEAR(logp[s * kept + k], want, 0, tol);
            double *w = &worst[tol > 1e-9];
            *w = fmax(*w, fabs(logp[s * kept + k] - want) / fabs(want));
        }
}

static void check_dropping(const char *options, double gain, uint32_t stream) {
    static const char *const devices[] = {"ref", "cpu"};
    lab l;
    CASE(options);
    if (!lab_open(&l, "mnp", options, stream)) return;
    if (gain > 0) lab_randomise(&l, gain, stream);
    for (int device = 0; device < 2; device++) {
        lab_run r;
        targets all;
        double logp[S * N];
        draw_targets(&all, stream);
        if (lab_start(&r, &l, devices[device], (plan_opts){.n = N, .samples = S}, record_logp,
                      NULL)) {
            r.io.feed[0] = all.x, r.io.feed[1] = all.y, r.io.emit[0] = logp;
            for (int t = 0; t < T_MAX; t++) r.io.feed[2 + t] = all.z[t];
            lab_go(&r, N, 0);
            static const int subsets[][2] = {{0, 2}, {1, 2}, {2, 7}, {N - 1, 1}, {0, N}, {30, 1}};
            for (int k = 0; k < 6; k++)
                check_subset(&r, &all, logp, subsets[k][0], subsets[k][1], device ? 1e-6 : 1e-12);
        }
        lab_stop(&r);
    }
    lab_close(&l);
}

static void dropping_targets_changes_nothing(void) {
    check_dropping("T=3 transition=rqs x_dim=2", 0, 1);
    check_dropping("T=3 transition=rqs x_dim=2 bins=10", 1.0, 2);
    check_dropping("T=2 transition=affine x_dim=2 rff=0", 1.0, 3);
    check_dropping("T=3 transition=affine x_dim=2 flow_layers=1", 0.5, 4);
    check_dropping("T=1 transition=gauss x_dim=2 flow_hidden=7", 1.0, 5);
    check_dropping("T=3 transition=gauss x_dim=2 flow_layers=3", 0.5, 6);
}

/* The same through a predictor, with more targets than fit in a block: drawn values too. */
static void predictions_agree_across_blocks(void) {
    enum { MANY = 1100, FEW = 97 };
    static double x[MANY], y[MANY], whole[3][S * MANY], part[S * FEW];
    lab l;
    predictor *p = NULL;
    if (!lab_open(&l, "mnp", "encoder=isab n_inducing=4 T=2", 9)) return;
    CHECK(predictor_create(&l.env, l.m, NULL, (backend_choice){0}, &p) == MNP_OK);
    rng_stream s = rng_stream_make((rng_key){13}, RNG_TEST, 1);
    for (int i = 0; i < MANY; i++) x[i] = 4 * rng_u01(&s) - 2, y[i] = rng_normal(&s);
    CHECK(predictor_condition(p, x, y, 20) == MNP_OK);
    CHECK(predictor_draw_latents(p, 4, S) == MNP_OK);
    CHECK(predictor_logp(p, x, y, MANY, whole[0]) == MNP_OK);
    CHECK(predictor_predict(p, x, MANY, PREDICT_ZERO, whole[1]) == MNP_OK);
    CHECK(predictor_predict(p, x, MANY, PREDICT_NORMAL, whole[2]) == MNP_OK);
    for (int kind = 0; kind < 3; kind++) {
        int from = kind == 2 ? 0 : 500; /* noise belongs to the row, so those rows must be first */
        if (kind == 0) CHECK(predictor_logp(p, x + from, y + from, FEW, part) == MNP_OK);
        if (kind == 1) CHECK(predictor_predict(p, x + from, FEW, PREDICT_ZERO, part) == MNP_OK);
        if (kind == 2) CHECK(predictor_predict(p, x + from, FEW, PREDICT_NORMAL, part) == MNP_OK);
        for (int k = 0; k < S * FEW; k++)
            NEAR(part[k], whole[kind][k / FEW * MANY + from + k % FEW], 1e-6, 1e-6);
    }
    CHECK(whole[2][0] != whole[2][1] && whole[1][0] != whole[2][0]);
    predictor_destroy(p);
    lab_close(&l);
}

/* ---- one step: a Neural Process by plain loops ----------------------------------------------- */

enum { NP_N = 9, NP_K = 6, NP_M = 4, F = 3, W = 6, R = 4, Z = 3, H = 5 };
enum { NP_LOSS, NP_KL, NP_LOGP, NP_Z };

/* *arg: does the posterior see all points, or the first NP_K and the others are scored? */
static void record_np(graph *g, const model_spec *s, void *arg) {
    bool all = *(const bool *)arg;
    val x = op_feed(g, "x", EXT_N, 0, X, false, false);
    val y = op_feed_scalars(g, "y", EXT_N, false, false);
    val eps = op_feed(g, "eps", EXT_FIXED, 1, Z, true, false);
    chain_walk w;
    chain_walk_opts o = {
        .source = all ? CHAIN_ALL : CHAIN_SEEN, .with_prior = true, .to_base = true, .eps = &eps};
    chain_record_walk(g, s, x, y, &o, &w);
    op_emit(g, chain_record_loss(g, s, &w, all ? spec_scored(s) : ROWS_UNSEEN));
    op_emit(g, w.kl_sum);
    op_emit(g, w.logp);
    op_emit(g, w.z[0]);
}

/* out += in W for the weight of this name. */
static void add_product(const lab *l, const char *name, const double *in, double *out) {
    const param *w = lab_param(l, name);
    CHECK(w != NULL);
    for (int32_t r = 0; w && r < w->rows; r++)
        for (int32_t c = 0; c < w->cols; c++)
            out[c] += in[r] * l->w[w->offset + (int64_t)r * w->ld + c];
}

static void layer(const lab *l, const char *name, const double *in, int width, bool relu,
                  double *out) {
    char weight[40], bias[40];
    const double one = 1;
    snprintf(weight, sizeof weight, "%s.w", name);
    snprintf(bias, sizeof bias, "%s.b", name);
    for (int c = 0; c < width; c++) out[c] = 0;
    add_product(l, weight, in, out);
    add_product(l, bias, &one, out);
    for (int c = 0; relu && c < width; c++) out[c] = fmax(out[c], 0);
}

static void features(const lab *l, const double *x, double *phi) {
    const param *freq = lab_param(l, "features.freq");
    for (int f = 0; f < F; f++) {
        double angle = 0;
        for (int c = 0; c < X; c++) angle += l->w[freq->offset + (int64_t)f * freq->ld + c] * x[c];
        phi[f] = cos(2 * M_PI * angle);
        phi[F + f] = sin(2 * M_PI * angle);
    }
}

/* Deep Sets: the mean over the first n points of a network on (phi(x), y), and a layer on it. */
static void summary(const lab *l, const double *x, const double *y, int n, double *r) {
    double mean[W] = {0}, phi[2 * F], one = 1;
    for (int i = 0; i < n; i++) {
        double a[W] = {0}, b[W], c[W];
        features(l, x + i * X, phi);
        add_product(l, "enc.0.wphi", phi, a);
        add_product(l, "enc.0.wy", y + i, a);
        add_product(l, "enc.0.b", &one, a);
        for (int k = 0; k < W; k++) a[k] = fmax(a[k], 0);
        layer(l, "enc.1", a, W, true, b);
        layer(l, "enc.2", b, W, false, c);
        for (int k = 0; k < W; k++) mean[k] += c[k] / n;
    }
    layer(l, "enc.r", mean, R, true, r);
}

/* mu and sigma of z from a summary. */
static void latent(const lab *l, const double *r, double *mu, double *sigma) {
    const char *first[] = {"mu.1.0.wr", "sigma.1.0.wr"}, *bias[] = {"mu.1.0.b", "sigma.1.0.b"};
    const char *last[] = {"mu.1.1", "sigma.1.1"};
    double one = 1;
    for (int k = 0; k < 2; k++) {
        double h[H] = {0};
        add_product(l, first[k], r, h);
        add_product(l, bias[k], &one, h);
        for (int c = 0; c < H; c++) h[c] = fmax(h[c], 0);
        layer(l, last[k], h, Z, false, k ? sigma : mu);
    }
    for (int c = 0; c < Z; c++) sigma[c] = 0.05 + 0.95 / (1 + exp(-sigma[c]));
}

typedef double (*scale_fn)(double raw);
static double softplus_scale(double raw) {
    return 0.02 + 0.98 * log1p(exp(raw));
}
static double tanh_scale(double raw) {
    return exp(1.5 * tanh(raw / 1.5));
}

/* log N(y; mu, sigma) of the decoder's output at x. */
static double point_logp(const lab *l, const double *x, double y, const double *z, scale_fn scale) {
    double phi[2 * F], a[H] = {0}, b[H], out[2], one = 1;
    features(l, x, phi);
    add_product(l, "flow.1.0.wx", phi, a);
    add_product(l, "flow.1.0.wz", z, a);
    add_product(l, "flow.1.0.b", &one, a);
    for (int c = 0; c < H; c++) a[c] = fmax(a[c], 0);
    layer(l, "flow.1.1", a, H, true, b);
    layer(l, "flow.1.2", b, 2, false, out);
    double sigma = scale(out[1]), e = (y - out[0]) / sigma;
    return -0.5 * e * e - log(sigma) - 0.5 * log(2 * M_PI);
}

static double kl_of(const double *mq, const double *sq, const double *mp, const double *sp) {
    double kl = 0;
    for (int c = 0; c < Z; c++) {
        double d = mq[c] - mp[c];
        kl += log(sp[c] / sq[c]) + (sq[c] * sq[c] + d * d) / (2 * sp[c] * sp[c]) - 0.5;
    }
    return kl;
}

static void check_np(const char *process, const char *options, scale_fn scale, bool all,
                     uint32_t stream) {
    static const char *const devices[] = {"ref", "cpu"};
    lab l;
    double x[NP_N * X], y[NP_N], eps[Z], z[Z], rq[R], rp[R], mq[Z], sq[Z], mp[Z], sp[Z];
    if (!lab_open(&l, process, options, stream)) return;
    lab_randomise(&l, 0.8, stream);
    rng_stream s = rng_stream_make((rng_key){14}, RNG_TEST, stream);
    for (int i = 0; i < NP_N * X; i++) x[i] = (double)(float)rng_normal(&s);
    for (int i = 0; i < NP_N; i++) y[i] = (double)(float)rng_normal(&s);
    for (int i = 0; i < Z; i++) eps[i] = (double)(float)rng_normal(&s);
    summary(&l, x, y, all ? NP_N : NP_K, rq);
    summary(&l, x, y, NP_M, rp);
    latent(&l, rq, mq, sq);
    latent(&l, rp, mp, sp);
    for (int c = 0; c < Z; c++) z[c] = mq[c] + sq[c] * eps[c];
    const int64_t seen = NP_K;
    double kl = kl_of(mq, sq, mp, sp), sum = 0;
    for (int device = 0; device < 2; device++) {
        lab_run r;
        double loss = 0, got_kl = 0, logp[NP_N], got_z[Z], tol = device ? 1e-5 : 1e-12;
        if (lab_start(&r, &l, devices[device], (plan_opts){.n = NP_N, .m = NP_N, .samples = 1},
                      record_np, &all)) {
            r.io.k = all ? NULL : &seen;
            r.io.feed[0] = x, r.io.feed[1] = y, r.io.feed[2] = eps;
            r.io.emit[NP_LOSS] = &loss, r.io.emit[NP_KL] = &got_kl;
            r.io.emit[NP_LOGP] = logp, r.io.emit[NP_Z] = got_z;
            lab_go(&r, NP_N, NP_M);
            for (int c = 0; c < Z; c++) NEAR(got_z[c], z[c], tol, tol);
            sum = 0;
            for (int i = 0; i < NP_N; i++) {
                double want = point_logp(&l, x + i * X, y[i], z, scale);
                NEAR(logp[i], want, tol, tol);
                if (all || i >= NP_K) sum += want;
            }
            NEAR(got_kl, kl, tol, tol);
            NEAR(loss, -(sum - kl) / (all ? NP_N : NP_N - NP_K), tol, tol); /* train_score=all */
        }
        lab_stop(&r);
    }
    lab_close(&l);
}

#define NP_DIMS                                                                                    \
    "x_dim=2 encoder=deepset pool=mean rff=3 d_z=3 d_r=4 enc_width=6 ds_layers=2 head_hidden=5 "   \
    "head_layers=1 flow_hidden=5 flow_layers=2 "

static void one_gaussian_step_is_a_neural_process(void) {
    check_np("np", NP_DIMS "sigma_floor=0.02", softplus_scale, true, 21);
    check_np("mnp", NP_DIMS "T=1 transition=gauss sigma_floor=0.02", softplus_scale, true, 22);
}

static void unseen_points_are_scored(void) {
    check_np("np", NP_DIMS "sigma_floor=0.02", softplus_scale, false, 24);
}

static void one_affine_step_is_gaussian(void) {
    check_np("mnp", NP_DIMS "T=1 transition=affine kappa=1.5", tanh_scale, true, 23);
}

int main(void) {
    RUN(dropping_targets_changes_nothing);
    RUN(predictions_agree_across_blocks);
    RUN(one_gaussian_step_is_a_neural_process);
    RUN(unseen_points_are_scored);
    RUN(one_affine_step_is_gaussian);
    printf("dropping targets: largest relative change %.1e in double, %.1e in float\n", worst[0],
           worst[1]);
    return check_done();
}
