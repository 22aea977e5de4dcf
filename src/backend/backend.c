/* backend.c: the list of backends. */
#include "backend/backend.h"

#include <stdio.h>
#include <string.h>

#define BACKEND(name) extern const backend backend_##name;
#include "backend/backends.def"
#undef BACKEND

const backend *backend_find(const char *name) {
    static const backend *const table[] = {
#define BACKEND(name) &backend_##name,
#include "backend/backends.def"
#undef BACKEND
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!name || strcmp(table[i]->name, name) == 0) return table[i];
    return NULL;
}

static mnp_status read_math(env *e, const char *text, exec_opts *o) {
    static const char *const names[] = {"fp32", "tf32", "bf16"};
    for (int k = 0; k < 3; k++)
        if (strcmp(text, names[k]) == 0) {
            o->math = (exec_math)k;
            return MNP_OK;
        }
    return env_fail(e, MNP_EINVAL, "there is no precision '%s': fp32, tf32 or bf16", text);
}

mnp_status backend_choose(env *e, const char *device, const backend **out, exec_opts *o) {
    char name[64];
    *out = NULL;
    snprintf(name, sizeof name, "%s", device ? device : "cpu");
    char *colon = strchr(name, ':');
    if (colon) {
        *colon = '\0';
        MNP_TRY(read_math(e, colon + 1, o));
    }
    if (strcmp(name, "auto") == 0) {
        const backend *best = backend_find("cuda");
        *out = best && (!best->usable || best->usable(e) == MNP_OK) ? best : backend_find("cpu");
        if (*out != best) env_log(e, MNP_LOG_INFO, "computing on the CPU: %s", e->error);
        return MNP_OK;
    }
    *out = backend_find(name);
    if (!*out)
        return env_fail(e, MNP_EUNSUPPORTED, "there is no device '%s': cpu, cuda or auto", name);
    return (*out)->usable ? (*out)->usable(e) : MNP_OK;
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
