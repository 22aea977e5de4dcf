/* test_sampler.c: particles of p(z | C) against brute force. With few latent dimensions a quarter
 * of a million draws of the prior, weighted by p(y_C | z), say what log p(y_C) and the means over
 * p(z | C) are: no inference network, no gradient, no move takes part. Then what the sampler
 * promises beside: the same bits for any number of threads and neighbours, no memory while it runs,
 * and a clean state after a failure. */
#include "lab.h"
#include "model/process/process.h"
#include "run/predict.h"
#include "scarce.h"

enum { N_MAX = 8, T_MAX = 2, Z_MAX = 2, LATENTS = T_MAX * Z_MAX };
enum { ITEMS = 32, SAMPLES = 1024, ROUNDS = 4, DRAWS = ITEMS * SAMPLES };
enum { MEANS = 2 * LATENTS + 1 }; /* of z, of z^2, of log p(y_C | z) */

typedef struct points {
    double x[N_MAX * 2], y[N_MAX];
    int64_t n;
} points;

static points curve(int64_t n, int64_t x_dim) {
    points p = {.n = n};
    for (int64_t i = 0; i < n * x_dim; i++) p.x[i] = 1.5 * sin(1.0 + 2.3 * (double)i);
    for (int64_t i = 0; i < n; i++) p.y[i] = 0.8 * cos(1.7 * (double)i) - 0.2;
    return p;
}

/* ---- brute force ----------------------------------------------------------------------------- */

typedef struct truth {
    double log_z, log_z_se;
    double mean[MEANS], se[MEANS];
} truth;

static void record_latents(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    process_at(s->kind)->draw_latents(g, s, false);
}

static void record_density(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    process_at(s->kind)->query(g, s, QUERY_LOGP);
}

static double z[T_MAX][DRAWS * Z_MAX], logp[DRAWS * N_MAX];

/* Draws of the prior, and log p(y_i | z) of each. */
static bool draw_prior(lab *l, runner *prior, runner *density, const points *p, uint64_t seed) {
    const model_spec *s = &l->m->spec;
    int64_t none[ITEMS] = {0}, n[ITEMS];
    for (int k = 0; k < ITEMS; k++) n[k] = p->n;
    prior->io.feed[0] = p->x, prior->io.feed[1] = p->y;
    density->io.feed[0] = p->x, density->io.feed[1 + s->T] = p->y, density->io.emit[0] = logp;
    density->io.emit_stride[0] = SAMPLES * p->n;
    for (int64_t t = 0; t < s->T; t++) {
        prior->io.emit[t] = z[t], density->io.feed[1 + t] = z[t];
        prior->io.emit_stride[t] = density->io.feed_stride[1 + t] = SAMPLES * s->d_z;
    }
    prior->io.n = prior->io.m = density->io.m = none, density->io.n = n;
    prior->io.chunks = density->io.chunks = ITEMS;
    return runner_run(prior, seed, ITEMS) == MNP_OK && runner_run(density, seed, ITEMS) == MNP_OK;
}

static void functions_of(const model_spec *s, const double *latent[T_MAX], double fit, double *f) {
    for (int k = 0; k < LATENTS; k++) {
        double v = k / Z_MAX < s->T && k % Z_MAX < s->d_z ? latent[k / Z_MAX][k % Z_MAX] : 0;
        f[k] = v, f[LATENTS + k] = v * v;
    }
    f[2 * LATENTS] = fit;
}

/* Sums over all draws of w, w^2, w f, and, for the error of a ratio, w^2 f and w^2 f^2. */
typedef struct sums {
    double w, ww, wf[MEANS], wwf[MEANS], wwff[MEANS];
} sums;

