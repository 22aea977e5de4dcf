/* test_particles.c: a particle is the noise eps of z = z(eps; C), with weight w = p(y_C | z)
 * q(z | nothing) / q(z | C). In double precision, for every process with latents, every transition
 * and every encoder:
 *
 *   - log w is what two other recordings say: the densities log p(y_i | z) at given latents, and
 *     the ratio of a walk whose context is empty;
 *   - the emitted gradients are those that central differences see;
 *   - latents come from noise and noise from latents. */
#include "lab.h"
#include "model/chain.h"
#include "model/encoder/encoder.h"
#include "model/process/process.h"
#include "model/transition/transition.h"

enum { N = 5, S = 3, T_MAX = 3, Z = 3 };

typedef struct vectors {
    double at[T_MAX][S * Z];
} vectors;

typedef struct sight {
    double log_w[S], fit[S];
    vectors grad;
} sight;

typedef struct scene {
    lab l;
    double x[N * 2], y[N];
    lab_run gradient, latents, noise;
    lab_run density, walk; /* the other recordings */
} scene;

/* ---- recordings ------------------------------------------------------------------------------ */

static void record_particle(graph *g, const model_spec *s, void *what) {
    process_at(s->kind)->particle(g, s, *(const process_particle *)what);
}

static void record_density(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    process_at(s->kind)->query(g, s, QUERY_LOGP);
}

/* log q(z | context) - log q(z | all points), for noise that is fed; the context may be empty. */
static void record_walk(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    val x, y, eps[T_MAX];
    process_feed_points(g, s, &x, &y);
    for (int64_t t = 0; t < s->T; t++)
        eps[t] = op_feed(g, "eps", EXT_FIXED, 1, (int32_t)s->d_z, true, false);
    chain_walk_opts o = {.source = CHAIN_ALL, .with_prior = true, .to_base = true, .eps = eps};
    chain_walk w;
    chain_record_walk(g, s, x, y, &o, &w);
    op_emit(g, w.ratio_sum);
}

static bool start(scene *c) {
    plan_opts capacity = {.n = N, .m = N, .samples = S};
    process_particle what[] = {PARTICLE_GRADIENT, PARTICLE_LATENTS, PARTICLE_NOISE};
    bool ok = lab_start(&c->gradient, &c->l, "ref", capacity, record_particle, &what[0]);
    ok &= lab_start(&c->latents, &c->l, "ref", capacity, record_particle, &what[1]);
    ok &= lab_start(&c->noise, &c->l, "ref", capacity, record_particle, &what[2]);
    ok &= lab_start(&c->density, &c->l, "ref", capacity, record_density, NULL);
    return ok & lab_start(&c->walk, &c->l, "ref", capacity, record_walk, NULL);
}

static void stop(scene *c) {
    lab_run *runs[] = {&c->gradient, &c->latents, &c->noise, &c->density, &c->walk};
    for (int k = 0; k < 5; k++) lab_stop(runs[k]);
}

/* ---- running --------------------------------------------------------------------------------- */

static void feed_particle(scene *c, lab_run *r, vectors *v) {
    r->io.feed[PARTICLE_X] = c->x, r->io.feed[PARTICLE_Y] = c->y;
    for (int t = 0; t < T_MAX; t++) r->io.feed[PARTICLE_FEEDS + t] = v->at[t];
}

static void look(scene *c, vectors *eps, sight *out) {
    lab_run *r = &c->gradient;
    feed_particle(c, r, eps);
    r->io.emit[PARTICLE_LOGW] = out->log_w, r->io.emit[PARTICLE_FIT] = out->fit;
    for (int t = 0; t < T_MAX; t++) r->io.emit[PARTICLE_EMITS + t] = out->grad.at[t];
    lab_go(r, N, N);
}

static void change(scene *c, lab_run *r, vectors *from, vectors *to) {
    feed_particle(c, r, from);
    for (int t = 0; t < T_MAX; t++) r->io.emit[t] = to->at[t];
    lab_go(r, N, N);
}

/* ---- the laws -------------------------------------------------------------------------------- */

