/* test_mnp_tiny.c: a complete two-step model against an independent implementation (mnp_tiny.json:
 * own numpy and torch code in float64 with automatic differentiation, checked by finite
 * differences). All noise is given, so every number must come out: latents, distributions, the
 * path of the points, KL of each step, log-likelihood, the three objectives and the gradient of
 * every weight. The double reference must agree to 1e-9, the CPU backend to 1e-4.
 *
 * The file keeps weights as out x in, one per layer. Here they are in x out, a layer on a
 * concatenation is split in two, and q, k, v of a set lie side by side. */
#include "lab.h"
#include "util/json.h"

enum { T = 2, Z = 2, R = 3, D = 4, FEATURES = 6, N = 7, M = 3, L = 3 };

static const json_value *root;
static lab tiny;
static const char *const devices[] = {"ref", "cpu"};
static const double tolerance[] = {1e-9, 1e-4};

/* ---- reading --------------------------------------------------------------------------------- */

static const json_value *at(const json_value *v, const char *key) {
    const json_value *found = json_get(v, key);
    CASE(key);
    CHECK(found != NULL);
    CASE(NULL);
    return found;
}

static int64_t flatten(const json_value *v, double *out) {
    if (!v) return 0;
    if (v->kind == JSON_NUMBER) {
        *out = v->number;
        return 1;
    }
    int64_t count = 0;
    for (size_t i = 0; i < v->count; i++) count += flatten(json_at(v, i), out + count);
    return count;
}

/* ---- names: where element (row, col) of one of our weights is in the file -------------------- */

typedef struct place {
    char key[32];
    int32_t row, col;
} place;

/* A block of the encoder: our name, the layers side by side in it, and the first input column. */
typedef struct encoder_row {
    const char *ours, *theirs[3];
    int32_t first_input;
} encoder_row;

static const encoder_row encoder_rows[] = {
    {"enc.0.qkv.wphi", {"sab1.q.W", "sab1.k.W", "sab1.v.W"}, 0},
    {"enc.0.qkv.wy", {"sab1.q.W", "sab1.k.W", "sab1.v.W"}, FEATURES},
    {"enc.0.qkv.b", {"sab1.q.b", "sab1.k.b", "sab1.v.b"}, 0},
    {"enc.0.out.w", {"sab1.o.W"}, 0},
    {"enc.0.out.b", {"sab1.o.b"}, 0},
    {"enc.1.qkv.w", {"sab2.q.W", "sab2.k.W", "sab2.v.W"}, 0},
    {"enc.1.qkv.b", {"sab2.q.b", "sab2.k.b", "sab2.v.b"}, 0},
    {"enc.1.out.w", {"sab2.o.W"}, 0},
    {"enc.1.out.b", {"sab2.o.b"}, 0},
    {"enc.pool.q.w", {"pma.q.W"}, 0},
    {"enc.pool.q.b", {"pma.q.b"}, 0},
    {"enc.pool.kv.w", {"pma.k.W", "pma.v.W"}, 0},
    {"enc.pool.kv.b", {"pma.k.b", "pma.v.b"}, 0},
    {"enc.pool.out.w", {"pma.o.W"}, 0},
    {"enc.pool.out.b", {"pma.o.b"}, 0},
    {"enc.r.w", {"enc_out.W"}, 0},
    {"enc.r.b", {"enc_out.b"}, 0},
};

/* mu.2.0.wr and its like: [z, r] for the heads, [phi, z] for the conditioners. */
static bool find_step(const char *name, int32_t row, int32_t col, place *out) {
    char what[8], kind[4];
    int t = 0, layer = 0;
    if (sscanf(name, "%7[a-z].%d.%d.%3s", what, &t, &layer, kind) != 4) return false;
    bool flow = strcmp(what, "flow") == 0, bias = kind[0] == 'b';
    int32_t first = strcmp(kind, "wr") == 0 ? Z : strcmp(kind, "wz") == 0 && flow ? FEATURES : 0;
    snprintf(out->key, sizeof out->key, "%s.%d.%d.%c", what, t - 1, layer, bias ? 'b' : 'W');
    out->row = bias ? 0 : col;
    out->col = bias ? col : first + row;
    return true;
}

