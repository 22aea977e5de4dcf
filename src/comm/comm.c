/* comm.c: joining and leaving a job, signs of life, and the wait that all exchanges share. See
 * comm.h. */
#include "comm/comm.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/object.h"
#include "comm/comm_internal.h"

enum { END_PATIENCE = 30 }; /* the last rank may have much to write: times the usual limit */
enum { TELL_SECONDS = 2, LEAVE_SECONDS = 60, SPEAK_SECONDS = 2 };
static const double cancel_grace = 0.4;  /* for ranks that stop too: a launcher kills after 1 s */
static const double look_every = 1e-3;   /* at signals while waiting                         */
static const double patience = 2e-3;     /* of a busy wait before it sleeps between questions */
static const double stopped_clock = 2.0; /* this process itself did not run: no rank is to blame */

/* seconds, monotonic */
static double comm_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

int comm_job_rank(const env *e) {
    return e->comm ? e->comm->info.rank : 0;
}

int comm_job_size(const env *e) {
    return e->comm ? e->comm->info.size : 1;
}

int comm_rank(const env *e) {
    return e->comm && e->comm->suspended ? 0 : comm_job_rank(e);
}

int comm_size(const env *e) {
    return e->comm && e->comm->suspended ? 1 : comm_job_size(e);
}

void comm_suspend(env *e, bool on) {
    if (e->comm) e->comm->suspended = on;
}

int comm_local(const env *e) {
    return e->comm ? e->comm->info.local : 0;
}

bool comm_fast(const env *e) {
    return e->comm && e->comm->fast;
}

comm_span comm_part(int64_t total, int64_t unit, int rank, int size) {
    int64_t units = (total + unit - 1) / unit, lo = units * rank / size * unit,
            hi = units * (rank + 1) / size * unit;
    return (comm_span){lo < total ? lo : total, hi < total ? hi : total};
}

comm_span comm_split(const env *e, int64_t total, int64_t unit) {
    return comm_part(total, unit, comm_rank(e), comm_size(e));
}

/* ---- failing --------------------------------------------------------------------------------- */

static mnp_status fail(env *e, mnp_status status, const char *text) {
    comm *c = e->comm;
    c->failed = true;
    snprintf(c->why, sizeof c->why, "%s", text);
    return env_fail(e, status, "%s", text);
}

static mnp_status check(env *e, int error, int rank, const char *what) {
    if (!error) return MNP_OK;
    char text[256], all[512];
    e->comm->t->error_text(error, text, sizeof text);
    snprintf(all, sizeof all, "rank %d cannot be reached (%s): %s", rank, what, text);
    e->comm->lost = rank;
    return fail(e, MNP_EPEER, all);
}

/* ---- signals --------------------------------------------------------------------------------- */

static void listen_to(comm *c, int rank) {
    peer *p = &c->peers[rank];
    if (c->t->recv(c->link, &p->in, sizeof p->in, rank, TAG_SIGNAL, &p->receiving))
        p->receiving = NULL;
}

static void hear(comm *c, int rank) {
    peer *p = &c->peers[rank];
    while (p->receiving && !c->t->test(c->link, &p->receiving) && !p->receiving) {
        p->heard = comm_now();
        if (p->in.kind == SIGNAL_FAIL) { /* its last word */
            p->left = true;
            return;
        }
        listen_to(c, rank);
    }
}

static void hear_all(comm *c) {
    for (int r = 0; r < c->info.size; r++)
        if (r != c->info.rank) hear(c, r);
    c->looked = comm_now();
}

/* False: the last signal to that rank is still on its way. */
static bool say(comm *c, int rank, int kind, const char *text) {
    peer *p = &c->peers[rank];
    if (p->sending && (c->t->test(c->link, &p->sending) || p->sending)) return false;
    p->out = (signal_message){.kind = kind, .lost = c->lost, .stopped = c->stopped};
    snprintf(p->out.text, sizeof p->out.text, "%s", text);
    return c->t->send(c->link, &p->out, sizeof p->out, rank, TAG_SIGNAL, &p->sending) == 0;
}