static void weight_is_what_others_say(scene *c, vectors *eps, const sight *now) {
    vectors z = {0}, back = {0};
    double logp[S * N], ratio[S];
    int T = (int)c->l.m->spec.T;
    change(c, &c->latents, eps, &z);
    change(c, &c->noise, &z, &back);
    for (int t = 0; t < T; t++)
        for (int i = 0; i < S * Z; i++) NEAR(back.at[t][i], eps->at[t][i], 1e-9, 1e-9);
    c->density.io.feed[0] = c->x, c->density.io.feed[1 + T] = c->y, c->density.io.emit[0] = logp;
    c->walk.io.feed[0] = c->x, c->walk.io.feed[1] = c->y, c->walk.io.emit[0] = ratio;
    for (int t = 0; t < T; t++)
        c->density.io.feed[1 + t] = z.at[t], c->walk.io.feed[2 + t] = eps->at[t];
    lab_go(&c->density, N, 0);
    lab_go(&c->walk, N, 0); /* no context */
    for (int s = 0; s < S; s++) {
        double fit = 0;
        for (int i = 0; i < N; i++) fit += logp[s * N + i];
        NEAR(now->log_w[s], fit + ratio[s], 1e-9, 1e-10);
        NEAR(now->fit[s], fit, 1e-9, 1e-10);
    }
}

/* Every component; a sample has no part in its neighbours' weights. */
static void gradient_is_the_difference(scene *c, vectors *eps, const sight *now) {
    const double h = 1e-6;
    double largest = 0;
    for (int t = 0; t < (int)c->l.m->spec.T; t++)
        for (int i = 0; i < S * Z; i++) {
            vectors moved = *eps;
            sight up = {0}, down = {0};
            moved.at[t][i] = eps->at[t][i] + h;
            look(c, &moved, &up);
            moved.at[t][i] = eps->at[t][i] - h;
            look(c, &moved, &down);
            double g = now->grad.at[t][i];
            NEAR(g, (up.log_w[i / Z] - down.log_w[i / Z]) / (2 * h), 1e-6, 1e-5);
            for (int s = 0; s < S; s++)
                if (s != i / Z) CHECK(up.log_w[s] == now->log_w[s]);
            largest = fmax(largest, fabs(g));
        }
    CHECK(largest > 1e-3);
}

static void check_model(const char *process, const char *options, uint32_t stream) {
    static scene c;
    c = (scene){0};
    CASE(options);
    if (!lab_open(&c.l, process, options, 3)) return;
    lab_randomise(&c.l, 1.0, stream);
    rng_stream r = rng_stream_make((rng_key){23}, RNG_TEST, stream);
    for (int i = 0; i < N * 2; i++) c.x[i] = 2 * rng_normal(&r);
    for (int i = 0; i < N; i++) c.y[i] = rng_normal(&r);
    vectors eps = {0};
    for (int t = 0; t < T_MAX; t++)
        for (int i = 0; i < S * Z; i++) eps.at[t][i] = rng_normal(&r);
    if (start(&c)) {
        sight now = {0};
        look(&c, &eps, &now);
        weight_is_what_others_say(&c, &eps, &now);
        gradient_is_the_difference(&c, &eps, &now);
    }
    stop(&c);
    lab_close(&c.l);
}

#define SMALL "rff=3 d_z=3 d_r=4 head_hidden=5 enc_width=4 heads=2 n_inducing=2 flow_hidden=6 "

static void every_kind(void) {
    char options[300];
    for (int e = 0; e < ENCODER_COUNT; e++)
        for (int k = 0; k < TRANSITION_COUNT; k++)
            for (int x_dim = 1; x_dim <= 2; x_dim++) {
                snprintf(options, sizeof options, SMALL "T=3 encoder=%s transition=%s x_dim=%d %s",
                         encoder_at(e)->name, transition_at(k)->name, x_dim,
                         x_dim == 2 ? "layer_norm=on" : "layer_norm=off");
                check_model("mnp", options, (uint32_t)(10 * e + 2 * k + x_dim));
            }
}

static void neural_processes(void) {
    char options[300];
    for (int e = 0; e < ENCODER_COUNT; e++) {
        snprintf(options, sizeof options, SMALL "encoder=%s layer_norm=%s", encoder_at(e)->name,
                 e % 2 ? "on" : "off");
        check_model("np", options, (uint32_t)(50 + e));
    }
}

static void other_options(void) {
    check_model("mnp", SMALL "T=2 sigma_z=softplus pool=sum", 60);
    check_model("mnp", SMALL "T=2 rff=0 flow_layers=1 head_layers=0 encoder=deepset", 61);
}

int main(void) {
    RUN(every_kind);
    RUN(neural_processes);
    RUN(other_options);
    return check_done();
}
