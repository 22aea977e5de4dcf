/* test_schedule.c: an order of instructions keeps every dependence, sets side by side only small
 * ones that do not depend on each other, and finds the obvious ones. */
#include "backend/cuda/program/schedule.h"

#include "base/rng.h"
#include "check.h"

static env world;

static span words(int64_t from, int64_t count) {
    return (span){0, from, from + count};
}

static void check_order(const task *tasks, int32_t count, const int32_t *order,
                        const int32_t *together) {
    int32_t *place = calloc((size_t)count + 1, sizeof *place);
    int32_t *group = calloc((size_t)count + 1, sizeof *group);
    CHECK(place && group);
    for (int32_t k = 0; k < count; k++) place[k] = -1;
    int32_t left = 0, leader = 0;
    bool permutation = true, groups = true, saved = true;
    for (int32_t k = 0; k < count; k++) {
        permutation &= order[k] >= 0 && order[k] < count && place[order[k]] < 0;
        place[order[k]] = k;
        const int32_t wide = tasks[order[k]].wide;
        groups &= (left == 0) == (together[k] > 0);
        groups &= together[k] <= (wide ? SCHEDULE_WIDE : SCHEDULE_TOGETHER);
        if (left == 0) left = together[k], leader = k;
        groups &= together[leader] == 1 || wide || tasks[order[k]].small;
        groups &= wide == tasks[order[leader]].wide;
        group[order[k]] = leader;
        left--;
    }
    for (int32_t a = 0; a < count; a++)
        for (int32_t b = a + 1; b < count; b++)
            if (schedule_depends(&tasks[a], &tasks[b])) saved &= group[a] < group[b];
    CHECK(permutation);
    CHECK(groups && left == 0);
    CHECK(saved);
    free(place);
    free(group);
}

/* Tasks that read and write random places of a small memory. */
static void random_tasks_of(bool with_wide) {
    enum { COUNT = 2500 }; /* more than one stretch */
    task *tasks = calloc(COUNT, sizeof *tasks);
    int32_t *order = calloc(2 * COUNT, sizeof *order);
    CHECK(tasks && order);
    rng_stream s = rng_stream_make((rng_key){5}, RNG_TEST, 0);
    for (int k = 0; k < COUNT; k++) {
        task *t = &tasks[k];
        t->n_in = (int32_t)rng_below(&s, 6);
        t->n_out = (int32_t)rng_below(&s, 5);
        for (int j = 0; j < t->n_in; j++) t->in[j] = words((int64_t)rng_below(&s, 400), 3);
        for (int j = 0; j < t->n_out; j++) t->out[j] = words((int64_t)rng_below(&s, 400), 3);
        t->wide = with_wide ? (int32_t)rng_below(&s, 4) : 0;
        t->late = t->wide == 3;
        t->small = !t->wide && rng_below(&s, 2) == 0;
        t->fence = rng_below(&s, 500) == 0;
        t->cost = 1 + (int32_t)rng_below(&s, 100);
    }
    CHECK(schedule_make(&world, tasks, COUNT, order, order + COUNT) == MNP_OK);
    check_order(tasks, COUNT, order, order + COUNT);
    free(tasks);
    free(order);
}

static void random_tasks(void) {
    random_tasks_of(false);
    random_tasks_of(true);
}

/* Twenty rounds of a wide task, one of functions that needs it, and a late one that nobody needs:
 * the late ones stand together, eight at a time, and after them the rest. */
static void late_tasks(void) {
    enum { ROUNDS = 20, COUNT = 3 * ROUNDS };
    task tasks[COUNT] = {0};
    int32_t order[COUNT], together[COUNT], groups[SCHEDULE_WIDE + 1] = {0};
    for (int k = 0; k < COUNT; k++) {
        task *t = &tasks[k];
        const int round = k / 3, which = k % 3;
        t->cost = 1;
        t->wide = which == 0 ? 1 : which == 2 ? 2 : 0;
        t->late = which == 2;
        t->n_in = 1, t->n_out = 1;
        t->in[0] = words(which == 0 ? 100 + round : 200 + round, 1);
        t->out[0] = words(which == 0 ? 200 + round : which == 1 ? 101 + round : 300 + round, 1);
    }
    CHECK(schedule_make(&world, tasks, COUNT, order, together) == MNP_OK);
    check_order(tasks, COUNT, order, together);
    for (int k = 0; k < COUNT; k += together[k])
        if (tasks[order[k]].late) groups[together[k]]++;
    CHECK(groups[SCHEDULE_WIDE] == 2 && groups[ROUNDS - 2 * SCHEDULE_WIDE] == 1);
}

/* Two chains of small steps that do not touch each other go hand in hand; what is not waited for
 * fills the gaps. */
static void two_chains(void) {
    enum { STEPS = 6 };
    task tasks[2 * STEPS] = {0};
    int32_t order[2 * STEPS], together[2 * STEPS];
    for (int k = 0; k < 2 * STEPS; k++) {
        const int64_t base = k / STEPS * 100, step = k % STEPS;
        tasks[k] = (task){.n_in = 1, .n_out = 1, .small = true, .cost = 10};
        tasks[k].in[0] = words(base + step, 1), tasks[k].out[0] = words(base + step + 1, 1);
    }
    CHECK(schedule_make(&world, tasks, 2 * STEPS, order, together) == MNP_OK);
    check_order(tasks, 2 * STEPS, order, together);
    int leaders = 0;
    for (int k = 0; k < 2 * STEPS; k++) leaders += together[k] > 0;
    CHECK(leaders == STEPS);
}

int main(void) {
    env_init(&world);
    RUN(random_tasks);
    RUN(late_tasks);
    RUN(two_chains);
    return check_done();
}
