/* problem.c: see problem.h. */
#include "bandit/problem.h"

#include <math.h>

mnp_status problem_new(env *e, int32_t dims, int32_t actions, int64_t steps, problem **out) {
    *out = NULL;
    if (dims < 1 || dims > BANDIT_DIMS_MAX || actions < 2 || actions > BANDIT_ACTIONS_MAX)
        return env_fail(e, MNP_EINVAL,
                        "a bandit has 1 to %d numbers of context and 2 to %d actions, not %d, %d",
                        BANDIT_DIMS_MAX, BANDIT_ACTIONS_MAX, dims, actions);
    if (steps < 1 || steps > INT32_MAX)
        return env_fail(e, MNP_EINVAL, "a bandit has 1 to %d steps, not %lld", INT32_MAX,
                        (long long)steps);
    problem *p = env_alloc(e, 1, sizeof *p, "a bandit problem");
    if (!p) return MNP_ENOMEM;
    *p = (problem){.env = *e, .dims = dims, .actions = actions, .steps = steps};
    size_t n = (size_t)steps;
    p->x = env_alloc(e, n * (size_t)dims, sizeof *p->x, "contexts");
    p->rewards = env_alloc(e, n * (size_t)actions, sizeof *p->rewards, "rewards");
    p->best = env_alloc(e, n, sizeof *p->best, "the best actions");
    if (!p->x || !p->rewards || !p->best) {
        problem_destroy(p);
        return MNP_ENOMEM;
    }
    *out = p;
    return MNP_OK;
}

void problem_destroy(problem *p) {
    if (!p) return;
    env e = p->env;
    env_free(&e, p->x);
    env_free(&e, p->rewards);
    env_free(&e, p->best);
    env_free(&e, p);
}

/* ---- the wheel ------------------------------------------------------------------------------- */

enum { CONTEXTS, NOISE }; /* streams of one step */

static rng_stream stream(uint64_t seed, uint32_t trial, int64_t step, uint32_t which) {
    return rng_stream_at((rng_key){seed}, (rng_at){.purpose = RNG_BANDIT,
                                                   .step = (uint32_t)step,
                                                   .function = trial,
                                                   .sample = which});
}

mnp_status problem_wheel(env *e, double delta, uint64_t seed, uint32_t trial, int64_t steps,
                         problem **out) {
    *out = NULL;
    if (!(delta >= 0 && delta <= 1))
        return env_fail(e, MNP_EINVAL, "delta is a radius from 0 to 1, not %g", delta);
    problem *p = NULL;
    MNP_TRY(problem_new(e, WHEEL_DIMS, WHEEL_ACTIONS, steps, &p));
    for (int64_t t = 0; t < steps; t++) {
        rng_stream s = stream(seed, trial, t, CONTEXTS), noise = stream(seed, trial, t, NOISE);
        wheel_context(&s, p->x + t * WHEEL_DIMS);
        p->best[t] = wheel_means(delta, p->x + t * WHEEL_DIMS, p->rewards + t * WHEEL_ACTIONS);
        for (int k = 0; k < WHEEL_ACTIONS; k++)
            p->rewards[t * WHEEL_ACTIONS + k] += WHEEL_NOISE * rng_normal(&noise);
    }
    *out = p;
    return MNP_OK;
}