static void add_draws(const model_spec *s, int64_t n, double top, sums *to) {
    for (int64_t d = 0; d < DRAWS; d++) {
        const double *latent[T_MAX] = {z[0] + d * s->d_z, z[1] + d * s->d_z};
        double fit = 0, f[MEANS];
        for (int64_t i = 0; i < n; i++) fit += logp[d * n + i];
        functions_of(s, latent, fit, f);
        double w = exp(fit - top);
        to->w += w, to->ww += w * w;
        for (int k = 0; k < MEANS; k++) {
            to->wf[k] += w * f[k];
            to->wwf[k] += w * w * f[k], to->wwff[k] += w * w * f[k] * f[k];
        }
    }
}

static truth brute_force(lab *l, const points *p) {
    runner *prior = NULL, *density = NULL;
    runner_opts o = {.capacity = {N_MAX, N_MAX, SAMPLES}};
    sums all = {0};
    truth out = {0};
    double top = 3.0 * (double)p->n; /* exp of what is below it does not overflow */
    CHECK(runner_make(&l->env, l->m, &o, record_latents, NULL, &prior) == MNP_OK);
    CHECK(runner_make(&l->env, l->m, &o, record_density, NULL, &density) == MNP_OK);
    for (int r = 0; r < ROUNDS; r++) {
        CHECK(draw_prior(l, prior, density, p, 100 + (uint64_t)r));
        add_draws(&l->m->spec, p->n, top, &all);
    }
    runner_destroy(prior), runner_destroy(density);
    double count = (double)DRAWS * ROUNDS;
    out.log_z = top + log(all.w / count);
    out.log_z_se = sqrt(all.ww / all.w / all.w - 1 / count);
    for (int k = 0; k < MEANS; k++) {
        double m = out.mean[k] = all.wf[k] / all.w;
        out.se[k] = sqrt(fmax(all.wwff[k] - 2 * m * all.wwf[k] + m * m * all.ww, 0)) / all.w;
    }
    return out;
}

/* ---- the sampler ----------------------------------------------------------------------------- */

enum { CONTEXTS = 24, PARTICLES = 64 };

static void report_bad(const lab *l, mnp_status status) {
    if (status != MNP_OK) fprintf(stderr, "%s\n", l->env.error);
    CHECK(status == MNP_OK);
}

/* The same points as `count` contexts, whose random numbers are apart. */
static void begin_copies(lab *l, sampler *s, const sampler_opts *o, const points *p,
                         int64_t count) {
    static sampler_set sets[CONTEXTS];
    for (int64_t k = 0; k < count; k++) sets[k] = (sampler_set){p->x, p->y, p->n, k};
    report_bad(l, sampler_begin(s, o, sets, count));
}

/* Means over one context's particles. */
static void means_of(lab *l, sampler *s, int64_t k, double *mean) {
    static double v[T_MAX * PARTICLES * Z_MAX];
    const model_spec *spec = &l->m->spec;
    report_bad(l, sampler_latents(s, k, v));
    for (int j = 0; j < MEANS; j++) mean[j] = 0;
    for (int64_t i = 0; i < PARTICLES; i++) {
        double f[MEANS];
        const double *latent[T_MAX] = {v + i * spec->d_z, v + (PARTICLES + i) * spec->d_z};
        functions_of(spec, latent, 0, f);
        for (int j = 0; j < MEANS; j++) mean[j] += f[j] / PARTICLES;
    }
    mean[2 * LATENTS] = sampler_look(s, k)->fit_after;
}

/* Mean and its standard error over contexts. */
static double mean_of(const double *a, int64_t count, double *se) {
    double sum = 0, squares = 0;
    for (int64_t k = 0; k < count; k++) sum += a[k] / (double)count;
    for (int64_t k = 0; k < count; k++) squares += (a[k] - sum) * (a[k] - sum);
    *se = sqrt(squares / (double)(count - 1) / (double)count);
    return sum;
}

/* Within 4.5 standard errors, both of them known to at most `most`. */
static void agree(const char *what, double got, double got_se, double want, double want_se,
                  double most) {
    double se = sqrt(got_se * got_se + want_se * want_se);
    if (getenv("MNP_TEST_TELL"))
        printf("  %-12s %9.4f +- %.4f, brute force %9.4f +- %.4f\n", what, got, got_se, want,
               want_se);
    CHECK(se <= most);
    check_near(__FILE__, __LINE__, what, got, want, 4.5 * se + 1e-6, 0);
}

