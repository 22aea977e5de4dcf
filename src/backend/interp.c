/* interp.c: see interp.h. */
#include "backend/interp.h"

#include <math.h>
#include <string.h>

#include "comm/comm.h"
#include "op/update.h"

enum { RANGE_WORDS = 8192 }; /* the unit of parallel work on the weight block */

/* ---- memory ---------------------------------------------------------------------------------- */

static bool plan_trains(const plan *p) {
    for (val v = 0; v < p->n_values; v++)
        if (p->values[v].store == STORE_PGRAD) return true;
    return false;
}

static int64_t range_count(const exec *x) {
    return (x->plan->params->trainable + RANGE_WORDS - 1) / RANGE_WORDS;
}

static mnp_status allocate(exec *x) {
    const plan *p = x->plan;
    size_t workers = (size_t)x->workers;
    x->act_bytes = ((size_t)p->act_words * x->element + 63) / 64 * 64;
    x->act = env_alloc(x->env, workers, x->act_bytes + 64, "the activations");
    x->scratch = env_alloc(x->env, workers, x->scratch_bytes + 64, "the kernels' scratch");
    x->worker_env = env_alloc(x->env, workers, sizeof *x->worker_env, "the workers");
    if (!x->act || !x->scratch || !x->worker_env) return MNP_ENOMEM;
    for (size_t w = 0; w < workers; w++) x->worker_env[w] = *x->env;
    x->has_grad = plan_trains(p);
    x->updates = x->has_grad && p->n_instrs > p->n_function;
    if (!x->has_grad) return MNP_OK;
    x->n_slots = x->opts.slots > 0 ? x->opts.slots : 16;
    x->words = (p->params->trainable + 15) / 16 * 16;
    int ranks = x->updates ? comm_size(x->env) : 1;
    if (ranks > x->n_slots)
        return env_fail(x->env, MNP_EINVAL, "%d ranks share %lld gradient slots: --set slots=%d",
                        ranks, (long long)x->n_slots, ranks);
    comm_span own = comm_part(x->n_slots, 1, ranks > 1 ? comm_rank(x->env) : 0, ranks);
    x->slot_lo = own.lo, x->slot_hi = own.hi;
    int64_t all = x->n_slots + (ranks > 1);
    x->slots = env_alloc(x->env, (size_t)(all * x->words) + 1, x->element, "the gradient slots");
    x->sum = x->slots;
    x->partial = env_alloc(x->env, (size_t)range_count(x) + 1, sizeof(double), "reductions");
    return x->slots && x->partial ? MNP_OK : MNP_ENOMEM;
}

mnp_status interp_compile(env *e, const plan *p, const exec_opts *o, size_t element,
                          size_t scratch_bytes, exec **out) {
    *out = NULL;
    exec *x = env_alloc(e, 1, sizeof *x, "a compiled plan");
    if (!x) return MNP_ENOMEM;
    x->env = e;
    x->plan = p;
    x->opts = *o;
    x->element = element;
    x->scratch_bytes = (scratch_bytes + 63) / 64 * 64;
    x->workers = o->pool ? pool_threads(o->pool) : 1;
    mnp_status status = allocate(x);
    if (status != MNP_OK) {
        interp_destroy(x);
        return status;
    }
    *out = x;
    return MNP_OK;
}

void interp_destroy(exec *x) {
    if (!x) return;
    env *e = x->env;
    env_free(e, x->act);
    env_free(e, x->scratch);
    env_free(e, x->worker_env);
    env_free(e, x->slots);
    env_free(e, x->partial);
    env_free(e, x->notes);
    env_free(e, x->item_scalars);
    env_free(e, x);
}

size_t interp_memory(const exec *x) {
    return (size_t)x->workers * (x->act_bytes + x->scratch_bytes) +
           (size_t)(x->n_slots * x->words) * x->element;
}

const void *interp_gradient(const exec *x) {
    return x->sum;
}

/* ---- functions ------------------------------------------------------------------------------- */

void interp_parallel(exec *x, int64_t tasks, pool_fn fn, void *arg) {
    if (x->opts.pool) {
        pool_run(x->opts.pool, tasks, fn, arg);
        return;
    }
    for (int64_t t = 0; t < tasks; t++) fn(arg, t, 0);
}

