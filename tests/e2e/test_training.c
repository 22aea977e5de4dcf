/* test_training.c: training through the C interface. The bits of a run depend on its options and
 * seed alone: not on the number of threads, and not on stopping and resuming. Averaged weights are
 * the averages of what was there; the best weights are those of the best validation. A number that
 * is not finite stops the run with the step, the function and the op named, and nothing changed. */
#include <unistd.h>

#include "api/api_internal.h"
#include "base/safetensors.h"
#include "check.h"
#include "damaged.h"
#include "run/train_internal.h"
#include "util/fsio.h"

static char folder[200];

static const char *in_folder(char out[260], const char *name) {
    snprintf(out, 260, "%s/%s", folder, name);
    return out;
}

/* ---- a session: everything one run needs ----------------------------------------------------- */

enum { FUNCTIONS = 40, POINTS = 24 };

typedef struct session {
    mnp_ctx *ctx;
    mnp_data *train, *valid;
    mnp_model *model;
    mnp_trainer *trainer;
} session;

#define OK(s, call)                                                                                \
    do {                                                                                           \
        mnp_status ok_ = (call);                                                                   \
        CHECK(ok_ == MNP_OK);                                                                      \
        if (ok_ != MNP_OK) fprintf(stderr, "%s: %s\n", #call, mnp_last_error((s)->ctx));           \
    } while (0)

/* Sine curves of random amplitude and phase, a little noise. */
static mnp_data *curves(session *s, uint32_t stream) {
    static double x[FUNCTIONS * POINTS], y[FUNCTIONS * POINTS];
    mnp_set sets[FUNCTIONS];
    mnp_data *data = NULL;
    rng_stream r = rng_stream_make((rng_key){41}, RNG_TEST, stream);
    for (int k = 0; k < FUNCTIONS; k++) {
        double amplitude = 0.5 + rng_u01(&r), phase = 6 * rng_u01(&r);
        for (int i = k * POINTS; i < (k + 1) * POINTS; i++) {
            x[i] = 4 * rng_u01(&r) - 2;
            y[i] = amplitude * sin(2 * x[i] + phase) + 0.05 * rng_normal(&r);
        }
        sets[k] = (mnp_set){POINTS - k % 5, x + k * POINTS, y + k * POINTS}; /* ragged */
    }
    OK(s, mnp_data_from_sets(s->ctx, sets, FUNCTIONS, 1, &data));
    return data;
}

static void open_session(session *s, int threads, const char *options, uint64_t seed) {
    *s = (session){0};
    mnp_ctx_opts co = {.size = sizeof co, .threads = threads};
    mnp_train_opts to = {.size = sizeof to, .options = options, .seed = seed};
    CHECK(mnp_ctx_create(&co, &s->ctx) == MNP_OK);
    s->train = curves(s, 1);
    s->valid = curves(s, 2);
    OK(s, mnp_model_create(s->ctx, "mnp", "tiny", "T=2", s->train, 5, &s->model));
    OK(s, mnp_trainer_create(s->ctx, s->model, s->train, s->valid, &to, &s->trainer));
}

static void close_session(session *s) {
    mnp_trainer_destroy(s->trainer);
    mnp_model_destroy(s->model);
    mnp_data_destroy(s->train);
    mnp_data_destroy(s->valid);
    mnp_ctx_destroy(s->ctx);
}

static int64_t steps_of(const session *s) {
    mnp_train_report r = {.size = sizeof r};
    OK(s, mnp_trainer_report(s->trainer, &r));
    return r.step;
}

/* Runs that must agree have the same state: weights, moments, averages, best, scores. */
static bool same_state(const session *a, const session *b) {
    const trainer *s = a->trainer->t, *t = b->trainer->t;
    size_t bytes = (size_t)s->m->params.words * sizeof(float);
    bool same = memcmp(s->m->weights, t->m->weights, bytes) == 0;
    same = same && memcmp(s->moment1, t->moment1, bytes) == 0;
    same = same && memcmp(s->moment2, t->moment2, bytes) == 0;
    same = same && memcmp(s->best, t->best, bytes) == 0;
    if (s->average) same = same && memcmp(s->average, t->average, bytes) == 0;
    return same && s->step.step == t->step.step && s->last_valid == t->last_valid &&
           s->best_valid == t->best_valid && s->best_step == t->best_step;
}

static bool same_file(session *s, const char *one, const char *two) {
    env *e = &s->ctx->env;
    char *a = NULL, *b = NULL;
    size_t na = 0, nb = 0;
    bool same = fsio_read(e, one, 1 << 26, &a, &na) == MNP_OK &&
                fsio_read(e, two, 1 << 26, &b, &nb) == MNP_OK && na == nb && na > 0 &&
                memcmp(a, b, na) == 0;
    env_free(e, a);
    env_free(e, b);
    return same;
}

/* ---- the tests ------------------------------------------------------------------------------- */

static const char plain[] = "steps=24 batch=10 valid_every=8 valid_functions=10 ema=0.9 clip=1";

static void threads_change_no_bit(void) {
    static const int threads[] = {1, 2, 3, 8};
    session first, other;
    char one[260], two[260];
    open_session(&first, threads[0], plain, 7);
    OK(&first, mnp_trainer_run(first.trainer, 24, NULL));
    OK(&first, mnp_trainer_save(first.trainer, in_folder(one, "one")));
    for (int k = 1; k < 4; k++) {
        open_session(&other, threads[k], plain, 7);
        OK(&other, mnp_trainer_run(other.trainer, 24, NULL));
        CHECK(same_state(&first, &other));
        OK(&other, mnp_trainer_save(other.trainer, in_folder(two, "two")));
        CHECK(same_file(&other, one, two));
        close_session(&other);
    }
    open_session(&other, 2, plain, 8); /* another seed is another run */
    OK(&other, mnp_trainer_run(other.trainer, 24, NULL));
    CHECK(!same_state(&first, &other));
    close_session(&other);
    close_session(&first);
}

static void resuming_changes_no_bit(void) {
    static const int64_t stops[] = {1, 8, 13, 23};
    session whole, half;
    char state[260], one[260], two[260];
    open_session(&whole, 2, plain, 7);
    OK(&whole, mnp_trainer_run(whole.trainer, 100, NULL)); /* never beyond the schedule */
    CHECK(steps_of(&whole) == 24);
    OK(&whole, mnp_trainer_save_best(whole.trainer, in_folder(one, "one")));
    in_folder(state, "state");
    for (int k = 0; k < 4; k++) {
        open_session(&half, 2, plain, 7);
        OK(&half, mnp_trainer_run(half.trainer, stops[k], NULL));
        OK(&half, mnp_trainer_save(half.trainer, state));
        close_session(&half);
        open_session(&half, 1, plain, 7);
        OK(&half, mnp_trainer_resume(half.trainer, state, false));
        CHECK(steps_of(&half) == stops[k]);
        OK(&half, mnp_trainer_run(half.trainer, 3, NULL));
        OK(&half, mnp_trainer_run(half.trainer, 24, NULL));
        CHECK(same_state(&whole, &half));
        OK(&half, mnp_trainer_save_best(half.trainer, in_folder(two, "two")));
        CHECK(same_file(&half, one, two));
        close_session(&half);
    }
    close_session(&whole);
}

/* The draws of a sleep phase too depend on the seed and the step alone; and they change the run. */
static void sleep_resumes(void) {
    static const char asleep[] =
        "steps=24 batch=10 valid_every=8 valid_functions=10 ema=0.9 clip=1 sleep=1";
    session whole, half, awake;
    char state[260];
    open_session(&whole, 2, asleep, 7);
    OK(&whole, mnp_trainer_run(whole.trainer, 24, NULL));
    open_session(&half, 1, asleep, 7);
    OK(&half, mnp_trainer_run(half.trainer, 13, NULL));
    OK(&half, mnp_trainer_save(half.trainer, in_folder(state, "asleep")));
    close_session(&half);
    open_session(&half, 3, asleep, 7);
    OK(&half, mnp_trainer_resume(half.trainer, state, false));
    OK(&half, mnp_trainer_run(half.trainer, 24, NULL));
    CHECK(steps_of(&half) == 24 && same_state(&whole, &half));
    open_session(&awake, 2, plain, 7);
    OK(&awake, mnp_trainer_run(awake.trainer, 24, NULL));
    CHECK(!same_state(&whole, &awake));
    close_session(&awake);
    close_session(&half);
    close_session(&whole);
}

/* A state of another run is refused, and says in what it differs; weights stay as they were. */
static void other_runs_are_not_resumed(void) {
    static const char *const options[] = {
        "steps=25 batch=10 valid_every=8 valid_functions=10 ema=0.9 clip=1", plain};
    static const char *const names[] = {"steps=24", "seed"};
    session a, b;
    char state[260];
    in_folder(state, "state");
    open_session(&a, 1, plain, 7);
    OK(&a, mnp_trainer_run(a.trainer, 2, NULL));
    OK(&a, mnp_trainer_save(a.trainer, state));
    for (int k = 0; k < 2; k++) {
        open_session(&b, 1, options[k], k == 1 ? 8 : 7);
        float before = b.model->m->weights[3];
        CHECK(mnp_trainer_resume(b.trainer, state, false) == MNP_EINVAL);
        CHECK(strstr(mnp_last_error(b.ctx), names[k]) != NULL);
        CHECK(b.model->m->weights[3] == before && steps_of(&b) == 0);
        close_session(&b);
    }
    /* The same weights on a new schedule of another length. */
    open_session(&b, 1, options[0], 7);
    OK(&b, mnp_trainer_resume(b.trainer, state, true));
    size_t bytes = (size_t)a.model->m->params.words * sizeof(float);
    CHECK(memcmp(a.model->m->weights, b.model->m->weights, bytes) == 0);
    CHECK(steps_of(&b) == 0);
    OK(&b, mnp_trainer_run(b.trainer, 25, NULL));
    CHECK(steps_of(&b) == 25);
    close_session(&b);
    close_session(&a);
}

/* The file of `state` without its k-th tensor. */
static void write_without(session *s, const char *state, size_t k, const char *path) {
    safetensors_file *f = NULL;
    OK(s, safetensors_read(&s->ctx->env, state, 1 << 26, &f));
    if (!f) return;
    memmove(f->tensors + k, f->tensors + k + 1, (f->count - k - 1) * sizeof *f->tensors);
    OK(s, safetensors_write(&s->ctx->env, path, f->meta, f->meta_count, f->tensors, f->count - 1));
    safetensors_destroy(f);
}

/* Three runs alike: `a` saves its state after some steps, `b` is to refuse damaged copies of it (at
 * `torn`) and stay as `fresh` is. */
static void open_damage(session *a, session *b, session *fresh, int64_t steps, char state[260],
                        char torn[260]) {
    in_folder(state, "state");
    in_folder(torn, "torn");
    open_session(a, 1, plain, 7);
    open_session(b, 1, plain, 7);
    open_session(fresh, 1, plain, 7);
    fresh->trainer->t->last_valid = b->trainer->t->last_valid = 0; /* NaN is not equal to itself */
    OK(a, mnp_trainer_run(a->trainer, steps, NULL));
    OK(a, mnp_trainer_save(a->trainer, state));
}

/* A state that ends too early, or lacks a tensor, changes nothing. */
static void torn_states_change_nothing(void) {
    session a, b, fresh;
    char state[260], torn[260];
    char *data = NULL;
    size_t bytes = 0;
    open_damage(&a, &b, &fresh, 2, state, torn);
    OK(&a, fsio_read(&a.ctx->env, state, 1 << 26, &data, &bytes));
    for (size_t k = 1; data && k < 8; k++) {
        OK(&a, fsio_write(&a.ctx->env, torn, data, bytes * k / 8));
        CHECK(mnp_trainer_resume(b.trainer, torn, false) == MNP_EFORMAT);
        CHECK(same_state(&fresh, &b));
    }
    for (size_t k = 0; k < 6; k++) {
        write_without(&a, state, k, torn);
        CHECK(mnp_trainer_resume(b.trainer, torn, false) == MNP_EFORMAT);
        CHECK(same_state(&fresh, &b));
    }
    env_free(&a.ctx->env, data);
    close_session(&a);
    close_session(&b);
    close_session(&fresh);
}

/* Steps, scores, weights and moments that no run can have: refused by name, and nothing changes. */
static void impossible_states_are_refused(void) {
    static const struct {
        const char *tensor;
        double v[4];
        size_t n;
        const char *says;
        bool any_schedule; /* refused with a new schedule as well */
    } bad[] = {
        {"numbers", {10, NAN, NAN, NAN}, 4, "step of the best weights is nan", true},
        {"numbers", {10, NAN, NAN, 5}, 4, "best nan", true},
        {"numbers", {10, 1, INFINITY, 5}, 4, "best inf", true},
        {"numbers", {10, 1, 0.5, 5}, 4, "last 1 and best 0.5", true},
        {"numbers", {10, 1, 1, 11}, 4, "is 11, not a whole number from 0 to 10", true},
        {"numbers", {4e9}, 1, "step is 4e+09, not a whole number from 0 to 24", false},
        {"numbers", {25}, 1, "step is 25", false},
        {"numbers", {1e300}, 1, "step is 1e+300", true},
        {"numbers", {-1}, 1, "step is -1", true},
        {"numbers", {10.5}, 1, "step is 10.5", true},
        {"numbers", {NAN}, 1, "step is nan", true},
        {"weights", {NAN}, 1, "'weights' holds nan", true},
        {"moment1", {INFINITY}, 1, "'moment1' holds inf", true},
        {"moment2", {-1e-9}, 1, "'moment2' holds -1e-09", true},
        {"best", {-INFINITY}, 1, "'best' holds -inf", true},
        {"average", {NAN}, 1, "'average' holds nan", true},
    };
    session a, b, fresh;
    char state[260], torn[260];
    open_damage(&a, &b, &fresh, 10, state, torn);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        for (int again = 0; again <= bad[k].any_schedule; again++) {
            write_damaged(&a.ctx->env, state, torn, bad[k].tensor, 0, bad[k].v, bad[k].n);
            CHECK(mnp_trainer_resume(b.trainer, torn, again) == MNP_EFORMAT);
            const char *text = mnp_last_error(b.ctx);
            CHECK(strstr(text, bad[k].says) && strstr(text, torn) && !strchr(text, '\n'));
            CHECK(same_state(&fresh, &b));
        }
    OK(&b, mnp_trainer_resume(b.trainer, state, false)); /* the state itself is good */
    CHECK(same_state(&a, &b));
    close_session(&a);
    close_session(&b);
    close_session(&fresh);
}

/* A validation that broke off is no part of any state: it is done before the next step. */
static void unfinished_validations_are_not_saved(void) {
    session s;
    char state[260];
    in_folder(state, "state");
    open_session(&s, 1, plain, 7);
    OK(&s, mnp_trainer_run(s.trainer, 8, NULL));
    trainer *t = s.trainer->t;
    double valid = t->last_valid;
    CHECK(isfinite(valid) && !t->unjudged);
    t->last_valid = NAN;
    t->unjudged = true;
    CHECK(mnp_trainer_save(s.trainer, state) == MNP_EINVAL);
    CHECK(mnp_trainer_save_last(s.trainer, state) == MNP_EINVAL);
    CHECK(strstr(mnp_last_error(s.ctx), "in the middle of step 8") != NULL);
    OK(&s, mnp_trainer_run(s.trainer, 1, NULL));
    CHECK(t->last_valid == valid && !t->unjudged);
    OK(&s, mnp_trainer_save(s.trainer, state));
    close_session(&s);
}

static void make_gp(session *s) {
    mnp_train_opts o = {
        .size = sizeof o, .options = "steps=6 batch=4 valid_functions=4", .seed = 7};
    *s = (session){0};
    mnp_ctx_opts co = {.size = sizeof co, .threads = 1};
    CHECK(mnp_ctx_create(&co, &s->ctx) == MNP_OK);
    s->train = curves(s, 1);
    s->valid = curves(s, 2);
    OK(s, mnp_model_create(s->ctx, "gp", NULL, "", s->train, 5, &s->model));
    OK(s, mnp_trainer_create(s->ctx, s->model, s->train, s->valid, &o, &s->trainer));
}

/* A run that was stopped before its first step compares its starts when it goes on. */
static void nothing_is_a_state_too(void) {
    session whole, begun, later;
    char state[260];
    in_folder(state, "state");
    make_gp(&whole);
    make_gp(&begun);
    make_gp(&later);
    OK(&whole, mnp_trainer_run(whole.trainer, 6, NULL));
    OK(&begun, mnp_trainer_save(begun.trainer, state));
    OK(&later, mnp_trainer_resume(later.trainer, state, false));
    OK(&later, mnp_trainer_run(later.trainer, 6, NULL));
    CHECK(same_state(&whole, &later));
    close_session(&whole);
    close_session(&begun);
    close_session(&later);
}

/* average := weights at first, then average += (1 - ema) (weights - average). */
static void averages_are_averages(void) {
    session s;
    open_session(&s, 1, "steps=12 batch=8 ema=0.8 valid_every=12", 7);
    const trainer *t = s.trainer->t;
    int64_t words = t->m->params.words;
    double *mean = malloc((size_t)words * sizeof *mean), off = 0;
    for (int step = 0; step < 12; step++) {
        OK(&s, mnp_trainer_run(s.trainer, 1, NULL));
        for (int64_t i = 0; i < words; i++) {
            double w = (double)t->m->weights[i];
            mean[i] = step == 0 ? w : mean[i] + 0.2 * (w - mean[i]);
            off = fmax(off, fabs(mean[i] - (double)t->average[i]));
        }
    }
    CHECK(off < 1e-6);
    CHECK(memcmp(t->average, t->m->weights, (size_t)words * sizeof(float)) != 0);
    /* Validated once, at the end: the best weights are the averaged ones. */
    CHECK(t->best_step == 12 && isfinite(t->best_valid));
    CHECK(memcmp(t->best, t->average, (size_t)words * sizeof(float)) == 0);
    OK(&s, mnp_trainer_take_best(s.trainer));
    CHECK(memcmp(t->m->weights, t->average, (size_t)words * sizeof(float)) == 0);
    free(mean);
    close_session(&s);
}

static void training_learns(void) {
    session s;
    mnp_train_report first = {.size = sizeof first}, last = first;
    open_session(&s, 2, "steps=200 batch=20 lr=3e-3 valid_every=50 valid_functions=20", 7);
    OK(&s, mnp_trainer_run(s.trainer, 1, &first));
    OK(&s, mnp_trainer_run(s.trainer, 200, &last));
    CHECK(last.step == 200 && last.loss < first.loss - 0.4);
    CHECK(last.best_valid > -first.loss + 0.4 && last.best_step > 0);
    printf("loss %.3f -> %.3f, validation %.3f\n", first.loss, last.loss, last.best_valid);
    close_session(&s);
}

/* The same run without patience says where it should have stopped: after the first K validations
 * in a row that are no better than the best so far. The weights kept are those of the best. */
static void patience_stops(void) {
    enum { EVERY = 3, K = 2, STEPS = 120 };
    static const char *const both[] = {
        "steps=120 batch=4 lr=0.02 valid_every=3 valid_functions=10",
        "steps=120 batch=4 lr=0.02 valid_every=3 valid_functions=10 patience=2"};
    session on, impatient, later;
    mnp_train_report r = {.size = sizeof r};
    open_session(&on, 1, both[0], 7);
    double best = -INFINITY;
    int64_t best_step = 0, stop = 0;
    for (int64_t at = EVERY; at <= STEPS && !stop; at += EVERY) {
        OK(&on, mnp_trainer_run(on.trainer, EVERY, &r));
        if (r.valid > best) best = r.valid, best_step = at;
        if (at - best_step == K * EVERY) stop = at;
    }
    CHECK(stop > 0 && stop < STEPS && best_step > 0);
    open_session(&impatient, 2, both[1], 7);
    OK(&impatient, mnp_trainer_run(impatient.trainer, stop - 1, &r));
    CHECK(r.step == stop - 1 && r.steps == STEPS);
    char state[260];
    OK(&impatient, mnp_trainer_save(impatient.trainer, in_folder(state, "state")));
    OK(&impatient, mnp_trainer_run(impatient.trainer, STEPS, &r));
    CHECK(r.step == stop && r.steps == stop);
    CHECK(r.best_step == best_step && r.best_valid == best);
    size_t bytes = (size_t)on.trainer->t->m->params.words * sizeof(float);
    CHECK(memcmp(impatient.trainer->t->best, on.trainer->t->best, bytes) == 0);
    OK(&impatient, mnp_trainer_run(impatient.trainer, STEPS, &r)); /* it stays where it is */
    CHECK(r.step == stop);
    open_session(&later, 1, both[1], 7);
    OK(&later, mnp_trainer_resume(later.trainer, state, false));
    OK(&later, mnp_trainer_run(later.trainer, STEPS, &r));
    CHECK(r.step == stop && r.best_valid == best);
    close_session(&later);
    close_session(&impatient);
    close_session(&on);
}

/* A validation may have contexts of its own: with none, on the same weights, it is another score
 * than with some; asked for those of training, it is the same. */
static void contexts_of_validations(void) {
    static const char *const options[] = {"steps=2 batch=4 context=3:9",
                                          "steps=2 batch=4 context=3:9 valid_context=0:0",
                                          "steps=2 batch=4 context=3:9 valid_context=3:9"};
    double valid[3];
    for (int k = 0; k < 3; k++) {
        session s;
        mnp_train_report r = {.size = sizeof r};
        open_session(&s, 1, options[k], 7);
        OK(&s, mnp_trainer_run(s.trainer, 2, &r));
        valid[k] = r.valid;
        close_session(&s);
    }
    CHECK(valid[0] == valid[2] && valid[0] != valid[1]);
}

/* The weights a run starts with may be the best it ever has. */
static void the_start_competes(void) {
    session s;
    open_session(&s, 1, "steps=6 batch=4 lr=1 valid_every=2 valid_functions=10", 7);
    trainer *t = s.trainer->t;
    size_t bytes = (size_t)t->m->params.words * sizeof(float);
    float *start = malloc(bytes);
    memcpy(start, t->m->weights, bytes);
    CHECK(trainer_judge_start(t) == MNP_OK);
    CHECK(t->best_step == 0 && isfinite(t->best_valid));
    OK(&s, mnp_trainer_run(s.trainer, 6, NULL));
    CHECK(t->step.step == 6 && t->last_valid < t->best_valid);
    CHECK(t->best_step == 0 && memcmp(t->best, start, bytes) == 0);
    free(start);
    close_session(&s);
}

/* ---- what is not finite ---------------------------------------------------------------------- */

/* Poisons one number after a few good steps; the run must stop at once and keep what it has. */
static void check_poison(float poison, const char *op, int threads) {
    session s;
    open_session(&s, threads, "steps=30 batch=40 ema=0.9", 7);
    OK(&s, mnp_trainer_run(s.trainer, 3, NULL));
    trainer *t = s.trainer->t;
    size_t words = (size_t)t->m->params.words, bytes = words * sizeof(float);
    float *kept = malloc(4 * bytes),
          *blocks[] = {t->m->weights, t->moment1, t->moment2, t->average};
    for (size_t k = 0; k < 4; k++) memcpy(kept + k * words, blocks[k], bytes);
    float good = t->y[30];
    t->y[30] = poison; /* a point of function 1; a batch has every function once */
    CHECK(mnp_trainer_run(s.trainer, 10, NULL) == MNP_ENUMERIC);
    const char *text = mnp_last_error(s.ctx);
    CHECK(strstr(text, "step 4 of 30") != NULL);
    CHECK(strstr(text, "function") != NULL && strstr(text, "of the batch") != NULL);
    CHECK(strstr(text, op) != NULL);
    if (check_.bad) fprintf(stderr, "%s\n", text);
    for (size_t k = 0; k < 4; k++) CHECK(memcmp(kept + k * words, blocks[k], bytes) == 0);
    CHECK(steps_of(&s) == 3);
    char path[260];
    mnp_model *model = NULL;
    OK(&s, mnp_trainer_save_last(s.trainer, in_folder(path, "last")));
    OK(&s, mnp_model_load(s.ctx, path, &model));
    if (model) CHECK(memcmp(model->m->weights, kept, bytes) == 0);
    mnp_model_destroy(model);
    t->y[30] = good; /* and the run can go on */
    OK(&s, mnp_trainer_run(s.trainer, 2, NULL));
    CHECK(steps_of(&s) == 5);
    free(kept);
    close_session(&s);
}

static void bad_numbers_stop_the_run(void) {
    check_poison(NAN, "draw", 1);
    check_poison(NAN, "draw", 3);
    check_poison(INFINITY, "draw", 2);
    check_poison(3e38f, "op '", 1); /* finite, but its square is not */
}

static void bad_data_are_refused_at_once(void) {
    session s = {0};
    double x[] = {0, 1, 2}, y[] = {0, NAN, 1};
    mnp_set set = {3, x, y};
    mnp_data *data = NULL;
    CHECK(mnp_ctx_create(NULL, &s.ctx) == MNP_OK);
    CHECK(mnp_data_from_sets(s.ctx, &set, 1, 1, &data) == MNP_EINVAL && !data);
    CHECK(mnp_last_error(s.ctx)[0] != '\0');
    mnp_ctx_destroy(s.ctx);
}

/* ---- cancelling ------------------------------------------------------------------------------ */

static bool ask(void *user) {
    int *left = user;
    return (*left)-- <= 0;
}

static void a_cancelled_run_can_go_on(void) {
    session s;
    int left = 1;
    open_session(&s, 1, plain, 7);
    s.ctx->env.cancel = ask;
    s.ctx->env.cancel_user = &left;
    CHECK(mnp_trainer_run(s.trainer, 24, NULL) == MNP_ECANCELLED);
    int64_t done = steps_of(&s);
    CHECK(done > 0 && done < 24);
    s.ctx->env.cancel = NULL;
    OK(&s, mnp_trainer_run(s.trainer, 24, NULL));
    session whole;
    open_session(&whole, 1, plain, 7);
    OK(&whole, mnp_trainer_run(whole.trainer, 24, NULL));
    CHECK(same_state(&s, &whole));
    close_session(&whole);
    close_session(&s);
}

/* ---- precisions ------------------------------------------------------------------------------ */

/* Where auto goes to the CPU, what was asked of a GPU is not looked for there. */
static void the_cpu_has_one_precision(void) {
    static const char *const devices[] = {"auto:tf32", "auto:mixed:general", "auto:auto"};
    for (int k = 0; k < 3; k++) {
        CASE(devices[k]);
        session s;
        backend_choice where;
        mnp_trainer *t = NULL;
        mnp_train_report r = {.size = sizeof r};
        mnp_train_opts o = {.size = sizeof o, .options = plain, .device = devices[k]};
        open_session(&s, 1, plain, 7);
        OK(&s, backend_choose_training(&s.ctx->env, devices[k], &where));
        CHECK(where.b->modes || (where.math == MATH_FP32 && !where.general));
        OK(&s, mnp_trainer_create(s.ctx, s.model, s.train, s.valid, &o, &t));
        OK(&s, mnp_trainer_run(t, 3, &r));
        CHECK(r.step == 3 && (where.b->modes || isnan(r.rounding)));
        mnp_trainer_destroy(t);
        close_session(&s);
    }
}

/* A state from a GPU that rounds goes on where products are exact. */
static void rounding_is_of_the_device(void) {
    char path[260];
    session s, other;
    mnp_train_report r = {.size = sizeof r};
    open_session(&s, 1, plain, 7);
    OK(&s, mnp_trainer_run(s.trainer, 3, NULL));
    s.trainer->t->rounding.checks = 1;
    s.trainer->t->rounding.latest = (rounding_check){0.1, 0.2, 0.3};
    OK(&s, mnp_trainer_save(s.trainer, in_folder(path, "state")));
    open_session(&other, 1, plain, 7);
    OK(&other, mnp_trainer_resume(other.trainer, path, false));
    OK(&other, mnp_trainer_report(other.trainer, &r));
    CHECK(r.step == 3 && isnan(r.rounding) && isnan(r.sampling) && isnan(r.shift));
    close_session(&other);
    close_session(&s);
}

static mnp_status refuse(env *e, const plan *p, const exec_opts *o, exec **out) {
    (void)p, (void)o, (void)out;
    return env_fail(e, MNP_ENOMEM, "no room for another precision");
}

/* Precision auto goes to fp32, and the device has no room for that step: nothing runs any more,
 * instead of steps that learn nothing. */
static void a_change_of_precision_that_fails(void) {
    char path[260];
    session s;
    backend full = *backend_find("cpu");
    full.modes = true, full.compile = refuse;
    open_session(&s, 1, plain, 7);
    trainer *t = s.trainer->t;
    OK(&s, mnp_trainer_run(s.trainer, 3, NULL));
    t->rounding.checks = t->rounding.verdict = 1;
    OK(&s, mnp_trainer_save(s.trainer, in_folder(path, "state")));
    t->b = &full, t->device.adapts = true, t->device.math = MATH_TF32;
    CHECK(mnp_trainer_resume(s.trainer, path, false) == MNP_ENOMEM);
    CHECK(mnp_trainer_run(s.trainer, 3, NULL) != MNP_OK && steps_of(&s) == 3);
    close_session(&s);
}

int main(void) {
    const char *base = getenv("TEST_TMP");
    snprintf(folder, sizeof folder, "%.150s/training-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) return 1;
    RUN(threads_change_no_bit);
    RUN(resuming_changes_no_bit);
    RUN(sleep_resumes);
    RUN(other_runs_are_not_resumed);
    RUN(torn_states_change_nothing);
    RUN(impossible_states_are_refused);
    RUN(unfinished_validations_are_not_saved);
    RUN(nothing_is_a_state_too);
    RUN(averages_are_averages);
    RUN(training_learns);
    RUN(patience_stops);
    RUN(contexts_of_validations);
    RUN(the_start_competes);
    RUN(bad_numbers_stop_the_run);
    RUN(bad_data_are_refused_at_once);
    RUN(rounding_is_of_the_device);
    RUN(a_change_of_precision_that_fails);
    static const char *const files[] = {"one", "two", "state", "torn", "last"};
    char path[260];
    for (int k = 0; k < 5; k++) unlink(in_folder(path, files[k]));
    rmdir(folder);
    RUN(a_cancelled_run_can_go_on);
    RUN(the_cpu_has_one_precision);
    return check_done();
}
