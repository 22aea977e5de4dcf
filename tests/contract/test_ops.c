/* test_ops.c: every op, every case: the CPU backend against the double reference (each instruction
 * set this machine has), and the reference's gradient against finite differences along a random
 * direction. An op is covered by adding cases to its own file; nothing is listed here. */
#include <float.h>

#include "backend/cpu/kernels.h"
#include "base/rng.h"
#include "bench/contract.h"
#include "contract/compare.h"

static env world;

/* The reference run's results, kept to compare with. */
typedef struct kept {
    double *array[CONTRACT_ARRAYS], *gradient;
    double objective, magnitude; /* the sum of its terms, and of their magnitudes */
} kept;

static kept keep(const contract *t, double objective) {
    kept k = {.objective = objective,
              .magnitude = contract_magnitude(t),
              .gradient = copy(t->gradient, t->params.trainable)};
    for (int i = 0; i < t->n_arrays; i++) k.array[i] = copy(t->array[i], t->array_count[i]);
    return k;
}

static void drop(const contract *t, kept *k) {
    for (int i = 0; i < t->n_arrays; i++) free(k->array[i]);
    free(k->gradient);
}

static void against_reference(contract *t, const kept *ref) {
    static const char *const isas[] = {"avx512", "avx2", "base"};
    double tol = t->c->tol > 0 ? t->c->tol : (t->c->flags & CASE_DOUBLE) ? 1e-6 : 2e-5;
    for (int i = 0; i < 3; i++) {
        exec_opts o = {.isa = isas[i]};
        if (!cpu_kernels_best(isas[i])) continue;
        double objective = NAN;
        CHECK(contract_run(t, backend_find("cpu"), &o, &objective) == MNP_OK);
        for (int k = 0; k < t->n_arrays; k++)
            compare(t->array_name[k], t->array[k], ref->array[k], t->array_count[k],
                    k == t->n_arrays - 1 ? ref->magnitude : 0, tol);
        compare("weight gradient", t->gradient, ref->gradient, t->params.trainable, 0, tol);
    }
}

/* Moves every differentiable input and weight along a fixed random direction by h. */
static double move(contract *t, const kept *ref, double h) {
    rng_stream s = rng_stream_make((rng_key){99}, RNG_TEST, 7);
    double slope = 0;
    int array = t->build.n_outputs;
    for (int k = 0; k < t->n_feeds; k++) {
        if (!t->build.wants[k] || graph_grad(&t->graph, t->build.inputs[k]) == VAL_NONE) continue;
        for (int64_t i = 0; i < t->feed_count[k]; i++) {
            double d = rng_normal(&s);
            t->feed[k][i] += h * d;
            slope += d * ref->array[array][i];
        }
        array++;
    }
    for (int32_t p = 0; p < t->params.count; p++) {
        const param *w = &t->params.list[p];
        if (w->init.frozen) continue;
        for (int64_t i = 0; i < (int64_t)w->rows * w->cols; i++) {
            int64_t at = w->offset + i / w->cols * w->ld + i % w->cols;
            double d = rng_normal(&s);
            t->weights[at] += h * d;
            slope += d * ref->gradient[at];
        }
    }
    return slope;
}

static void against_differences(contract *t, const kept *ref) {
    const double h = 1e-6;
    exec_opts o = {0};
    double up = NAN, down = NAN;
    double slope = move(t, ref, h);
    CHECK(contract_run(t, backend_find("ref"), &o, &up) == MNP_OK);
    move(t, ref, -2 * h);
    CHECK(contract_run(t, backend_find("ref"), &o, &down) == MNP_OK);
    move(t, ref, h);
    double measured = (up - down) / (2 * h);
    NEAR(slope, measured, 1e-7 * (fabs(ref->objective) + 1), 1e-5);
}

static void run_case(const op_def *op, const op_case *c) {
    contract *t = NULL;
    mnp_status status = contract_make(&world, op, c, true, &t);
    if (status != MNP_OK) {
        check_bad(__FILE__, __LINE__, world.error);
        return;
    }
    exec_opts o = {0};
    double objective = NAN;
    CHECK(contract_run(t, backend_find("ref"), &o, &objective) == MNP_OK);
    CHECK(isfinite(objective));
    kept ref = keep(t, objective);
    CHECK(fabs(objective) <= ref.magnitude * (1 + 1e-12));
    against_reference(t, &ref);
    bool has_grad = false;
    for (int32_t v = 0; v < t->graph.n_values; v++) has_grad |= t->graph.values[v].grad != VAL_NONE;
    if (has_grad && !(c->flags & (CASE_NO_FD | CASE_LARGE))) against_differences(t, &ref);
    drop(t, &ref);
    contract_destroy(t);
}

static const op_def *present;

static void cases_of_op(void) {
    for (int k = 0; k < present->n_cases; k++) {
        CASE(present->cases[k].name);
        run_case(present, &present->cases[k]);
    }
}

int main(int argc, char **argv) {
    env_init(&world);
    for (int32_t id = 0; id < OP_COUNT; id++) {
        present = op_at(id);
        if (!present->n_cases || (argc > 1 && !strstr(present->name, argv[1]))) continue;
        check_run(present->name, cases_of_op);
    }
    return check_done();
}
