/* test_bandit_log.c: logs of decisions: what is read and what is refused, and that a replay is an
 * unbiased sample of an agent's own history, uniform log or not. */
#include "bandit/replay.h"

#include <pthread.h>
#include <stdatomic.h>

#include "check.h"
#include "data/dataset.h"

static env e;
static char path[512];

static const char *write_log(const char *text) {
    const char *dir = getenv("TEST_TMP");
    snprintf(path, sizeof path, "%s/log.csv", dir ? dir : "/tmp");
    CHECK(fsio_write(&e, path, text, strlen(text)) == MNP_OK);
    return path;
}

static const char good[] = "shop,age,action,reward,propensity\n"
                           "a,30,no,1.5,0.5\n"
                           "a,40,10,2,0.25\n"
                           "b,50,9,-1,0.25\n";

static void reads_a_log(void) {
    decision_log *l;
    log_source s = {0};
    CHECK(log_read(&e, write_log(good), &s, &l) == MNP_OK);
    if (!l) return;
    CHECK(l->n == 3 && l->dims == 1 && l->actions.count == 3 && l->propensity);
    STREQ(l->actions.name[0], "9"); /* numbers by value, then words */
    STREQ(l->actions.name[1], "10");
    STREQ(l->actions.name[2], "no");
    CHECK(l->action[0] == 2 && l->action[1] == 1 && l->action[2] == 0);
    NEAR(l->x[1], 40, 0, 0);
    NEAR(l->mean, 2.5 / 3, 1e-15, 0);
    log_destroy(l);
}

static void a_model_fixes_the_order(void) {
    decision_log *l;
    log_source s = {.inputs = "age,action=no,action=10,action=more,action=9"};
    CHECK(log_read(&e, write_log(good), &s, &l) == MNP_OK);
    if (!l) return;
    CHECK(l->actions.count == 4 && l->dims == 1);
    CHECK(l->action[0] == 0 && l->action[1] == 1 && l->action[2] == 3);
    log_destroy(l);
}

static void refuses(const char *text, const log_source *s, const char *want) {
    decision_log *l = NULL;
    CASE(want);
    CHECK(log_read(&e, write_log(text), s, &l) != MNP_OK && !l);
    if (!strstr(e.error, want)) fprintf(stderr, "the message is: %s\n", e.error);
    CHECK(strstr(e.error, want) != NULL);
}

static void bad_logs(void) {
    log_source s = {0}, model = {.inputs = "x,action=a,action=b"}, named = {.reward = "money"};
    log_source context = {.context = "y"};
#define HEAD "x,action,reward\n1,a,1\n2,b,1\n"
    refuses(HEAD "3,a,nan\n", &s, "log.csv:4: the reward \"nan\"");
    refuses(HEAD "3,a,inf\n", &s, "log.csv:4: the reward \"inf\"");
    refuses(HEAD "3,a,1e999\n", &s, "not a finite number (correct it or drop the row)");
    refuses(HEAD "3,a,1e300\n", &s, "not a finite number of single precision (correct it");
    refuses(HEAD "1e39,a,1\n", &s, "not a finite number of single precision (correct it");
    refuses(HEAD "3,a,\n", &s, "log.csv:4: the reward \"\"");
    refuses(HEAD "3,,1\n", &s, "log.csv:4: column \"action\" has no action (drop the row)");
    refuses(HEAD "3,a\n", &s, "log.csv:4");
    refuses(HEAD "3,c,1\n", &model, "log.csv:4: the model does not know the action \"c\"");
    refuses("x,action,reward\n1,a,1\n,b,1\n", &model, "log.csv:3: the context \"\"");
    refuses(HEAD, &named, "money");
    refuses(HEAD, &context, "y");
    refuses("x,action,reward\n", &s, "no decisions");
    refuses("x,action,reward\n1,a,1\n2,a,1\n", &s, "1 different actions");
    refuses("x,action,reward,propensity\n1,a,1,0.5\n2,b,1,0\n", &s, "log.csv:3: a propensity");
    refuses("x,action,reward,propensity\n1,a,1,0.5\n2,b,1,1.5\n", &s, "log.csv:3: a propensity");
    refuses("x,reward\n1,1\n", &s, "action");
#undef HEAD
}

/* n decisions among three actions of means 0, 1, 5, action k with chance p[k]. */
static decision_log *make_log(int n, const double p[3], bool propensity) {
    buf b;
    buf_init(&b, &e);
    buf_printf(&b, "x,action,reward%s\n", propensity ? ",propensity" : "");
    rng_stream s = rng_stream_make((rng_key){11}, RNG_TEST, 0);
    for (int i = 0; i < n; i++) {
        static const double mean[3] = {0, 1, 5};
        double u = rng_u01(&s);
        int a = u < p[0] ? 0 : u < p[0] + p[1] ? 1 : 2;
        buf_printf(&b, "%d,%d,", i % 7, a);
        buf_double(&b, mean[a] + 0.1 * rng_normal(&s));
        if (propensity) {
            buf_text(&b, ",");
            buf_double(&b, p[a]);
        }
        buf_text(&b, "\n");
    }
    decision_log *l = NULL;
    log_source source = {0};
    CHECK(log_read(&e, write_log(buf_str(&b)), &source, &l) == MNP_OK);
    buf_free(&b);
    return l;
}

