/* backend.c: the list of backends. */
#include "backend/backend.h"

#include <stdio.h>
#include <string.h>

#include "util/text.h"

#define BACKEND(name) extern const backend backend_##name;
#include "backend/backends.def"
#undef BACKEND

static const backend *const table[] = {
#define BACKEND(name) &backend_##name,
#include "backend/backends.def"
#undef BACKEND
};
enum { BACKENDS = sizeof table / sizeof *table };

const backend *backend_find(const char *name) {
    for (int i = 0; i < BACKENDS; i++)
        if (!name || strcmp(table[i]->name, name) == 0) return table[i];
    return NULL;
}

const char *backend_device(env *e, int k, char *out, size_t size) {
    for (int i = 0; i < BACKENDS && k >= 0; i++)
        if (table[i]->describe && table[i]->describe(e, out, size) == MNP_OK && k-- == 0)
            return table[i]->name;
    return NULL;
}

/* As text_choice() wants them; auto is cuda where it works. */
static const char names[] = "cpu|cuda|auto", modes[] = "fp32|tf32|bf16|mixed|auto|fused|general";
enum { MODE_AUTO = MATH_MIXED + 1, MODE_FUSED, MODE_GENERAL }; /* after those of exec_math */

static mnp_status no_such(env *e, const char *what, const char *name, const char *choices) {
    char meant[TEXT_NAMES];
    text_nearest near = text_nearest_to(strcmp(name, "gpu") == 0 ? "cuda" : name); /* not cpu */
    text_nearest_choices(&near, choices);
    return env_fail(e, MNP_EINVAL, "there is no %s '%.60s'%s", what, name,
                    text_meant_or_all(meant, &near));
}

/* One word after the device's name: a precision or a kind of kernels, each given once at most. */
typedef struct mode {
    bool math, kernels;
} mode;
static mnp_status read_mode(env *e, const char *word, mode *given, backend_choice *out) {
    char known[TEXT_NAME];
    int k = 0;
    while (text_choice(modes, k, known, sizeof known) && strcmp(word, known) != 0) k++;
    if (!text_choice(modes, k, known, sizeof known))
        return no_such(e, "precision or kind of kernels", word, modes);
    bool *twice = k < MODE_FUSED ? &given->math : &given->kernels;
    if (*twice)
        return env_fail(e, MNP_EINVAL,
                        "a device has one precision and one kind of kernels; leave '%s' out", word);
    *twice = true;
    if (k < MODE_FUSED)
        out->math = k == MODE_AUTO ? MATH_TF32 : (exec_math)k, out->adapts = k == MODE_AUTO;
    else
        out->general = k == MODE_GENERAL;
    return MNP_OK;
}

static const backend *best_usable(env *e) {
    const backend *cuda = backend_find("cuda");
    if (cuda && (!cuda->usable || cuda->usable(e) == MNP_OK)) return cuda;
    return backend_find("cpu");
}

mnp_status backend_choose(env *e, const char *device, backend_choice *out) {
    MNP_TRY(backend_choose_training(e, device, out));
    if (!out->adapts) return MNP_OK;
    return env_fail(
        e, MNP_EINVAL,
        "device '%.60s': precision auto is for training alone; take fp32, tf32, bf16 or "
        "mixed",
        device);
}

mnp_status backend_choose_training(env *e, const char *device, backend_choice *out) {
    MNP_TRY(backend_read(e, device, out));
    bool chosen = device && strncmp(device, "auto", 4) == 0; /* it works: that was found out */
    if (chosen && strcmp(out->b->name, "cpu") == 0)
        env_log(e, MNP_LOG_INFO, "computing on the CPU: %s", e->error);
    return chosen || !out->b->usable ? MNP_OK : out->b->usable(e);
}

mnp_status backend_read(env *e, const char *device, backend_choice *out) {
    char name[64];
    mode given = {0};
    *out = (backend_choice){0};
    if (!device) device = "cpu";
    snprintf(name, sizeof name, "%s", device);
    char *word = strchr(name, ':');
    while (word) {
        *word++ = '\0';
        char *next = strchr(word, ':');
        if (next) *next = '\0';
        MNP_TRY(read_mode(e, word, &given, out));
        word = next;
    }
    if (strcmp(name, "auto") == 0) {
        out->b = best_usable(e);
        if (!out->b->modes) /* what was asked of a GPU does not hold for the CPU */
            out->math = MATH_FP32, out->general = false;
        return MNP_OK;
    }
    out->b = backend_find(name);
    if (!out->b) return no_such(e, "device", name, names);
    if (!out->b->modes && (out->math != MATH_FP32 || given.kernels))
        return env_fail(
            e, MNP_EINVAL,
            "device '%.60s': %s computes in fp32 by kernels of its own; leave '%.40s' out", device,
            name, strchr(device, ':'));
    return MNP_OK;
}

const char *backend_precision(const backend_choice *c) {
    static const char *const math[] = {"fp32", "tf32", "bf16", "mixed"};
    return c->adapts ? "auto" : math[c->math];
}

mnp_status backend_push(const backend *b, exec *x, exec_io *io) {
    return b->push ? b->push(x, io) : MNP_OK;
}

mnp_status backend_pull(const backend *b, exec *x, exec_io *io) {
    return b->pull ? b->pull(x, io) : MNP_OK;
}

mnp_status backend_check_lengths(env *e, const plan *p, const exec_io *io, int64_t items) {
    const plan_opts *o = &p->opts;
    if (io->samples > o->samples)
        return env_fail(e, MNP_EINVAL, "%lld samples asked of a plan for %lld",
                        (long long)io->samples, (long long)o->samples);
    for (int64_t i = 0; io->n && i < items; i++) {
        int64_t m = io->m ? io->m[i] : 0, k = io->k ? io->k[i] : io->n[i];
        if (io->n[i] < 0 || io->n[i] > o->n || m < 0 || m > o->m || m > k || k > io->n[i])
            return env_fail(e, MNP_EINVAL,
                            "item %lld has %lld points and %lld context points, the plan is for "
                            "%lld and %lld",
                            (long long)i, (long long)io->n[i], (long long)m, (long long)o->n,
                            (long long)o->m);
    }
    return MNP_OK;
}