static void report_failure(exec *x, mnp_status status, env *from) {
    int none = MNP_OK;
    if (atomic_compare_exchange_strong(&x->status, &none, (int)status) && from != x->env)
        memcpy(x->env->error, from->error, sizeof from->error);
}

static frame make_frame(exec *x, int64_t item, int64_t slot, int worker) {
    exec_io *io = x->io;
    int64_t chunks = io->chunks > 1 ? io->chunks : 1;
    return (frame){.plan = x->plan,
                   .io = io,
                   .item = item,
                   .items = x->items,
                   .function = io->first_function + item / chunks,
                   .n = io->n ? io->n[item] : 0,
                   .k = io->k   ? io->k[item]
                        : io->n ? io->n[item]
                                : 0,
                   .m = io->m ? io->m[item] : 0,
                   .S = io->samples > 0 ? io->samples : 1,
                   .sample0 = item % chunks * io->samples,
                   .element = x->element,
                   .act = x->act + (size_t)worker * (x->act_bytes + 64),
                   .grads = x->slots ? x->slots + (size_t)(slot * x->words) * x->element : NULL,
                   .scratch = x->scratch + (size_t)worker * (x->scratch_bytes + 64),
                   .backend = x->shared,
                   .item_scalars = x->item_scalars};
}

/* After `share` of an item of the calling thread: other workers are about as far with theirs, and
 * go on with them when this thread begins another. */
static mnp_status tell(exec *x, double share, env *e) {
    long long done = atomic_load(&x->done), left = x->items - done;
    double busy = (double)(left < x->workers ? left : x->workers);
    double part = ((double)done + busy * share) / (double)x->items;
    if (part > x->told) x->told = part;
    if (!x->io->tell(x->io->tell_user, x->told)) return MNP_OK;
    return env_fail(e, MNP_ECANCELLED, "the run was cancelled");
}

static void run_item(exec *x, int64_t item, int64_t slot, int worker) {
    frame f = make_frame(x, item, slot, worker);
    env *e = &x->worker_env[worker];
    bool tells = x->io->tell && worker == 0 && !x->has_grad;
    for (int32_t k = 0; k < x->plan->n_function; k++) {
        mnp_status status = x->execute(x, &f, &x->plan->instrs[k], e);
        if (status == MNP_OK && tells) status = tell(x, (k + 1.0) / x->plan->n_function, e);
        if (atomic_load(&x->status) != MNP_OK) return; /* of another worker: the run has failed */
        if (status == MNP_OK) continue;
        report_failure(x, status, e);
        return;
    }
    atomic_fetch_add(&x->done, 1);
}

/* ---- where did it go wrong? ------------------------------------------------------------------ */

static bool all_finite(const frame *f, const value *v) {
    const void *p = frame_at(f, v);
    int64_t rows = frame_rows(f, v) * frame_samples(f, v);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < v->cols; c++) {
            int64_t at = i * v->ld + c;
            double e = f->element == sizeof(double) || v->type == TYPE_F64
                           ? ((const double *)p)[at]
                           : (double)((const float *)p)[at];
            if (!isfinite(e)) return false;
        }
    return true;
}

/* Runs the item again, which changes nothing, and names the first op with a non-finite output. */
static mnp_status name_culprit(exec *x, int64_t item) {
    if (item < 0) return env_fail(x->env, MNP_ENUMERIC, "the gradient of the batch is not finite");
    frame f = make_frame(x, item, 0, 0);
    for (int32_t k = 0; k < x->plan->n_function; k++) {
        const instr *ins = &x->plan->instrs[k];
        MNP_TRY(x->execute(x, &f, ins, x->env));
        for (int j = 0; j < INSTR_OUT; j++) {
            if (ins->out[j] == VAL_NONE) continue;
            const value *v = &x->plan->values[ins->out[j]];
            if (v->store != STORE_ACT || all_finite(&f, v)) continue;
            return env_fail(x->env, MNP_ENUMERIC,
                            "function %lld of the batch (%lld points, %lld of them context): op "
                            "'%s' gave a NaN or an infinity in '%s' (instruction %d)",
                            (long long)item, (long long)f.n, (long long)f.m, op_name(ins->op),
                            v->name, k);
        }
    }
    return env_fail(x->env, MNP_ENUMERIC, "the loss of function %lld of the batch is not finite",
                    (long long)item);
}

