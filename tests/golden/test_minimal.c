/* test_minimal.c: examples/minimal.c, which uses none of the library, against the library: the same
 * weights, points and noise give the same loss, ELBO terms and gradient of every weight, in double
 * to 1e-7 and, on the CPU backend, to 1e-4; Adam makes the same step; a file it writes is a model
 * with the same weights. And a short training improves the ELBO. */
#define MINIMAL_NO_MAIN
#include "../../examples/minimal.c"

#include "lab.h"
#include "op/update.h"

static const char *const devices[] = {"ref", "cpu"};
static const double tolerance[] = {1e-7, 1e-4};
static const char options[] =
    "T=3 transition=rqs encoder=deepset rff=8 d_z=8 d_r=16 enc_width=24 ds_layers=2 head_hidden=16 "
    "head_layers=1 flow_hidden=24 flow_layers=2 bins=6";

/* ---- the same weights ------------------------------------------------------------------------ */

static const tensor *tensor_of(const net *p, const char *name) {
    for (int k = 0; k < p->tensors; k++)
        if (strcmp(p->list[k].name, name) == 0) return &p->list[k];
    return NULL;
}

/* Where element `i` of a weight of the library lies in its block. */
static int64_t at_of(const param *w, int64_t i) {
    return w->offset + i / w->cols * w->ld + i % w->cols;
}

/* Every weight of the library's model has the name and shape of one here, and there are no more. */
static bool take_weights(net *p, const lab *l) {
    const params *list = &l->m->params;
    int same = 0;
    for (int32_t k = 0; k < list->count; k++) {
        const param *w = &list->list[k];
        const tensor *t = tensor_of(p, w->name);
        CASE(w->name);
        CHECK(t && t->rows == w->rows && t->cols == w->cols);
        if (!t || t->rows != w->rows || t->cols != w->cols) continue;
        same++;
        for (int i = 0; i < t->rows * t->cols; i++) p->w[t->at + i] = l->w[at_of(w, i)];
    }
    CASE(NULL);
    CHECK(same == p->tensors && same == list->count);
    return same == p->tensors;
}

typedef struct both {
    lab l;
    net p;
    walk *a;
} both;

static bool both_open(both *b, double gain) {
    dice d = 2;
    b->a = calloc(1, sizeof *b->a);
    net_make(&b->p, &d);
    CHECK(b->p.words == WEIGHTS && b->p.tensors <= TENSORS);
    if (!b->a || !lab_open(&b->l, "mnp", options, 3)) exit(1);
    lab_randomise(&b->l, gain, 5);
    return take_weights(&b->p, &b->l);
}

static void both_close(both *b) {
    lab_close(&b->l);
    free(b->a);
}

/* ---- the same loss and gradient -------------------------------------------------------------- */

static void record(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    val x = op_feed(g, "x", EXT_N, 0, 1, false, false);
    val y = op_feed_scalars(g, "y", EXT_N, false, false);
    val eps[T];
    for (int t = 0; t < T; t++) eps[t] = op_feed(g, "eps", EXT_FIXED, 1, DZ, true, false);
    chain_walk w;
    chain_walk_opts o = {.source = CHAIN_ALL, .with_prior = true, .to_base = true, .eps = eps};
    chain_record_walk(g, s, x, y, &o, &w);
    val loss = chain_record_loss(g, s, &w, spec_scored(s));
    op_emit(g, loss);
    op_emit(g, op_sum_rows(g, w.logp, ROWS_ALL));
    op_emit(g, w.kl_sum);
    op_append_grad(g, loss);
}

/* Of each tensor: the largest error as a part of its largest element. */
static void compare_gradients(const lab_run *r, const net *p, double tol) {
    const params *list = &r->l->m->params;
    int moving = 0;
    for (int32_t k = 0; k < list->count; k++) {
        const param *w = &list->list[k];
        const tensor *t = tensor_of(p, w->name);
        double largest = 0, off = 0;
        if (!t || w->init.frozen) continue;
        for (int i = 0; i < t->rows * t->cols; i++) {
            double want = lab_gradient(r, w, i / w->cols, i % w->cols), got = p->grad[t->at + i];
            largest = fmax(largest, fabs(want));
            off = fmax(off, fabs(got - want));
        }
        CASE(w->name);
        CHECK(off <= tol * largest);
        moving += largest > 0;
    }
    CASE(NULL);
    CHECK(moving >= list->count - 2); /* all but the frequencies and, with a context, enc.empty */
}

static void compare_with(const both *b, const function *f, const double eps[T + 1][DZ],
                         int device) {
    lab_run r;
    plan_opts capacity = {.n = f->n, .m = f->n, .samples = 1};
    double x[N], y[N], noise[T][DZ], loss = NAN, loglik = NAN, kl = NAN, tol = tolerance[device];
    memcpy(x, f->x, sizeof x);
    memcpy(y, f->y, sizeof y);
    lab *l = (lab *)&b->l;
    if (lab_start(&r, l, devices[device], capacity, record, NULL)) {
        r.io.feed[0] = x, r.io.feed[1] = y;
        for (int t = 0; t < T; t++) {
            memcpy(noise[t], eps[t + 1], sizeof noise[t]);
            r.io.feed[2 + t] = noise[t];
        }
        r.io.emit[0] = &loss, r.io.emit[1] = &loglik, r.io.emit[2] = &kl;
        if (lab_go(&r, f->n, f->m)) {
            NEAR(-(b->a->loglik - b->a->kl) / f->n, loss, tol, tol);
            NEAR(b->a->loglik, loglik, tol * f->n, tol);
            NEAR(b->a->kl, kl, tol, tol);
            compare_gradients(&r, &b->p, tol);
        }
    }
    lab_stop(&r);
}