static bool find(const char *name, int32_t row, int32_t col, place *out) {
    *out = (place){.row = row, .col = col};
    if (strcmp(name, "enc.pool.seed") == 0) {
        snprintf(out->key, sizeof out->key, "S");
        return true;
    }
    for (size_t i = 0; i < sizeof encoder_rows / sizeof *encoder_rows; i++) {
        const encoder_row *e = &encoder_rows[i];
        if (strcmp(name, e->ours) != 0) continue;
        bool single = !e->theirs[1], bias = name[strlen(name) - 1] == 'b';
        int32_t part = single ? 0 : col / D, within = single ? col : col % D;
        snprintf(out->key, sizeof out->key, "%s", e->theirs[part]);
        out->row = bias ? 0 : within;
        out->col = bias ? within : e->first_input + row;
        return true;
    }
    return find_step(name, row, col, out);
}

/* A vector of the file counts as one row. */
static double number(const json_value *table, const place *p) {
    const json_value *v = json_get(table, p->key);
    const json_value *first = json_at(v, 0);
    if (first && first->kind == JSON_ARRAY) v = json_at(v, (size_t)p->row);
    v = json_at(v, (size_t)p->col);
    CHECK(v != NULL);
    return v ? v->number : NAN;
}

/* Weights of ours that the file does not know: the frequencies stand elsewhere in it, and the
 * stand-in for an empty context is not used. */
static bool apart(const char *name) {
    return strcmp(name, "features.freq") == 0 || strcmp(name, "enc.empty") == 0;
}

static void every_weight_has_its_place(void) {
    const params *p = &tiny.m->params;
    const json_value *stored = at(root, "params");
    int64_t ours = 0, theirs = 0;
    double numbers[256];
    for (int32_t k = 0; k < p->count; k++) {
        const param *w = &p->list[k];
        for (int32_t i = 0; i < w->rows * w->cols; i++) {
            place where;
            double *to = &tiny.w[w->offset + (int64_t)(i / w->cols) * w->ld + i % w->cols];
            if (apart(w->name)) continue;
            CASE(w->name);
            CHECK(find(w->name, i / w->cols, i % w->cols, &where));
            *to = number(stored, &where);
            ours++;
        }
    }
    CASE(NULL);
    for (size_t i = 0; i < stored->count; i++) theirs += flatten(json_value_at(stored, i), numbers);
    /* z_{T+1} = 0 has no weights here: Z columns of one mu and one sigma layer, D rows each. */
    CHECK(ours + 2 * Z * D == theirs);
    double freq[FEATURES / 2];
    CHECK(flatten(at(root, "freq"), freq) == FEATURES / 2);
    const param *f = lab_param(&tiny, "features.freq");
    CHECK(f && f->rows == FEATURES / 2 && f->cols == 1);
    for (int32_t i = 0; i < FEATURES / 2; i++) tiny.w[f->offset + (int64_t)i * f->ld] = freq[i];
}

/* ---- recording ------------------------------------------------------------------------------- */

/* What is emitted, in this order; per step where an index t is added. */
enum { LOSS, LOGLIK, KL_SUM, RATIO, LOGP, Y0, PER_STEP };
enum { STEP_Z, STEP_MU, STEP_RAW, STEP_Y, STEP_KL, STEP_EMITS };

static int emit_of(int what, int t) {
    return PER_STEP + (t - 1) * STEP_EMITS + what;
}

static void record(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    val x = op_feed(g, "x", EXT_N, 0, 1, false, false);
    val y = op_feed_scalars(g, "y", EXT_N, false, false);
    val eps[T];
    for (int t = 0; t < T; t++) eps[t] = op_feed(g, "eps", EXT_FIXED, 1, Z, true, false);
    chain_walk w;
    chain_walk_opts o = {.source = CHAIN_ALL, .with_prior = true, .to_base = true, .eps = eps};
    chain_record_walk(g, s, x, y, &o, &w);
    val loss = chain_record_loss(g, s, &w, spec_scored(s));
    op_emit(g, loss);
    op_emit(g, op_sum_rows(g, w.logp, ROWS_REST));
    op_emit(g, w.kl_sum);
    op_emit(g, w.ratio_sum);
    op_emit(g, w.logp);
    op_emit(g, w.y[0]);
    for (int t = 1; t <= T; t++) {
        op_emit(g, w.z[t - 1]);
        op_emit(g, w.mu[t - 1]);
        op_emit(g, w.raw[t - 1]);
        op_emit(g, w.y[t]);
        op_emit(g, w.kl[t - 1]);
    }
    op_append_grad(g, loss);
}