int64_t interp_first_item(const exec *x, int64_t slot) {
    return (slot * x->items + x->n_slots - 1) / x->n_slots;
}

/* A task is a slot of this rank when gradients are collected, otherwise a single item. */
static void run_slot(void *arg, int64_t task, int worker) {
    exec *x = arg;
    int64_t slot = x->slot_lo + task;
    memset(x->slots + (size_t)(slot * x->words) * x->element, 0, (size_t)x->words * x->element);
    int64_t lo = interp_first_item(x, slot), hi = interp_first_item(x, slot + 1);
    for (int64_t i = lo; i < hi && atomic_load(&x->status) == MNP_OK; i++)
        run_item(x, i, slot, worker);
}

static void run_one(void *arg, int64_t item, int worker) {
    exec *x = arg;
    if (atomic_load(&x->status) == MNP_OK) run_item(x, item, 0, worker);
}

/* ---- the step -------------------------------------------------------------------------------- */

typedef struct step_task {
    exec *x;
    const instr *ins;
    step_view view;
} step_task;

static step_view make_view(exec *x) {
    return (step_view){.plan = x->plan,
                       .io = x->io,
                       .element = x->element,
                       .items = x->items,
                       .n_slots = interp_spread(x) ? 1 : x->n_slots, /* else summed already */
                       .slots = x->sum,
                       .words = x->words,
                       .lo = 0,
                       .hi = x->plan->params->trainable,
                       .partial = x->partial,
                       .n_ranges = range_count(x),
                       .item_scalars = x->item_scalars};
}

static void run_range(void *arg, int64_t range, int worker) {
    (void)worker;
    const step_task *t = arg;
    step_view v = t->view;
    v.range = range;
    v.lo = range * RANGE_WORDS;
    if (v.lo + RANGE_WORDS < v.hi) v.hi = v.lo + RANGE_WORDS;
    t->x->step(t->x, &v, t->ins);
}

static void run_step_part(exec *x) {
    for (int32_t k = x->plan->n_function; k < x->plan->n_instrs; k++) {
        step_task t = {x, &x->plan->instrs[k], make_view(x)};
        if (op_at(t.ins->op)->phase == PHASE_BLOCK)
            interp_parallel(x, t.view.n_ranges, run_range, &t);
        else
            x->step(x, &t.view, t.ins);
    }
}

static mnp_status ensure_items(exec *x, int64_t items) {
    if (items <= x->item_cap) return MNP_OK;
    double *fresh = env_grow(x->env, x->item_scalars, (size_t)x->item_cap * 3, (size_t)items * 3,
                             sizeof *fresh, "the batch's scores");
    if (!fresh) return MNP_ENOMEM;
    x->item_scalars = fresh;
    x->item_cap = items;
    return MNP_OK;
}

mnp_status interp_run(exec *x, exec_io *io, int64_t items, int64_t steps) {
    MNP_TRY(ensure_items(x, items));
    MNP_TRY(backend_check_lengths(x->env, x->plan, io, items));
    x->io = io;
    x->items = items;
    atomic_store(&x->status, MNP_OK);
    for (int64_t s = 0; s < steps; s++) {
        atomic_store(&x->done, 0);
        x->told = 0;
        if (x->prepare) x->prepare(x);
        bool stop = false;
        interp_parallel(x, x->has_grad ? x->slot_hi - x->slot_lo : items,
                        x->has_grad ? run_slot : run_one, x);
        MNP_TRY((mnp_status)atomic_load(&x->status));
        if (interp_spread(x)) MNP_TRY(interp_exchange(x, &stop));
        run_step_part(x);
        if (x->updates && !update_ok(io->step)) return name_culprit(x, io->step->bad_item);
        if (stop) return env_fail(x->env, MNP_ECANCELLED, "the ranks were asked to stop");
    }
    return MNP_OK;
}
