/* test_bandit_units.c: what a context is measured in does not matter to the agent gp, neither in a
 * replayed log nor to a player: years and euros play as well as their thousandths, and well above
 * chance. */
#include <unistd.h>

#include "base/rng.h"
#include "check.h"
#include "mnp_bandit.h"

enum { EVENTS = 3000, ACTIONS = 4, DIMS = 3 };

/* A person: age in years, income in euros, and a number that is the same for all. */
typedef struct event {
    double x[DIMS], reward[ACTIONS];
    int action; /* that was logged: uniform */
} event;

/* The best action depends on age and income. */
static event draw(rng_stream *s) {
    event v = {{18 + 62 * rng_u01(s), 2e4 + 6e4 * rng_u01(s), 7}, {0}, 0};
    int best = (v.x[0] > 45) + 2 * (v.x[1] > 4.5e4);
    for (int k = 0; k < ACTIONS; k++) v.reward[k] = (k == best ? 20 : 0) + 0.1 * rng_normal(s);
    v.action = (int)rng_below(s, ACTIONS);
    return v;
}

/* Contexts times `scale` plus `shift`. */
static double in_unit(const event *v, int k, double scale, double shift) {
    return v->x[k] * scale + shift;
}

static double replay(mnp_ctx *ctx, const char *agent, const char *options, double scale,
                     double shift) {
    char path[] = "/tmp/mnp-units-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    CHECK(file != NULL);
    if (!file) return NAN;
    rng_stream s = rng_stream_make((rng_key){61}, RNG_TEST, 1);
    fprintf(file, "age,income,same,action,reward\n");
    for (int i = 0; i < EVENTS; i++) {
        event v = draw(&s);
        for (int k = 0; k < DIMS; k++) fprintf(file, "%.17g,", in_unit(&v, k, scale, shift));
        fprintf(file, "a%d,%.17g\n", v.action, v.reward[v.action]);
    }
    fclose(file);
    mnp_bandit_opts o = {.size = sizeof o, .agent = agent, .agent_options = options, .seed = 1};
    mnp_log_opts lo = {.size = sizeof lo, .passes = 2};
    mnp_replay_scores out = {.size = sizeof out};
    mnp_status status = mnp_bandit_replay(ctx, path, NULL, &o, &lo, &out);
    CHECK(status == MNP_OK);
    if (status != MNP_OK) fprintf(stderr, "%s\n", mnp_last_error(ctx));
    unlink(path);
    return out.reward;
}

static double play(mnp_ctx *ctx, const char *agent, double scale, double shift) {
    enum { STEPS = 700 };
    mnp_player *p = NULL;
    mnp_bandit_opts o = {.size = sizeof o, .agent = agent, .seed = 1};
    CHECK(mnp_player_create(ctx, NULL, &o, DIMS, ACTIONS, &p) == MNP_OK);
    rng_stream s = rng_stream_make((rng_key){62}, RNG_TEST, 1);
    double sum = 0;
    for (int t = 0; t < STEPS && p; t++) {
        event v = draw(&s);
        int64_t a = 0;
        double x[DIMS];
        for (int k = 0; k < DIMS; k++) x[k] = in_unit(&v, k, scale, shift);
        CHECK(mnp_player_act(p, x, &a) == MNP_OK);
        CHECK(mnp_player_observe(p, x, a, v.reward[a]) == MNP_OK);
        sum += v.reward[a] / STEPS;
    }
    mnp_player_destroy(p);
    return sum;
}

static void units_of_the_context_do_not_matter(void) {
    mnp_ctx *ctx = NULL;
    CHECK(mnp_ctx_create(NULL, &ctx) == MNP_OK);
    double chance = replay(ctx, "uniform", NULL, 1, 0), own = replay(ctx, "gp", NULL, 1, 0);
    double large = replay(ctx, "gp", NULL, 1000, 5e6), small = replay(ctx, "gp", NULL, 1e-3, -3);
    printf("log: %.2f by chance, %.2f, %.2f in thousands, %.2f in thousandths\n", chance, own,
           large, small);
    CHECK(own > 2 * chance);
    NEAR(large, own, 0.3, 0);
    NEAR(small, own, 0.3, 0);
    /* as they are: two people are never alike, and nothing is learned */
    CHECK(replay(ctx, "gp", "standardise=off", 1, 0) < 1.3 * chance);
    chance = play(ctx, "uniform", 1, 0), own = play(ctx, "gp", 1, 0);
    large = play(ctx, "gp", 1000, 5e6), small = play(ctx, "gp", 1e-3, -3);
    printf("player: %.2f by chance, %.2f, %.2f in thousands, %.2f in thousandths\n", chance, own,
           large, small);
    CHECK(own > 2 * chance);
    NEAR(large, own, 0.3, 0);
    NEAR(small, own, 0.3, 0);
    mnp_ctx_destroy(ctx);
}

int main(void) {
    RUN(units_of_the_context_do_not_matter);
    return check_done();
}