static void agree_means(lab *l, sampler *s, const truth *t) {
    static double mean[MEANS][CONTEXTS];
    char what[32];
    for (int64_t k = 0; k < CONTEXTS; k++) {
        double one[MEANS];
        means_of(l, s, k, one);
        for (int j = 0; j < MEANS; j++) mean[j][k] = one[j];
    }
    for (int j = 0; j < MEANS; j++) {
        double se, m = mean_of(mean[j], CONTEXTS, &se);
        snprintf(what, sizeof what, j < MEANS - 1 ? "mean %d" : "fit %d", j);
        agree(what, m, se, t->mean[j], t->se[j], 0.1);
    }
}

/* p(y_C) is the mean of the estimates, and their spread is what each of them says. */
static void agree_evidence(sampler *s, const truth *t) {
    double ratio[CONTEXTS], said[CONTEXTS], se, said_se;
    for (int64_t k = 0; k < CONTEXTS; k++) {
        const sampler_report *r = sampler_look(s, k);
        CHECK(!r->hurried && r->particles == PARTICLES && r->rhat < 1.1 && r->acceptance > 0.5);
        ratio[k] = exp(r->log_evidence - t->log_z);
        said[k] = r->log_evidence_sd * r->log_evidence_sd;
    }
    double m = mean_of(ratio, CONTEXTS, &se);
    agree("evidence", m, se, 1, t->log_z_se, 0.12);
    double spread = se * se * CONTEXTS, expected = mean_of(said, CONTEXTS, &said_se);
    if (getenv("MNP_TEST_TELL"))
        printf("  variance of the evidence %.4f, expected %.4f +- %.4f\n", spread, expected,
               said_se);
    CHECK(spread < 3 * expected && spread > 0.3 * expected);
}

static void check_truth(const char *process, const char *options, double gain, int64_t n) {
    lab l;
    pool *two = NULL;
    sampler *s = NULL;
    CASE(options);
    if (!lab_open(&l, process, options, 3)) return;
    lab_randomise(&l, gain, 17);
    points p = curve(n, l.m->spec.x_dim);
    truth t = brute_force(&l, &p);
    sampler_shape shape = {.points = n, .particles = PARTICLES, .contexts = CONTEXTS};
    report_bad(&l, pool_create(&l.env, 2, &two));
    report_bad(&l, sampler_create(&l.env, l.m, two, (backend_choice){0}, &shape, &s));
    CHECK(s && sampler_particles(s) == PARTICLES && sampler_room(s) == CONTEXTS);
    sampler_opts exact = {.kind = SAMPLER_EXACT, .gradients = 200, .seed = 5};
    begin_copies(&l, s, &exact, &p, CONTEXTS);
    agree_evidence(s, &t);
    agree_means(&l, s, &t);
    sampler_opts refine = {.kind = SAMPLER_REFINE, .gradients = 120, .seed = 6};
    begin_copies(&l, s, &refine, &p, CONTEXTS);
    agree_means(&l, s, &t);
    sampler_destroy(s);
    pool_destroy(two);
    lab_close(&l);
}

#define SMALL "rff=2 d_r=4 head_hidden=5 enc_width=4 heads=2 n_inducing=2 flow_hidden=6 "

static void agrees_with_brute_force(void) {
    check_truth("mnp", SMALL "T=2 d_z=1 transition=affine", 1.0, 6);
    check_truth("mnp", SMALL "T=2 d_z=2 transition=rqs encoder=isab x_dim=2", 0.5, 5);
    check_truth("np", SMALL "d_z=2 encoder=deepset sigma_floor=0.1", 0.8, 6);
    check_truth("mnp", SMALL "T=1 d_z=1 transition=gauss sigma_floor=0.2", 1.0, 1);
}