typedef struct outcome {
    double loss, loglik[L], kl_sum[L], ratio[L], logp[L * N], y0[L * N];
    struct {
        double z[L * Z], mu[L * 2 * Z], raw[L * 2 * Z], y[L * N], kl[L];
    } step[T];
} outcome;

static void bind(lab_run *r, outcome *o) {
    double *plain[] = {&o->loss, o->loglik, o->kl_sum, o->ratio, o->logp, o->y0};
    for (int k = 0; k < PER_STEP; k++) r->io.emit[k] = plain[k];
    for (int t = 1; t <= T; t++) {
        double *of_step[] = {o->step[t - 1].z, o->step[t - 1].mu, o->step[t - 1].raw,
                             o->step[t - 1].y, o->step[t - 1].kl};
        for (int k = 0; k < STEP_EMITS; k++) r->io.emit[emit_of(k, t)] = of_step[k];
    }
}

/* Runs the objective with S samples of the file's noise; the caller calls lab_stop(). */
static bool run(lab_run *r, int device, const char *options, int64_t samples, outcome *o) {
    double x[N], y[N], noise[L * T * Z], eps[T][L * Z];
    *o = (outcome){0};
    option_view view = spec_view(&tiny.m->spec);
    CHECK(options_parse(&tiny.env, &view, 1, options) == MNP_OK);
    CHECK(flatten(at(root, "x"), x) == N && flatten(at(root, "y"), y) == N);
    CHECK(flatten(at(root, "eps"), noise) == L * T * Z);
    for (int i = 0; i < L * T * Z; i++) eps[i / Z % T][i / (T * Z) * Z + i % Z] = noise[i];
    plan_opts capacity = {.n = N, .m = M, .samples = samples};
    if (!lab_start(r, &tiny, devices[device], capacity, record, NULL)) return false;
    r->io.feed[0] = x, r->io.feed[1] = y;
    for (int t = 0; t < T; t++) r->io.feed[2 + t] = eps[t];
    bind(r, o);
    return lab_go(r, N, M);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static double worst[2]; /* largest error of a gradient, relative to its weight's largest entry */

static void compare(const double *got, const json_value *want, int64_t count, double tol) {
    double expected[64];
    CHECK(flatten(want, expected) == count);
    for (int64_t i = 0; i < count; i++) NEAR(got[i], expected[i], tol, tol);
}

/* The objective of the file is maximised, ours minimised: the signs differ. */
static void compare_gradients(const lab_run *r, const json_value *grad, int device) {
    const params *p = &tiny.m->params;
    for (int32_t k = 0; k < p->count; k++) {
        const param *w = &p->list[k];
        if (w->init.frozen) continue;
        double largest = 0, off = 0;
        CASE(w->name);
        for (int32_t i = 0; i < w->rows * w->cols; i++) {
            place where;
            double got = lab_gradient(r, w, i / w->cols, i % w->cols), want = 0;
            if (!apart(w->name) && find(w->name, i / w->cols, i % w->cols, &where))
                want = -number(grad, &where);
            largest = fmax(largest, fabs(want));
            off = fmax(off, fabs(got - want));
        }
        CHECK(off <= tolerance[device] * fmax(largest, apart(w->name) ? 0 : 1e-3));
        if (largest > 0) worst[device] = fmax(worst[device], off / largest);
    }
    CASE(NULL);
}

/* The weights that we leave out have no gradient: their input is zero. */
static void check_absent(const json_value *grad) {
    const char *keys[] = {"mu.1.0.W", "sigma.1.0.W"};
    for (int k = 0; k < 2; k++)
        for (int32_t i = 0; i < D * Z; i++) {
            place where = {.row = i / Z, .col = i % Z};
            snprintf(where.key, sizeof where.key, "%s", keys[k]);
            CHECK(number(grad, &where) == 0.0);
        }
}

static void check_objective(const char *key, const char *options, int64_t samples) {
    const json_value *want = at(root, key);
    check_absent(at(want, "grad"));
    for (int device = 0; device < 2; device++) {
        outcome o;
        lab_run r;
        if (run(&r, device, options, samples, &o)) {
            NEAR(-o.loss, at(want, "value")->number, tolerance[device], tolerance[device]);
            compare_gradients(&r, at(want, "grad"), device);
        }
        lab_stop(&r);
    }
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void latents_and_paths(void) {
    const json_value *want = at(root, "sample0"), *path = at(want, "y_path_posterior_from_T");
    for (int device = 0; device < 2; device++) {
        outcome o;
        lab_run r;
        double tol = tolerance[device];
        if (!run(&r, device, "objective=elbo kl=analytic", 1, &o)) continue;
        for (int t = 1; t <= T; t++) {
            double sigma[2 * Z];
            for (int i = 0; i < 2 * Z; i++)
                sigma[i] = 0.05 + 0.95 / (1.0 + exp(-o.step[t - 1].raw[i]));
            size_t k = (size_t)t - 1;
            compare(o.step[k].z, json_at(at(want, "z"), k), Z, tol);
            compare(o.step[k].mu, json_at(at(want, "post_mu"), k), Z, tol);
            compare(o.step[k].mu + Z, json_at(at(want, "prior_mu"), k), Z, tol);
            compare(sigma, json_at(at(want, "post_sigma"), k), Z, tol);
            compare(sigma + Z, json_at(at(want, "prior_sigma"), k), Z, tol);
            compare(o.step[k].y, json_at(path, (size_t)(T - t)), N, tol);
            compare(o.step[k].kl, json_at(at(want, "kl"), k), 1, tol);
        }
        compare(o.y0 + M, at(want, "target_y0"), N - M, tol);
        double sum = 0;
        for (int i = M; i < N; i++) sum += o.logp[i];
        NEAR(sum, at(want, "log_lik")->number, tol, tol);
        NEAR(o.loglik[0], at(want, "log_lik")->number, tol, tol);
        NEAR(o.kl_sum[0], o.step[0].kl[0] + o.step[1].kl[0], 1e-12, 1e-12);
        NEAR(o.loglik[0] + o.ratio[0], at(want, "logw")->number, tol, tol);
        lab_stop(&r);
    }
}

static void importance_weights(void) {
    for (int device = 0; device < 2; device++) {
        outcome o;
        lab_run r;
        double logw[L];
        if (run(&r, device, "objective=iwae", L, &o)) {
            for (int s = 0; s < L; s++) logw[s] = o.loglik[s] + o.ratio[s];
            compare(logw, at(root, "logw"), L, tolerance[device]);
        }
        lab_stop(&r);
    }
}

static void elbo_with_analytic_kl(void) {
    check_objective("elbo_analytic_kl", "objective=elbo kl=analytic", 1);
}

static void elbo_with_sampled_ratio(void) {
    check_objective("elbo_sampled", "objective=elbo kl=sampled", 1);
}

static void importance_weighted_objective(void) {
    check_objective("iwae", "objective=iwae", L);
    printf("gradients, largest error: %.1e in double, %.1e in float\n", worst[0], worst[1]);
}

int main(void) {
    env e;
    env_init(&e);
    json_doc *doc = NULL;
    if (json_read(&e, "tests/golden/mnp_tiny.json", 1 << 20, &doc) != MNP_OK) {
        fprintf(stderr, "%s\n", e.error);
        return 1;
    }
    root = json_root(doc);
    const char *dims = "T=2 transition=rqs encoder=sab rff=3 d_z=2 d_r=3 head_hidden=4 "
                       "head_layers=2 enc_width=4 heads=2 n_sab=2 flow_hidden=5 flow_layers=2 "
                       "bins=4 bound=5 train_score=rest";
    if (lab_open(&tiny, "mnp", dims, 1)) {
        RUN(every_weight_has_its_place);
        RUN(latents_and_paths);
        RUN(importance_weights);
        RUN(elbo_with_analytic_kl);
        RUN(elbo_with_sampled_ratio);
        RUN(importance_weighted_objective);
    }
    lab_close(&tiny);
    json_destroy(doc);
    return check_done();
}