/* Seconds between signs of life. */
static double pulse(const comm *c) {
    return c->timeout < 5 ? c->timeout / 5 : 1;
}

static void beat(comm *c, double every) {
    if (comm_now() - c->beaten < every) return;
    c->beaten = comm_now();
    for (int r = 0; r < c->info.size; r++)
        if (r != c->info.rank) say(c, r, SIGNAL_BEAT, "");
}

void comm_heartbeat(env *e) {
    comm *c = e->comm;
    if (!c || c->info.size < 2 || c->failed || comm_now() - c->beaten < pulse(c)) return;
    hear_all(c);
    beat(c, pulse(c));
}

/* ---- waiting --------------------------------------------------------------------------------- */

waiting comm_waiting(const char *what) {
    double now = comm_now();
    return (waiting){what, now, 0, now};
}

mnp_status comm_done(env *e, waiting *w, pending *p, bool *done) {
    comm *c = e->comm;
    *done = !p->request;
    if (*done) return MNP_OK;
    MNP_TRY(check(e, c->t->test(c->link, &p->request), p->rank, w->what));
    *done = !p->request;
    if (*done) w->moved = c->peers[p->rank].heard = comm_now();
    return MNP_OK;
}

static mnp_status peer_failed(env *e) {
    comm *c = e->comm;
    for (int r = 0; r < c->info.size; r++) {
        const peer *p = &c->peers[r];
        if (!p->left) continue;
        char text[ENV_ERROR_MAX];
        if (p->in.lost >= 0 && p->in.lost != c->info.rank) { /* it was quicker to find out */
            c->lost = p->in.lost;
            c->stopped = p->in.stopped;
            snprintf(text, sizeof text, "rank %d has been silent for too long, says rank %d",
                     c->lost, r);
            return fail(e, c->stopped ? MNP_ECANCELLED : MNP_EPEER, text);
        }
        snprintf(text, sizeof text, "rank %d failed: %s", r, p->in.text);
        c->told = true;
        return fail(e, MNP_EPEER, text);
    }
    return MNP_OK;
}

static double silence(const comm *c, const waiting *w, int rank, double now) {
    double heard = c->peers[rank].heard;
    return now - (heard > w->since ? heard : w->since);
}

/* Whoever waits sends signs of life, and so does whoever works for long: silence is a rank's own.
 */
static mnp_status find_silent(env *e, const waiting *w, double now) {
    comm *c = e->comm;
    for (int r = 0; r < c->info.size; r++) {
        double silent = r == c->info.rank ? 0 : silence(c, w, r, now);
        if (silent <= c->timeout) continue;
        char text[512];
        snprintf(
            text, sizeof text,
            "rank %d has been silent for %.0f s (%s): it hangs, or its host or network is gone", r,
            silent, w->what);
        c->lost = r;
        return fail(e, MNP_EPEER, text);
    }
    return MNP_OK;
}

/* The launcher stops all ranks when one is dead: who is there shows it within the grace. */
static mnp_status give_up(env *e, const waiting *w, double now) {
    comm *c = e->comm;
    char text[512];
    int used = snprintf(text, sizeof text, "stopped while waiting (%s)", w->what), missing = 0;
    for (int r = c->info.size - 1; r >= 0; r--) {
        if (r == c->info.rank || silence(c, w, r, now) < 0.7 * cancel_grace) continue;
        c->lost = r;
        missing++;
        if (used > 0 && (size_t)used < sizeof text - 32)
            used += snprintf(text + used, 32, "%s%d", missing > 1 ? "," : "; no sign of rank ", r);
    }
    if (missing == 0 && now - w->cancelled < 10 * cancel_grace) return MNP_OK;
    c->stopped = true;
    return fail(e, MNP_ECANCELLED, text);
}

