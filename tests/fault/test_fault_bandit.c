/* test_fault_bandit.c: trained agents and logs of decisions with the 1st, then the 2nd, 3rd ...
 * allocation failing, until a run has nothing left to fail: each failure is a clean MNP_ENOMEM with
 * a text, nothing leaks, and no file is left half-written. */
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"
#include "mnp_bandit.h"
#include "util/fsio.h"

static atomic_long live, left; /* left: calls until the failing one; negative: none fails */
static atomic_bool failed;
static char log_path[300], agent_path[300];

static void *fault_alloc(void *user, size_t bytes, size_t align) {
    (void)user;
    if (atomic_load(&left) >= 0 && atomic_fetch_sub(&left, 1) == 0) {
        atomic_store(&failed, true);
        return NULL;
    }
    void *block = aligned_alloc(align, (bytes + align - 1) / align * align);
    if (block) atomic_fetch_add(&live, 1);
    return block;
}

static void fault_free(void *user, void *ptr) {
    (void)user;
    if (ptr) atomic_fetch_sub(&live, 1);
    free(ptr);
}

static const char log_text[] = "shop,x,action,reward,propensity\n"
                               "s,1,a,1,0.5\ns,2,b,2,0.5\ns,3,a,1,0.5\ns,4,b,2,0.25\ns,5,a,1,0.5\n"
                               "t,1,b,1,0.5\nt,2,a,2,0.5\nt,3,b,1,0.5\nt,4,a,2,0.25\nt,5,b,1,0.5\n";

/* Train an agent on the log, then let it play the log. */
static mnp_status life(mnp_ctx *ctx, const char *agent, mnp_data **data) {
    mnp_data_opts d = {.size = sizeof d, .holdout = -1, .action_column = "action"};
    mnp_agent_train_opts how = {.size = sizeof how, .options = "steps=1 batch=1 hidden=4 layers=2"};
    mnp_bandit_opts play = {
        .size = sizeof play, .agent = agent, .initial_pulls = 1, .agent_file = agent_path};
    mnp_log_opts log = {.size = sizeof log, .passes = 2};
    mnp_replay_scores scores = {.size = sizeof scores};
    mnp_status status = mnp_data_open(ctx, log_path, &d, data);
    if (status == MNP_OK) status = mnp_agent_train(ctx, agent, *data, &how, agent_path);
    if (status != MNP_OK) return status;
    return mnp_bandit_replay(ctx, log_path, NULL, &play, &log, &scores);
}

static void every_allocation(const char *agent) {
    for (long n = 0; n < 5000; n++) {
        mnp_ctx *ctx = NULL;
        mnp_data *data = NULL;
        mnp_ctx_opts o = {
            .size = sizeof o, .threads = 1, .allocator = {fault_alloc, fault_free, NULL}};
        atomic_store(&left, -1);
        atomic_store(&failed, false);
        if (mnp_ctx_create(&o, &ctx) != MNP_OK) break;
        atomic_store(&left, n);
        mnp_status status = life(ctx, agent, &data);
        atomic_store(&left, -1);
        if (!atomic_load(&failed)) {
            CHECK(status == MNP_OK);
            if (status != MNP_OK) fprintf(stderr, "%s\n", mnp_last_error(ctx));
            n = 5000;
        } else {
            CHECK(status == MNP_ENOMEM);
            CHECK(*mnp_last_error(ctx) != '\0');
        }
        mnp_data_destroy(data);
        mnp_ctx_destroy(ctx);
        CHECK(atomic_load(&live) == 0);
    }
    CHECK(!atomic_load(&failed)); /* the last run had nothing left to fail */
    unlink(agent_path);
}

/* Functions of one point have nothing to give or nothing to ask for. */
static void what_cannot_be_learned(void) {
    static const double x[] = {0, 1, 0, 1, 0, 1, 1, 0, 1}, y[] = {1, 2, 3};
    mnp_set sets[] = {{2, x, y}, {1, x + 6, y + 2}};
    mnp_ctx *ctx = NULL;
    mnp_data *data = NULL;
    CHECK(mnp_ctx_create(NULL, &ctx) == MNP_OK);
    CHECK(mnp_data_from_sets(ctx, sets, 2, 3, &data) == MNP_OK);
    CHECK(mnp_agent_train(ctx, "maml", data, NULL, agent_path) == MNP_EINVAL);
    CHECK(strstr(mnp_last_error(ctx), "function 1 has one point") != NULL);
    mnp_data_destroy(data);
    mnp_ctx_destroy(ctx);
}

static void maml(void) {
    every_allocation("maml");
}

static void c_bruno(void) {
    every_allocation("c-bruno");
}

int main(void) {
    const char *dir = getenv("TEST_TMP");
    env e;
    env_init(&e);
    snprintf(log_path, sizeof log_path, "%.200s/fault-log.csv", dir ? dir : "/tmp");
    snprintf(agent_path, sizeof agent_path, "%.200s/fault-agent.safetensors", dir ? dir : "/tmp");
    if (fsio_write(&e, log_path, log_text, strlen(log_text)) != MNP_OK) return 1;
    RUN(what_cannot_be_learned);
    RUN(maml);
    RUN(c_bruno);
    unlink(log_path);
    return check_done();
}
