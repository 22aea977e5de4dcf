/* test_comm.c: jobs of several ranks, here threads with mailboxes between them: exchanges, the sum
 * in order, differences between ranks, a rank that fails, one that never comes, one told to stop.
 */
#include "comm/comm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "check.h"

enum { RANKS_MAX = 8, TAGS = 8 };

/* ---- a transport between threads ------------------------------------------------------------- */

typedef struct letter {
    struct letter *next;
    size_t bytes;
    char data[];
} letter;

typedef struct post_office {
    pthread_mutex_t lock;
    letter *box[RANKS_MAX][RANKS_MAX][TAGS]; /* from, to, tag: the oldest first */
    int size;
    atomic_int aborts;
} post_office;

typedef struct counter {
    post_office *office;
    int rank;
} counter;

/* open() has no argument: a thread leaves word here. */
static _Thread_local counter *arriving;

typedef struct request {
    void *to; /* NULL: a send, or a sum that is done */
    size_t bytes;
    int rank, tag;
} request;

static int open_counter(void **link, transport_info *info) {
    *link = arriving;
    *info = (transport_info){.rank = arriving->rank, .size = arriving->office->size};
    snprintf(info->host, sizeof info->host, "host%d", arriving->rank);
    return 0;
}

static void close_counter(void *link, int all) {
    (void)link, (void)all;
}

static void abort_all(void *link, int status) {
    (void)status;
    atomic_fetch_add(&((counter *)link)->office->aborts, 1);
}

static int send_letter(void *link, const void *from, size_t bytes, int rank, int tag, void **out) {
    counter *c = link;
    letter *l = calloc(1, sizeof *l + bytes);
    request *q = calloc(1, sizeof *q);
    if (!l || !q) abort();
    l->bytes = bytes;
    memcpy(l->data, from, bytes);
    pthread_mutex_lock(&c->office->lock);
    letter **end = &c->office->box[c->rank][rank][tag];
    while (*end) end = &(*end)->next;
    *end = l;
    pthread_mutex_unlock(&c->office->lock);
    *out = q;
    return 0;
}

static int await_letter(void *link, void *to, size_t bytes, int rank, int tag, void **out) {
    (void)link;
    request *q = calloc(1, sizeof *q);
    if (!q) abort();
    *q = (request){to, bytes, rank, tag};
    *out = q;
    return 0;
}

static int test_letter(void *link, void **at) {
    counter *c = link;
    request *q = *at;
    if (q->to) {
        pthread_mutex_lock(&c->office->lock);
        letter **first = &c->office->box[q->rank][c->rank][q->tag], *l = *first;
        if (l) *first = l->next;
        pthread_mutex_unlock(&c->office->lock);
        if (!l) return 0;
        if (l->bytes == q->bytes) memcpy(q->to, l->data, l->bytes);
        free(l);
    }
    free(q);
    *at = NULL;
    return 0;
}

static void drop_letter(void *link, void **at) {
    (void)link;
    free(*at);
    *at = NULL;
}

static int no_sum(void *link, float *data, size_t count, void **out) {
    (void)link, (void)data, (void)count, (void)out;
    return 1;
}

static void error_text(int error, char *out, size_t size) {
    snprintf(out, size, "error %d", error);
}

static const transport mail = {TRANSPORT_VERSION, open_counter, close_counter, abort_all,
                               send_letter,       await_letter, no_sum,        test_letter,
                               drop_letter,       error_text};

/* ---- jobs ------------------------------------------------------------------------------------ */

typedef struct member {
    env e;
    counter c;
    comm_opts opts;
    void (*play)(struct member *m);
    mnp_status status;
    bool ok, speaks;
    pthread_t thread;
} member;

static void *live(void *arg) {
    member *m = arg;
    arriving = &m->c;
    m->ok = comm_open_over(&m->e, &mail, &m->opts) == MNP_OK;
    if (m->ok) m->play(m);
    comm_close(&m->e);
    return NULL;
}

static member crew[RANKS_MAX];
static post_office office;