/* One look at the world: has somebody failed, are we to stop, is somebody silent too long? */
static mnp_status look(env *e, waiting *w) {
    comm *c = e->comm;
    double now = comm_now();
    if (now - c->looked > stopped_clock && c->looked > w->since) w->since = now;
    hear_all(c);
    MNP_TRY(peer_failed(e));
    if (w->cancelled == 0 && env_cancelled(e)) w->cancelled = now;
    beat(c, w->cancelled > 0 ? cancel_grace / 8 : pulse(c));
    if (w->cancelled > 0 && now - w->cancelled > cancel_grace) return give_up(e, w, now);
    return find_silent(e, w, now);
}

mnp_status comm_idle(env *e, waiting *w) {
    double now = comm_now();
    if (now - e->comm->looked > look_every) MNP_TRY(look(e, w));
    if (now - w->moved < patience)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    return MNP_OK;
}

mnp_status comm_send(env *e, const void *from, size_t bytes, int rank, int tag, pending *p) {
    p->rank = rank;
    return check(e, e->comm->t->send(e->comm->link, from, bytes, rank, tag, &p->request), rank,
                 "sending");
}

mnp_status comm_recv(env *e, void *to, size_t bytes, int rank, int tag, pending *p) {
    p->rank = rank;
    return check(e, e->comm->t->recv(e->comm->link, to, bytes, rank, tag, &p->request), rank,
                 "receiving");
}

void comm_drop(env *e, pending *p, int count) {
    for (int k = 0; k < count; k++)
        if (p[k].request) e->comm->t->drop(e->comm->link, &p[k].request);
}

mnp_status comm_finish(env *e, pending *p, int count, const char *what) {
    waiting w = comm_waiting(what);
    int first = 0; /* all before it are done */
    mnp_status status = MNP_OK;
    while (status == MNP_OK && first < count) {
        bool done = true;
        for (int k = first; k < count && status == MNP_OK; k++) {
            bool one;
            status = comm_done(e, &w, &p[k], &one);
            done = done && one;
            if (done) first = k + 1;
        }
        if (status == MNP_OK && !done) status = comm_idle(e, &w);
    }
    if (status != MNP_OK) comm_drop(e, p, count);
    return status;
}

mnp_status comm_wait(env *e, bool (*done)(void *arg), void *arg, const char *what) {
    waiting w = comm_waiting(what);
    while (!done(arg)) {
        if (comm_size(e) > 1)
            MNP_TRY(comm_idle(e, &w));
        else
            sched_yield();
    }
    return MNP_OK;
}

/* ---- joining --------------------------------------------------------------------------------- */

static void free_job(comm *c) {
    env memory = c->memory;
    env_free(&memory, c->peers);
    env_free(&memory, c->work);
    env_free(&memory, c->at);
    env_free(&memory, c->cells);
    env_free(&memory, c);
}

mnp_status comm_open_over(env *e, const transport *t, const comm_opts *o) {
    comm *c = env_alloc(e, 1, sizeof *c, "a job");
    if (!c) return MNP_ENOMEM;
    *c = (comm){.memory = *e, .t = t, .fast = o->fast, .lost = -1};
    c->timeout = o->timeout > 0 ? o->timeout : COMM_TIMEOUT;
    int error = t->open(&c->link, &c->info);
    if (error) {
        char text[256];
        t->error_text(error, text, sizeof text);
        env_free(e, c);
        return env_fail(e, MNP_EUNSUPPORTED, "MPI does not start: %s", text);
    }
    if (c->info.size > COMM_RANKS_MAX) { /* all ranks see it and leave together */
        int ranks = c->info.size;
        t->close(c->link, 1);
        env_free(e, c);
        return env_fail(e, MNP_EUNSUPPORTED, "a job of %d ranks; %d is the most", ranks,
                        COMM_RANKS_MAX);
    }
    size_t size = (size_t)c->info.size;
    c->peers = env_alloc(e, size, sizeof *c->peers, "a job's ranks");
    c->work = env_alloc(e, 2 * size, sizeof *c->work, "a job's ranks");
    c->at = env_alloc(e, size + 1, sizeof *c->at, "a job's ranks");
    c->cells = env_alloc(e, size, COMM_CELL, "a job's ranks");
    if (!c->peers || !c->work || !c->at || !c->cells) {
        t->abort(c->link, 1);
        free_job(c);
        return MNP_ENOMEM;
    }
    e->comm = c;
    for (int r = 0; r < c->info.size; r++) {
        c->peers[r].heard = comm_now();
        if (r != c->info.rank) listen_to(c, r);
    }
    return MNP_OK;
}