/* ---- bits ------------------------------------------------------------------------------------ */

enum { FEW = 5, P_FEW = 20, WORDS = T_MAX * 24 * Z_MAX };

/* Five different contexts, one of a single point, one with a point that is there three times. */
static void few_sets(points *p, sampler_set *sets) {
    static const int64_t n[FEW] = {6, 1, 5, 8, 3};
    for (int k = 0; k < FEW; k++) {
        p[k] = curve(n[k], 1);
        for (int64_t i = 0; i < n[k]; i++) p[k].y[i] += 0.1 * k;
        if (k == 2) p[k].x[1] = p[k].x[3] = p[k].x[0];
        sets[k] = (sampler_set){p[k].x, p[k].y, n[k], 40 + 3 * k};
    }
}

typedef struct outcome {
    double z[WORDS];
    sampler_report report;
} outcome;

static void take(lab *l, sampler *s, int64_t k, outcome *out) {
    *out = (outcome){.report = *sampler_look(s, k)};
    report_bad(l, sampler_latents(s, k, out->z));
}

static bool same(const outcome *a, const outcome *b) {
    const sampler_report *r = &a->report, *q = &b->report;
    return memcmp(a->z, b->z, sizeof a->z) == 0 && r->gradients == q->gradients &&
           r->temperatures == q->temperatures && r->acceptance == q->acceptance &&
           r->fit_after == q->fit_after && r->ess == q->ess &&
           memcmp(&r->log_evidence, &q->log_evidence, sizeof r->log_evidence) == 0;
}

#define FEW_OPTIONS SMALL "T=2 d_z=2 transition=affine"

static bool open_few(lab *l, int threads, int64_t contexts, pool **p, sampler **s) {
    if (!lab_open(l, "mnp", FEW_OPTIONS, 3)) return false;
    lab_randomise(l, 0.8, 21);
    sampler_shape shape = {.points = N_MAX, .particles = P_FEW, .contexts = contexts};
    report_bad(l, pool_create(&l->env, threads, p));
    report_bad(l, sampler_create(&l->env, l->m, *p, (backend_choice){0}, &shape, s));
    return *s != NULL;
}

static void close_few(lab *l, pool *p, sampler *s) {
    sampler_destroy(s);
    pool_destroy(p);
    lab_close(l);
}

static const sampler_opts few_opts[] = {
    {.kind = SAMPLER_EXACT, .gradients = 100, .seed = 9},
    {.kind = SAMPLER_REFINE, .gradients = 30, .seed = 9},
    {.kind = SAMPLER_EXACT, .gradients = 30, .seed = 9}, /* too few: the last rise is hurried */
    {.kind = SAMPLER_EXACT, .gradients = 10, .seed = 9},
    {.kind = SAMPLER_REFINE, .gradients = 1, .seed = 9},
};

enum { KINDS = sizeof few_opts / sizeof *few_opts };