static replay_result replay(const decision_log *l, int threads) {
    pool *workers;
    replay_result r = {0};
    replay_opts o = {.agent = "uniform", .passes = 8, .seed = 3};
    CHECK(pool_create(&e, threads, &workers) == MNP_OK);
    CHECK(replay_run(&e, workers, l, &o, &r) == MNP_OK);
    pool_destroy(workers);
    return r;
}

static void a_uniform_log(void) {
    const double p[3] = {1 / 3.0, 1 / 3.0, 1 / 3.0};
    decision_log *l = make_log(3000, p, false);
    if (!l) return;
    replay_result r = replay(l, 1), two = replay(l, 2);
    NEAR(r.matched, 1000, 60, 0);
    NEAR(r.mean, 2, 0, 0.06);
    NEAR(r.log_mean, 2, 0, 0.06);
    NEAR(r.se, 2.16 / sqrt(1000), 0, 0.1);
    CHECK(memcmp(&r, &two, sizeof r) == 0); /* the same bits for any number of threads */
    log_destroy(l);
}

/* The log earns 1.1 by playing badly; a uniform agent would earn 2, and the replay says so. */
static void a_lopsided_log(void) {
    const double p[3] = {0.5, 0.35, 0.15};
    decision_log *l = make_log(6000, p, true);
    if (!l) return;
    replay_result r = replay(l, 1);
    NEAR(r.log_mean, 1.1, 0.06, 0);
    NEAR(r.mean, 2, 0, 0.06);
    NEAR(r.matched, 6000 * 0.15, 0, 0.08);
    log_destroy(l);
}

/* Memory of a caller who expects one call at a time. */
static atomic_int inside, collisions;

static void *one_at_a_time(void *user, size_t bytes, size_t align) {
    (void)user;
    if (atomic_fetch_add(&inside, 1) > 0) atomic_fetch_add(&collisions, 1);
    void *p = aligned_alloc(align, (bytes + align - 1) / align * align);
    atomic_fetch_sub(&inside, 1);
    return p;
}

static void free_one(void *user, void *ptr) {
    (void)user;
    if (atomic_fetch_add(&inside, 1) > 0) atomic_fetch_add(&collisions, 1);
    free(ptr);
    atomic_fetch_sub(&inside, 1);
}

static pthread_t caller;

/* A caller who is asked from another thread would not know what to do. */
static bool asked_here(void *user) {
    bool *stop = user;
    if (!pthread_equal(pthread_self(), caller)) atomic_fetch_add(&collisions, 1);
    return *stop;
}

static void workers_do_not_meet_in_the_caller(void) {
    const double p[3] = {1 / 3.0, 1 / 3.0, 1 / 3.0};
    bool stop = false;
    decision_log *l = make_log(2000, p, false);
    env own = {.allocator = {one_at_a_time, free_one, NULL}, .cancel = asked_here};
    replay_opts o = {.agent = "gp", .passes = 8, .seed = 3};
    replay_result r;
    pool *workers;
    own.cancel_user = &stop;
    caller = pthread_self();
    CHECK(pool_create(&e, 3, &workers) == MNP_OK);
    CHECK(replay_run(&own, workers, l, &o, &r) == MNP_OK && r.matched > 0);
    stop = true;
    CHECK(replay_run(&own, workers, l, &o, &r) == MNP_ECANCELLED);
    CHECK(atomic_load(&collisions) == 0);
    pool_destroy(workers);
    log_destroy(l);
}

static void agents_that_cannot_play(void) {
    const double p[3] = {0.5, 0.5, 0};
    decision_log *l = make_log(30, p, false);
    replay_opts o = {.agent = "nobody", .passes = 1};
    replay_result r;
    pool *workers;
    CHECK(pool_create(&e, 1, &workers) == MNP_OK);
    CHECK(replay_run(&e, workers, l, &o, &r) == MNP_EINVAL);
    CHECK(strstr(e.error, "there is no agent nobody") != NULL);
    o.agent = "maml"; /* without a file it knows the wheel alone */
    CHECK(replay_run(&e, workers, l, &o, &r) == MNP_EINVAL);
    CHECK(strstr(e.error, "needs its file") != NULL);
    pool_destroy(workers);
    log_destroy(l);
}

/* The same file as data to train on: inputs [age, one-hot(action)] by name. */
static void data_with_actions(void) {
    dataset *d = NULL;
    data_source s = {.action_column = "action", .function_column = ""};
    CHECK(dataset_open(&e, NULL, write_log(good), &s, &d) != MNP_OK); /* shop is no number */
    s.x_columns = "age";
    CHECK(dataset_open(&e, NULL, write_log(good), &s, &d) == MNP_OK);
    if (!d) return;
    CHECK(d->x_dim == 4 && d->points == 3);
    STREQ(d->x_names[1], "action=9");
    STREQ(d->x_names[3], "action=no");
    STREQ(d->y_name, "reward");
    const float want[12] = {30, 0, 0, 1, 40, 0, 1, 0, 50, 1, 0, 0};
    for (int i = 0; i < 12; i++) CHECK(d->x[i] == want[i]);
    dataset_destroy(d);
}

int main(void) {
    env_init(&e);
    RUN(reads_a_log);
    RUN(a_model_fixes_the_order);
    RUN(bad_logs);
    RUN(a_uniform_log);
    RUN(workers_do_not_meet_in_the_caller);
    RUN(a_lopsided_log);
    RUN(agents_that_cannot_play);
    RUN(data_with_actions);
    remove(path);
    return check_done();
}