/* Threads count no checks: they leave their results in crew[]. */
static void job(int size, double timeout, bool (*cancel)(void *), void (*play)(member *m)) {
    memset(&office, 0, sizeof office);
    pthread_mutex_init(&office.lock, NULL);
    office.size = size;
    for (int r = 0; r < size; r++) {
        crew[r] = (member){.c = {&office, r}, .opts = {.timeout = timeout}, .play = play};
        env_init(&crew[r].e);
        crew[r].e.cancel = cancel;
        CHECK(pthread_create(&crew[r].thread, NULL, live, &crew[r]) == 0);
    }
    for (int r = 0; r < size; r++) pthread_join(crew[r].thread, NULL);
    for (int a = 0; a < size; a++)
        for (int b = 0; b < size; b++)
            for (int t = 0; t < TAGS; t++)
                for (letter *l = office.box[a][b][t], *next; l; l = next) {
                    next = l->next;
                    free(l);
                }
    pthread_mutex_destroy(&office.lock);
}

static int count_speakers(int size) {
    int n = 0;
    for (int r = 0; r < size; r++) n += crew[r].speaks;
    return n;
}

/* ---- exchanges ------------------------------------------------------------------------------- */

static void parts(void) {
    for (int size = 1; size <= RANKS_MAX; size++)
        for (int64_t total = 0; total < 40; total++)
            for (int64_t unit = 1; unit < 5; unit++) {
                int64_t at = 0;
                for (int r = 0; r < size; r++) {
                    comm_span s = comm_part(total, unit, r, size);
                    CHECK(s.lo == at && s.hi >= s.lo && (s.lo % unit == 0 || s.lo == total));
                    at = s.hi;
                }
                CHECK(at == total);
            }
}

static void no_job(void) {
    env e;
    env_init(&e);
    int64_t number = 5;
    CHECK(comm_rank(&e) == 0 && comm_size(&e) == 1);
    CHECK(comm_broadcast(&e, &number, sizeof number, "x") == MNP_OK && number == 5);
    CHECK(comm_barrier(&e, "x") == MNP_OK && comm_same(&e, "x", "y") == MNP_OK);
    CHECK(comm_abort(&e, "why")); /* who is alone tells the user himself */
    comm_heartbeat(&e);
    comm_close(&e);
}

static void too_many_ranks(void) {
    env e;
    env_init(&e);
    post_office large = {.size = COMM_RANKS_MAX + 1};
    counter c = {&large, 0};
    arriving = &c;
    CHECK(comm_open_over(&e, &mail, &(comm_opts){0}) == MNP_EUNSUPPORTED && !e.comm);
    CHECK(strstr(e.error, "1025 ranks") != NULL);
}

enum { THINGS = 23 };

static void play_exchange(member *m) {
    env *e = &m->e;
    int64_t all[THINGS] = {0}, number = 7 + comm_rank(e);
    comm_span own = comm_split(e, THINGS, 2);
    for (int64_t i = own.lo; i < own.hi; i++) all[i] = i * i + 1;
    m->ok = comm_gather_parts(e, all, THINGS, 2, sizeof *all, "squares") == MNP_OK;
    for (int64_t i = 0; i < THINGS; i++) m->ok = m->ok && all[i] == i * i + 1;
    m->ok = m->ok && comm_broadcast(e, &number, sizeof number, "a number") == MNP_OK && number == 7;
    bool every = true;
    m->ok = m->ok && comm_all(e, comm_rank(e) != 1, &every, "a question") == MNP_OK;
    m->ok = m->ok && every == (comm_size(e) == 1);
    comm_heartbeat(e);
    m->ok = m->ok && comm_same(e, "thing", "the same") == MNP_OK;
    comm_suspend(e, true);
    m->ok = m->ok && comm_size(e) == 1 && comm_job_size(e) == office.size &&
            comm_barrier(e, "alone") == MNP_OK;
    comm_suspend(e, false);
}

static void exchange(void) {
    for (int size = 1; size <= 5; size++) {
        job(size, 60, NULL, play_exchange);
        for (int r = 0; r < size; r++) CHECK(crew[r].ok);
        CHECK(atomic_load(&office.aborts) == 0);
    }
}

/* ---- the sum in order ------------------------------------------------------------------------ */

enum { SLOTS = 8, WORDS = 1000 };

static float term(int slot, int64_t i) {
    return (float)sin(1.0 + slot * 1.7 + (double)i) * (slot % 3 ? 1.0f : 1e4f);
}

typedef struct own_slots {
    float *prefix;
    int lo, hi;
} own_slots;