mnp_status comm_open(env *e, const comm_opts *o) {
    object_fn found;
    static const char remedy[] =
        "it is built where an MPI with its headers is installed (openmpi-bin, libopenmpi-dev)";
    MNP_TRY(object_load(e, "libmnp_mpi.so", TRANSPORT_SYMBOL, remedy, &found));
    const transport *t = ((transport_entry)found)();
    if (!t || t->version != TRANSPORT_VERSION)
        return env_fail(e, MNP_EUNSUPPORTED, "libmnp_mpi.so belongs to another version");
    return comm_open_over(e, t, o);
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* Until every rank below `end`, but the lost one and this, has said its last word. */
static bool wait_for_leavers(comm *c, int end, double seconds) {
    for (double start = comm_now();;) {
        hear_all(c);
        int missing = 0;
        for (int r = 0; r < end; r++)
            missing += r != c->info.rank && r != c->lost && !c->peers[r].left;
        if (!missing) return true;
        if (comm_now() - start > seconds) return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

bool comm_abort(env *e, const char *why) {
    comm *c = e->comm;
    if (!c || c->info.size < 2) return true;
    bool own = !c->told; /* not only the echo of another rank's failure */
    c->failed = true;
    for (int r = 0; r < c->info.size; r++) {
        if (r == c->info.rank) continue;
        double start = comm_now();
        while (!say(c, r, SIGNAL_FAIL, why) && r != c->lost && comm_now() - start < 1) hear(c, r);
    }
    c->told = true;
    c->silent = c->lost >= 0 && c->info.rank != (c->lost == 0 ? 1 : 0);
    if (c->lost >= 0) return !c->silent;
    if (!own) return false;
    wait_for_leavers(c, c->info.rank, TELL_SECONDS);
    for (int r = 0; r < c->info.rank; r++)
        if (c->peers[r].left && strcmp(c->peers[r].in.text, c->peers[r].out.text) == 0)
            return false;
    return true;
}

void comm_close(env *e) {
    comm *c = e->comm;
    if (!c) return;
    c->suspended = false;
    c->timeout *= END_PATIENCE;
    if (!c->failed) comm_barrier(e, "the end");
    if (c->failed && c->info.size > 1) {
        if (!c->told) comm_abort(e, c->why);
        bool all = wait_for_leavers(c, c->info.size, c->stopped ? cancel_grace : LEAVE_SECONDS);
        bool forced = !c->stopped && (!all || c->lost >= 0);
        /* the speaker's words must be through the launcher's pipe before all is ended */
        struct timespec wait = {.tv_sec = c->silent ? SPEAK_SECONDS : 0, .tv_nsec = 500000000};
        if (forced) nanosleep(&wait, NULL);
        if (forced) c->t->abort(c->link, 1);
    }
    for (int r = 0; c->peers && r < c->info.size; r++) {
        if (c->peers[r].receiving) c->t->drop(c->link, &c->peers[r].receiving);
        if (c->peers[r].sending) c->t->drop(c->link, &c->peers[r].sending);
    }
    c->t->close(c->link, !c->stopped);
    e->comm = NULL;
    free_job(c);
}
