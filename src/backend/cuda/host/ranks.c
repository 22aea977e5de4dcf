/* ranks.c: see ranks.h. */
#include "backend/cuda/host/ranks.h"

#include <string.h>

#include "base/object.h"
#include "comm/comm.h"

struct cuda_ranks {
    env *env;
    const gpu_link_api *api;
    void *link;
    bool broken;      /* an exchange failed: nobody waits for the others any more */
    float *sums;      /* device: (ranks, words)   */
    double *all;      /* device: (ranks, most, 3) */
    size_t sums_size; /* bytes */
    size_t all_size;
};

static mnp_status link_check(const cuda_ranks *s, int error, const char *what) {
    if (!error) return MNP_OK;
    return env_fail(s->env, MNP_EDEVICE, "NCCL failed in %s: %s", what, s->api->error_text(error));
}

static mnp_status find_api(env *e, const gpu_link_api **out) {
    object_fn found;
    mnp_status status = object_load(e, "libmnp_nccl.so", GPU_LINK_SYMBOL,
                                    "it is built where nccl.h and libnccl.so.2 are", &found);
    if (status != MNP_OK) return env_context(e, status, "GPUs cannot share steps");
    *out = ((gpu_link_entry)found)();
    if (!*out || (*out)->version != GPU_LINK_VERSION)
        return env_fail(e, MNP_EUNSUPPORTED, "libmnp_nccl.so belongs to another version");
    return MNP_OK;
}

mnp_status ranks_open(env *e, cuda_ranks **out) {
    char id[GPU_LINK_ID] = "";
    const gpu_link_api *api = NULL;
    *out = NULL;
    MNP_TRY(find_api(e, &api));
    cuda_ranks *s = env_alloc(e, 1, sizeof *s, "the link between GPUs");
    if (!s) return MNP_ENOMEM;
    *s = (cuda_ranks){.env = e, .api = api};
    *out = s; /* closed with its exec */
    if (comm_rank(e) == 0) MNP_TRY(link_check(s, api->identify(id), "setting up"));
    MNP_TRY(comm_broadcast(e, id, sizeof id, "the link between GPUs"));
    return link_check(s, api->open(id, comm_rank(e), comm_size(e), &s->link), "setting up");
}

void ranks_close(cuda_ranks *s, const cuda_api *api) {
    if (!s) return;
    if (s->link) s->api->close(s->link, !s->broken);
    api->release(s->sums);
    api->release(s->all);
    env_free(s->env, s);
}

static mnp_status grow(cuda_ranks *s, const cuda_api *api, void **at, size_t *have, size_t bytes) {
    if (*at && *have >= bytes) return MNP_OK;
    api->release(*at);
    *at = NULL;
    int error = api->alloc(at, bytes);
    if (error)
        return env_fail(s->env, MNP_ENOMEM, "%.1f MB on the GPU for the sums of the ranks: %s",
                        (double)bytes / 1e6, api->error_text(error));
    *have = bytes;
    return MNP_OK;
}

mnp_status ranks_bind(cuda_ranks *s, env *e, const cuda_api *api, cuda_queue *q, int64_t items,
                      size_t words, float *slots, double *reports) {
    const int ranks = comm_size(e);
    const int64_t most = (items + ranks - 1) / ranks;
    void *sums = s->sums, *all = s->all;
    mnp_status status = grow(s, api, &sums, &s->sums_size, (size_t)ranks * words * sizeof(float));
    s->sums = sums;
    if (status == MNP_OK)
        status = grow(s, api, &all, &s->all_size, (size_t)(ranks * most * 3) * sizeof(double));
    s->all = all;
    MNP_TRY(status);
    cuda_shared_step step;
    memset(&step, 0, sizeof step); /* compared byte by byte */
    step.api = s->api, step.link = s->link;
    step.ranks = ranks, step.rank = comm_rank(e), step.fast = comm_fast(e);
    step.sums = s->sums, step.own = slots, step.words = words;
    step.reports = reports, step.all = s->all;
    step.items = items, step.most = most;
    api->share(q, &step);
    return MNP_OK;
}

typedef struct queue_wait {
    const cuda_api *api;
    cuda_queue *q;
    int error;
} queue_wait;

static bool queue_done(void *arg) {
    queue_wait *w = arg;
    int yes = 0;
    w->error = w->api->busy(w->q, &yes);
    return w->error || !yes;
}

mnp_status ranks_wait(cuda_ranks *s, env *e, const cuda_api *api, cuda_queue *q) {
    queue_wait w = {api, q, 0};
    mnp_status status = comm_wait(e, queue_done, &w, "the steps on the GPUs");
    if (status == MNP_OK && w.error)
        status = env_fail(e, MNP_EDEVICE, "the GPU failed in a step: %s", api->error_text(w.error));
    s->broken = status != MNP_OK;
    return status;
}