/* With 1, 2 and 3 threads, all contexts together, one at a time, and in another order. */
static void same_bits(void) {
    static outcome first[KINDS][FEW], now;
    points p[FEW];
    sampler_set sets[FEW];
    few_sets(p, sets);
    for (int threads = 1; threads <= 3; threads++) {
        lab l;
        pool *pool = NULL;
        sampler *s = NULL;
        if (!open_few(&l, threads, FEW, &pool, &s)) return;
        for (int o = 0; o < KINDS; o++) {
            report_bad(&l, sampler_begin(s, &few_opts[o], sets, FEW));
            for (int k = 0; k < FEW; k++) {
                take(&l, s, k, threads == 1 ? &first[o][k] : &now);
                CHECK(threads == 1 || same(&now, &first[o][k]));
            }
            sampler_set turned[FEW];
            for (int k = 0; k < FEW; k++) turned[k] = sets[FEW - 1 - k];
            report_bad(&l, sampler_begin(s, &few_opts[o], turned, FEW - 1));
            for (int k = 0; k < FEW - 1; k++) {
                take(&l, s, k, &now);
                CHECK(same(&now, &first[o][FEW - 1 - k]));
            }
            for (int k = 0; k < FEW; k++) {
                report_bad(&l, sampler_begin(s, &few_opts[o], &sets[k], 1));
                take(&l, s, 0, &now);
                CHECK(same(&now, &first[o][k]));
            }
        }
        close_few(&l, pool, s);
    }
    CHECK(!same(&first[0][0], &first[0][1]) && !same(&first[0][0], &first[1][0]));
    CHECK(first[2][0].report.hurried || first[2][3].report.hurried);
    for (int k = 0; k < FEW; k++) {
        CHECK(first[1][k].report.gradients == 31 && isnan(first[1][k].report.log_evidence));
        CHECK(first[2][k].report.gradients <= 31);
        CHECK(first[3][k].report.gradients <= 11 && first[4][k].report.gradients == 6);
        CHECK(first[0][k].report.ess >= 1 && first[0][k].report.ess <= 24);
    }
}

/* Contexts go on by weights that are none of a model's: whatever they are. */
static mnp_status go_on(sampler *s, const sampler_set *sets, int count, double *rise) {
    static double z[FEW][WORDS], log_p[FEW][64];
    sampler_growth to[FEW];
    for (int k = 0; k < count; k++) {
        MNP_TRY(sampler_latents(s, k, z[k]));
        for (int p = 0; p < sampler_particles(s); p++) log_p[k][p] = -1 + sin(3 * z[k][p]);
        to[k] = (sampler_growth){sets[k], z[k], log_p[k]};
    }
    return sampler_extend(s, to, rise);
}

/* Contexts that go on together end as each would alone. */
static void neighbours_go_on_alone(void) {
    enum { SOME = 3 };
    static const int which[SOME] = {0, 2, 3};
    static outcome together[SOME], now;
    lab l;
    pool *pool = NULL;
    sampler *s = NULL;
    points p[FEW];
    sampler_set sets[FEW], first[SOME], all[SOME];
    double rise[SOME], own;
    few_sets(p, sets);
    if (!open_few(&l, 2, SOME, &pool, &s)) return;
    for (int k = 0; k < SOME; k++) first[k] = all[k] = sets[which[k]], first[k].n -= 2 + k % 2;
    report_bad(&l, sampler_begin(s, &few_opts[0], first, SOME));
    report_bad(&l, go_on(s, all, SOME, rise));
    for (int k = 0; k < SOME; k++) take(&l, s, k, &together[k]);
    for (int k = 0; k < SOME; k++) {
        report_bad(&l, sampler_begin(s, &few_opts[0], &first[k], 1));
        report_bad(&l, go_on(s, &all[k], 1, &own));
        take(&l, s, 0, &now);
        CHECK(own == rise[k] && isfinite(own));
        CHECK(memcmp(now.z, together[k].z, sizeof now.z) == 0);
        CHECK(now.report.log_evidence == together[k].report.log_evidence);
        CHECK(now.report.temperatures == together[k].report.temperatures);
    }
    close_few(&l, pool, s);
}

