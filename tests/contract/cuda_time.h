/* cuda_time.h: test_cuda --time: milliseconds of a step on the GPU and where they go. */
#ifndef MNP_TESTS_CUDA_TIME_H
#define MNP_TESTS_CUDA_TIME_H

#include "backend/cuda/host/cuda.h"
#include "contract/training.h"

typedef struct cost {
    const char *what;
    int64_t cycles, count;
} cost;

static int dearest(const void *a, const void *b) {
    int64_t x = ((const cost *)a)->cycles, y = ((const cost *)b)->cycles;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Cycles by op and size of its first output or weight. */
static void print_profile(training *t, int64_t steps) {
    static const char EXTENT[] = {[EXT_FIXED] = '-', [EXT_N] = 'n', [EXT_M] = 'm', [EXT_K] = 'k'};
    static char names[512][96];
    cost costs[512];
    int n = 0;
    int64_t all = 0;
    cuda_cost at;
    for (int32_t k = 0; cuda_profile(t->exec, k, &at); k++) {
        if (at.together == 0) continue;
        const instr *ins = &t->plan->instrs[at.from];
        const value *v = &t->plan->values[ins->in[0] != VAL_NONE ? ins->in[0] : ins->out[0]];
        const value *w = &t->plan->values[ins->in[1] != VAL_NONE ? ins->in[1] : ins->out[0]];
        const value *o = &t->plan->values[ins->out[0] != VAL_NONE ? ins->out[0] : ins->in[0]];
        char name[96];
        snprintf(name, sizeof name, "%-18s %c%d x %d, %c%d x %d -> %c%d", op_name(ins->op),
                 EXTENT[v->ext], v->rows, v->cols, EXTENT[w->ext], w->rows, w->cols, EXTENT[o->ext],
                 o->cols);
        if (at.part) snprintf(name, sizeof name, "%s", at.part);
        if (at.together > 1) snprintf(name, sizeof name, "%d small ones side by side", at.together);
        int j = 0;
        while (j < n && strcmp(names[j], name) != 0) j++;
        if (j == n) {
            if (n == 512) continue;
            snprintf(names[n], sizeof names[n], "%s", name);
            costs[n++] = (cost){names[j], 0, 0};
        }
        costs[j].cycles += at.cycles;
        costs[j].count++;
        all += at.cycles;
    }
    qsort(costs, (size_t)n, sizeof *costs, dearest);
    printf("  cycles of block 0 a step: %.0f\n", (double)all / (double)steps);
    for (int j = 0; j < n && j < 70; j++)
        printf("  %5.1f%%  %8.0f cycles each, %3lld of  %s\n",
               100.0 * (double)costs[j].cycles / (double)all,
               (double)costs[j].cycles / (double)(steps * costs[j].count),
               (long long)costs[j].count, costs[j].what);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void time_steps(const char *preset, int64_t batch, int profile_math) {
    static const char *const names[] = {"fp32", "tf32", "bf16"};
    enum { ROUNDS = 25, STEPS = 10 };
    const bool alone = profile_math >= 3;
    profile_math %= 3;
    for (int math = 0; math < 3; math++) {
        training t;
        if (alone && math != profile_math) continue;
        if (training_open(&t, "cuda", preset, (exec_opts){.math = (exec_math)math}, 0)) {
            double ms[ROUNDS];
            training_steps(&t, batch, 20);
            for (int k = 0; k < ROUNDS; k++) {
                training_steps(&t, batch, STEPS);
                ms[k] = cuda_milliseconds(t.exec) / STEPS;
            }
            qsort(ms, ROUNDS, sizeof *ms, ascending);
            printf("%s%s%s, %lld points, contexts up to %lld, batch %lld %s: %.4f ms a step "
                   "(median of %d x %d; %.4f to %.4f), loss %.4f, "
                   "%.0f MB\n",
                   preset, *changes ? " " : "", changes, (long long)points, (long long)longest,
                   (long long)batch, names[math], ms[ROUNDS / 2], ROUNDS, STEPS, ms[0],
                   ms[ROUNDS - 1], t.step.loss, (double)t.b->memory(t.exec) / 1e6);
        }
        training_close(&t);
        fflush(stdout);
        if (math != profile_math) continue;
        if (training_open(&t, "cuda", preset, (exec_opts){.math = (exec_math)math, .profile = true},
                          0)) {
            training_steps(&t, batch, 20);
            print_profile(&t, 20);
        }
        training_close(&t);
    }
}

#endif