static void fold(void *arg, int64_t lo, int64_t hi) {
    const own_slots *o = arg;
    for (int64_t i = lo; i < hi; i++) {
        float sum = o->lo == 0 ? term(0, i) : o->prefix[i];
        for (int s = o->lo == 0 ? 1 : o->lo; s < o->hi; s++) sum += term(s, i);
        o->prefix[i] = sum;
    }
}

static void play_sum(member *m) {
    float prefix[WORDS] = {0}, total[WORDS] = {0}, *sum = NULL;
    comm_span own = comm_split(&m->e, SLOTS, 1);
    own_slots o = {prefix, (int)own.lo, (int)own.hi};
    comm_ring ring = {WORDS, prefix, total, fold, &o};
    m->ok = true;
    for (int again = 0; again < 3; again++) {
        m->ok = m->ok && comm_sum_ordered(&m->e, &ring, &sum) == MNP_OK;
        for (int64_t i = 0; m->ok && i < WORDS; i++) {
            float want = term(0, i);
            for (int s = 1; s < SLOTS; s++) want += term(s, i);
            m->ok = memcmp(&want, &sum[i], sizeof want) == 0;
        }
    }
}

static void ordered_sum(void) {
    for (int size = 1; size <= RANKS_MAX; size++) {
        job(size, 60, NULL, play_sum);
        for (int r = 0; r < size; r++) CHECK(crew[r].ok);
    }
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

static void play_differ(member *m) {
    m->status = comm_same(&m->e, "seed", comm_rank(&m->e) == 2 ? "8" : "7");
    m->speaks = comm_abort(&m->e, m->e.error);
}

static void differences(void) {
    job(4, 60, NULL, play_differ);
    for (int r = 0; r < 4; r++) {
        /* a slow rank may hear of it from one that has told already */
        CHECK(crew[r].status == MNP_EINVAL || crew[r].status == MNP_EPEER);
        CHECK(strstr(crew[r].e.error, "rank 2 on host2 has another seed than rank 0") != NULL);
    }
    CHECK(crew[0].speaks && count_speakers(4) == 1);
    CHECK(atomic_load(&office.aborts) == 0); /* all leave in good order */
}

static void play_failure(member *m) {
    if (comm_rank(&m->e) == 1) {
        m->speaks = comm_abort(&m->e, "the disk is full");
        return;
    }
    m->status = comm_barrier(&m->e, "a step");
    m->speaks = comm_abort(&m->e, m->e.error);
}

static void failure(void) {
    job(3, 60, NULL, play_failure);
    CHECK(crew[0].status == MNP_EPEER && crew[2].status == MNP_EPEER);
    CHECK(strstr(crew[0].e.error, "rank 1 failed: the disk is full") != NULL);
    CHECK(crew[1].speaks && count_speakers(3) == 1);
    CHECK(atomic_load(&office.aborts) == 0);
}

static atomic_int over;

static void play_silence(member *m) {
    if (comm_rank(&m->e) == 1) { /* never comes; ends when the others are done */
        while (atomic_load(&over) < 2) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        m->status = comm_barrier(&m->e, "too late");
        return;
    }
    m->status = comm_barrier(&m->e, "a step");
    m->speaks = comm_abort(&m->e, m->e.error);
    atomic_fetch_add(&over, 1);
}

static void silence(void) {
    atomic_store(&over, 0);
    job(3, 1, NULL, play_silence);
    CHECK(crew[0].status == MNP_EPEER && crew[2].status == MNP_EPEER);
    CHECK(strstr(crew[0].e.error, "rank 1") != NULL);
    CHECK(strstr(crew[2].e.error, "rank 1") != NULL);
    CHECK(crew[0].speaks && count_speakers(3) == 1);
    CHECK(atomic_load(&office.aborts) > 0); /* the silent one is ended by force */
}

static bool always(void *user) {
    (void)user;
    return true;
}

/* The launcher stops all when one is dead: those who wait end, and say who is missing. */
static void stopped(void) {
    atomic_store(&over, 0);
    job(3, 60, always, play_silence);
    CHECK(crew[0].status == MNP_ECANCELLED && crew[2].status == MNP_ECANCELLED);
    CHECK(strstr(crew[0].e.error, "rank 1") != NULL);
    CHECK(count_speakers(3) == 1);
}

int main(void) {
    RUN(parts);
    RUN(no_job);
    RUN(too_many_ranks);
    RUN(exchange);
    RUN(ordered_sum);
    RUN(differences);
    RUN(failure);
    RUN(silence);
    RUN(stopped);
    return check_done();
}