/* The same points, another id: other random numbers, another answer. */
static void ids_name_the_numbers(void) {
    lab l;
    pool *pool = NULL;
    sampler *s = NULL;
    static outcome a, b;
    points p = curve(5, 1);
    sampler_set sets[2] = {{p.x, p.y, p.n, 1}, {p.x, p.y, p.n, 2}};
    if (!open_few(&l, 1, 2, &pool, &s)) return;
    report_bad(&l, sampler_begin(s, &few_opts[0], sets, 2));
    take(&l, s, 0, &a), take(&l, s, 1, &b);
    for (int i = 0; i < WORDS / 2; i++) CHECK(a.z[i] != b.z[i] || a.z[i] == 0);
    close_few(&l, pool, s);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* However many contexts are asked for, a sampler of a large model takes a quarter of a gigabyte and
 * says how many it has room for. */
static void room_is_limited(void) {
    lab l;
    pool *pool = NULL;
    sampler *s = NULL;
    if (!lab_open(&l, "mnp", "T=4 d_z=64", 3)) return;
    report_bad(&l, pool_create(&l.env, 1, &pool));
    sampler_shape shape = {.points = 20, .particles = 1000, .contexts = 1000000};
    report_bad(&l, sampler_create(&l.env, l.m, pool, (backend_choice){0}, &shape, &s));
    double vectors = 5.0 * 4 * 64 * 1000 * 8; /* bytes of one context: noise, gradients, momenta */
    CHECK(s && sampler_room(s) > 1 && (double)sampler_room(s) * vectors <= 0x1p28);
    CHECK((double)(sampler_room(s) + 1) * vectors > 0.8 * 0x1p28);
    close_few(&l, pool, s);
}

/* The first run of a plan takes some memory, which may fail; the later ones take none. */
static void runs_without_memory(lab *l, sampler *s, scarce *memory) {
    static double v[WORDS];
    points p = curve(4, 1);
    sampler_set set = {p.x, p.y, p.n, 1};
    memory->left = 0;
    CHECK(sampler_begin(s, &few_opts[0], &set, 1) == MNP_ENOMEM);
    memory->left = 100;
    begin_copies(l, s, &few_opts[0], &p, 3);
    report_bad(l, sampler_latents(s, 1, v));
    CHECK(memory->left < 100);
    memory->left = 0;
    for (int o = 0; o < 3; o++) {
        begin_copies(l, s, &few_opts[o], &p, 3);
        report_bad(l, sampler_latents(s, 1, v));
    }
}

static void every_allocation_may_fail(void) {
    lab l;
    pool *pool = NULL;
    sampler *s = NULL;
    if (!lab_open(&l, "mnp", FEW_OPTIONS, 3)) return;
    mnp_allocator usual = l.env.allocator;
    report_bad(&l, pool_create(&l.env, 2, &pool));
    sampler_shape shape = {.points = N_MAX, .particles = P_FEW, .contexts = 3};
    mnp_status status = MNP_ENOMEM;
    long count = 0;
    for (; status != MNP_OK && count < 1000; count++) {
        scarce scarce = {.left = count};
        l.env.allocator = (mnp_allocator){scarce_alloc, scarce_free, &scarce};
        status = sampler_create(&l.env, l.m, pool, (backend_choice){0}, &shape, &s);
        CHECK(status == MNP_OK || (status == MNP_ENOMEM && !s && scarce.live == 0));
        if (status == MNP_OK) runs_without_memory(&l, s, &scarce);
        sampler_destroy(s);
        CHECK(scarce.live == 0);
        s = NULL;
    }
    CHECK(count > 30 && status == MNP_OK);
    l.env.allocator = usual;
    close_few(&l, pool, NULL);
}

/* ---- stopping -------------------------------------------------------------------------------- */

static bool after_some(void *left) {
    return --*(int *)left < 0;
}

/* Wherever it is stopped, the next run gives what a first one gives. */
static void cancelling_leaves_it_clean(void) {
    lab l;
    pool *pool = NULL;
    sampler *s = NULL;
    static outcome first, now;
    points p[FEW];
    sampler_set sets[FEW];
    few_sets(p, sets);
    if (!open_few(&l, 2, FEW, &pool, &s)) return;
    report_bad(&l, sampler_begin(s, &few_opts[0], sets, FEW));
    take(&l, s, 3, &first);
    for (int moves = 0; moves < 6; moves++) {
        int left = moves;
        l.env.cancel = after_some, l.env.cancel_user = &left;
        CHECK(sampler_begin(s, &few_opts[0], sets, FEW) == MNP_ECANCELLED && left < 0);
        l.env.cancel = NULL;
        report_bad(&l, sampler_begin(s, &few_opts[0], sets, FEW));
        take(&l, s, 3, &now);
        CHECK(same(&now, &first));
    }
    close_few(&l, pool, s);
}

/* Points far from everything, which contradict each other: finite latents, an evidence that says
 * so, and a neighbour that knows nothing of it. */
static void far_points(void) {
    lab l;
    pool *pool = NULL;
    sampler *s = NULL;
    static outcome o, beside;
    points p = curve(4, 1);
    if (!open_few(&l, 1, 2, &pool, &s)) return;
    for (int k = 0; k < 2; k++) {
        p.y[1] = k == 0 ? 1e4 : 1.6e7;
        p.x[2] = p.x[1], p.y[2] = -p.y[1];
        sampler_set sets[2] = {{p.x, p.y, p.n, 1}, {p.x, p.y, 1, 2}};
        for (int kind = 0; kind < 2; kind++) {
            report_bad(&l, sampler_begin(s, &few_opts[kind], sets, 2));
            take(&l, s, 0, &o);
            for (int i = 0; i < WORDS; i++) CHECK(isfinite(o.z[i]));
            CHECK(o.report.fit_after < -1e3 && !(o.report.log_evidence > -1e3));
            take(&l, s, 1, &beside);
            report_bad(&l, sampler_begin(s, &few_opts[kind], &sets[1], 1));
            take(&l, s, 0, &o);
            CHECK(same(&o, &beside));
        }
    }
    close_few(&l, pool, s);
}

/* A network beyond what floats hold: no particle has a weight, and none moves. */
static void weights_that_are_not_numbers(void) {
    lab l;
    pool *pool = NULL;
    sampler *s = NULL;
    static outcome o;
    points p = curve(4, 1);
    if (!open_few(&l, 1, 1, &pool, &s)) return;
    for (int64_t i = 0; i < l.m->params.words; i++) l.m->weights[i] *= 1e12f;
    for (int kind = 0; kind < 2; kind++) {
        begin_copies(&l, s, &few_opts[kind], &p, 1);
        take(&l, s, 0, &o);
        CHECK(o.report.acceptance == 0);
        CHECK(kind == 0 ? o.report.log_evidence == -INFINITY : isnan(o.report.log_evidence));
    }
    close_few(&l, pool, s);
}

/* Without points p(z | C) is the process itself: the network's draws, bit for bit. */
static void without_points(void) {
    enum { DRAWN = 12, AT = 3 };
    lab l;
    pool *pool = NULL;
    sampler *s = NULL;
    predictor *p = NULL;
    sampler_report report;
    double x[AT] = {-1, 0.3, 2}, exact[DRAWN * AT], usual[DRAWN * AT];
    if (!open_few(&l, 1, 1, &pool, &s)) return;
    report_bad(&l, predictor_create(&l.env, l.m, pool, (backend_choice){0}, &p));
    for (int kind = 0; kind < 2; kind++) {
        sampler_opts o = few_opts[kind];
        report_bad(&l, predictor_draw_exact(p, &o, DRAWN, &report));
        CHECK(report.gradients == 0 && isnan(report.log_evidence));
        report_bad(&l, predictor_predict(p, x, AT, PREDICT_NORMAL, exact));
        report_bad(&l, predictor_draw_latents(p, o.seed, DRAWN));
        report_bad(&l, predictor_predict(p, x, AT, PREDICT_NORMAL, usual));
        CHECK(memcmp(exact, usual, sizeof exact) == 0);
    }
    predictor_destroy(p);
    close_few(&l, pool, s);
}

int main(void) {
    RUN_STATISTICS(agrees_with_brute_force);
    RUN(same_bits);
    RUN(neighbours_go_on_alone);
    RUN(ids_name_the_numbers);
    RUN(room_is_limited);
    RUN(every_allocation_may_fail);
    RUN(cancelling_leaves_it_clean);
    RUN(far_points);
    RUN(weights_that_are_not_numbers);
    RUN(without_points);
    return check_done();
}