/* Large weights bend the splines; then single precision has few digits left, and only the double
 * reference is compared. Two points lie outside [-BOUND, BOUND]. */
static void loss_and_gradients_are_the_library_s(void) {
    static const double gains[] = {0.5, 1.5};
    static const int contexts[] = {7, 0, N};
    for (int k = 0; k < 2; k++) {
        both b;
        dice d = (uint64_t)k + 1;
        if (both_open(&b, gains[k]))
            for (int c = 0; c < 3; c++) {
                function f;
                double eps[T + 1][DZ];
                function_draw(&d, &f);
                noise_draw(&d, eps);
                f.m = contexts[c];
                if (c == 0) f.n = 23, f.y[2] = 6.5, f.y[20] = -5.25;
                for (int i = 0; i < N; i++) f.x[i] = (float)f.x[i], f.y[i] = (float)f.y[i];
                memset(b.p.grad, 0, (size_t)b.p.words * sizeof *b.p.grad);
                CHECK(isfinite(walk_down(&b.p, &f, ALL, eps, b.a)));
                walk_reverse(&b.p, &f, eps, b.a);
                compare_with(&b, &f, eps, 0);
                if (k == 0) compare_with(&b, &f, eps, 1);
            }
        both_close(&b);
    }
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* Maps are inverse to each other, and the log-slope is a slope. */
static void maps_are_inverse(void) {
    dice d = 4;
    for (int k = 0; k < 200; k++) {
        double raw[RAW], slope, other, y = 6 * (2 * uniform(&d) - 1), h = 1e-6;
        spline g;
        for (int j = 0; j < RAW; j++) raw[j] = 2 * normal(&d);
        spline_make(raw, &g);
        double v = to_noise(&g, y, &slope);
        NEAR(to_data(&g, v), y, 1e-9, 1e-9);
        double up = to_noise(&g, y + h, &other), down = to_noise(&g, y - h, &other);
        NEAR((up - down) / (2 * h), exp(slope), 1e-3, 1e-3);
    }
}

static void adam_is_the_library_s(void) {
    net p;
    dice d = 8;
    net_make(&p, &d);
    double m1[3] = {0}, m2[3] = {0}, w[3], rate = 2e-3, freq = p.w[p.freq];
    int at = p.empty;
    for (int i = 0; i < 3; i++) w[i] = p.w[at + i] = normal(&d);
    for (int k = 0; k < 5; k++) {
        step_block s = {.step = k, .rate_max = rate, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
        update_adam u = update_adam_of(&s);
        for (int i = 0; i < 3; i++) {
            double g = p.grad[at + i] = normal(&d);
            m1[i] = u.beta1 * m1[i] + u.mix1 * g;
            m2[i] = u.beta2 * m2[i] + u.mix2 * g * g;
            w[i] -= u.rate * m1[i] / (sqrt(m2[i] * u.inv_c2) + u.eps);
        }
        p.grad[p.freq] = 1;
        adam(&p, k, rate);
        for (int i = 0; i < 3; i++) NEAR(p.w[at + i], w[i], 1e-14, 1e-12);
        CHECK(p.w[p.freq] == freq);
    }
}

static void the_library_reads_its_file(void) {
    both b;
    char path[300];
    model *m = NULL;
    const char *folder = getenv("TEST_TMP");
    snprintf(path, sizeof path, "%s/minimal.safetensors", folder ? folder : "/tmp");
    if (both_open(&b, 1)) {
        CHECK(save(&b.p, path));
        CHECK(model_load(&b.l.env, path, &m) == MNP_OK);
        if (!m) fprintf(stderr, "%s\n", b.l.env.error);
        for (int64_t i = 0; m && i < m->params.words; i++)
            CHECK(m->weights[i] == b.l.m->weights[i]);
        CHECK(!save(&b.p, "/nowhere/minimal.safetensors"));
    }
    model_destroy(m);
    both_close(&b);
}

static void training_improves(void) {
    net p;
    dice d = 1;
    walk *a = calloc(1, sizeof *a);
    if (!a) exit(1);
    net_make(&p, &d);
    double before = test_elbo(&p, 50, a);
    for (int k = 0; k < 60; k++) train_step(&p, k, 60, &d, a);
    double after = test_elbo(&p, 50, a);
    CHECK(after > before + 0.5);
    double covered = coverage(&p, 10, a);
    CHECK(covered > 0.6 && covered < 0.97);
    picture(&p, a);
    free(a);
}

int main(void) {
    RUN(loss_and_gradients_are_the_library_s);
    RUN(maps_are_inverse);
    RUN(adam_is_the_library_s);
    RUN(the_library_reads_its_file);
    RUN(training_improves);
    return check_done();
}
