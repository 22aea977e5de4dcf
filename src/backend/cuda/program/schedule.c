/* schedule.c: list scheduling, see schedule.h. Of all instructions whose predecessors are done the
 * one with the longest way to the end goes first; if it is small, the next small ones join it, and
 * if it is wide the next of its kind. Long programs are scheduled in stretches, so that the table
 * of dependences stays small. */
#include "backend/cuda/program/schedule.h"

enum { STRETCH = 1024 };

/* ---- dependence ------------------------------------------------------------------------------ */

static bool meet(const span *a, int32_t n, const span *b, int32_t m) {
    for (int32_t i = 0; i < n; i++)
        for (int32_t j = 0; j < m; j++)
            if (a[i].store == b[j].store && a[i].from < b[j].to && b[j].from < a[i].to) return true;
    return false;
}

bool schedule_depends(const task *a, const task *b) {
    return a->fence || b->fence || meet(a->out, a->n_out, b->in, b->n_in) ||
           meet(a->out, a->n_out, b->out, b->n_out) || meet(a->in, a->n_in, b->out, b->n_out);
}

typedef struct stretch {
    const task *tasks;
    int32_t count;
    bool *after;      /* (count, count): [a count + b]: b depends on a   */
    int32_t *waiting; /* predecessors that are not done; -1: done itself */
    int64_t *height;  /* cost of the longest way to the end              */
} stretch;

static void link_tasks(stretch *s) {
    const int32_t n = s->count;
    for (int32_t b = 0; b < n; b++) s->waiting[b] = 0;
    for (int32_t a = n - 1; a >= 0; a--) {
        int64_t longest = 0;
        for (int32_t b = a + 1; b < n; b++) {
            const bool after = schedule_depends(&s->tasks[a], &s->tasks[b]);
            s->after[(size_t)a * (size_t)n + (size_t)b] = after;
            if (!after) continue;
            s->waiting[b]++;
            if (s->height[b] > longest) longest = s->height[b];
        }
        s->height[a] = longest + s->tasks[a].cost;
    }
}

/* ---- order ----------------------------------------------------------------------------------- */

/* The ready task with the longest way to the end, of those that `which` accepts; the first recorded
 * of equals. */
typedef bool accepts(const task *t, int32_t like);
static int32_t most_urgent(const stretch *s, accepts *which, int32_t like) {
    int32_t best = -1;
    for (int32_t k = 0; k < s->count; k++)
        if (s->waiting[k] == 0 && which(&s->tasks[k], like) &&
            (best < 0 || s->height[k] > s->height[best]))
            best = k;
    return best;
}

static bool is_small(const task *t, int32_t like) {
    (void)like;
    return t->small;
}
static bool is_wide_as(const task *t, int32_t like) {
    return t->wide == like;
}

/* The number that most of the ready wide tasks have, as far as a kernel takes them; of equals the
 * most urgent one's. Late ones count if a kernel has its fill of them, or if all do. 0: none. */
static int32_t wide_kind(const stretch *s, bool all) {
    int32_t best = 0, most = 0;
    int64_t height = 0;
    for (int32_t k = 0; k < s->count; k++) {
        const task *t = &s->tasks[k];
        if (s->waiting[k] != 0 || t->wide == 0) continue;
        int32_t count = 0;
        for (int32_t j = 0; j < s->count && count < SCHEDULE_WIDE; j++)
            count += s->waiting[j] == 0 && s->tasks[j].wide == t->wide;
        if (t->late && !all && count < SCHEDULE_WIDE) continue;
        if (count < most || (count == most && s->height[k] <= height)) continue;
        best = t->wide, most = count, height = s->height[k];
    }
    return best;
}

/* What comes next: the functions go on as long as they can, and so do kernels. */
static int32_t next_task(const stretch *s, bool *wide) {
    const int32_t own = most_urgent(s, is_wide_as, 0);
    int32_t kind = wide_kind(s, false);
    if (kind == 0 && own < 0) kind = wide_kind(s, true);
    *wide = kind != 0 && (*wide || own < 0);
    return *wide ? most_urgent(s, is_wide_as, kind) : own;
}

static void finish(stretch *s, int32_t a) {
    const bool *after = s->after + (size_t)a * (size_t)s->count;
    for (int32_t b = a + 1; b < s->count; b++)
        if (after[b]) s->waiting[b]--;
}

static void order_stretch(stretch *s, int32_t first, int32_t *order, int32_t *together) {
    bool wide = false;
    for (int32_t done = 0; done < s->count;) {
        int32_t batch = 0, chosen[SCHEDULE_WIDE];
        int32_t k = next_task(s, &wide);
        while (k >= 0 && batch < (wide ? SCHEDULE_WIDE : SCHEDULE_TOGETHER)) {
            const task *t = &s->tasks[k];
            s->waiting[k] = -1;
            chosen[batch++] = k;
            k = t->wide    ? most_urgent(s, is_wide_as, t->wide)
                : t->small ? most_urgent(s, is_small, 0)
                           : -1;
        }
        for (int32_t j = 0; j < batch; j++) {
            order[done + j] = first + chosen[j];
            together[done + j] = j == 0 ? batch : 0;
            finish(s, chosen[j]);
        }
        done += batch;
    }
}

mnp_status schedule_make(env *e, const task *tasks, int32_t count, int32_t *order,
                         int32_t *together) {
    const size_t most = count < STRETCH ? (size_t)count + 1 : STRETCH;
    stretch s = {.after = env_alloc(e, most * most, sizeof *s.after, "a schedule"),
                 .waiting = env_alloc(e, most, sizeof *s.waiting, "a schedule"),
                 .height = env_alloc(e, most, sizeof *s.height, "a schedule")};
    const bool ok = s.after && s.waiting && s.height;
    for (int32_t at = 0; ok && at < count; at += STRETCH) {
        s.tasks = tasks + at;
        s.count = count - at < STRETCH ? count - at : STRETCH;
        link_tasks(&s);
        order_stretch(&s, at, order + at, together + at);
    }
    env_free(e, s.after);
    env_free(e, s.waiting);
    env_free(e, s.height);
    return ok ? MNP_OK : MNP_ENOMEM;
}
