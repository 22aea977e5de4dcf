/* wgrad_tasks.c: see wgrad_tasks.h. */
#include "backend/cuda/fuse/wgrad_tasks.h"

/* Ranges of one job: in a batch of 100 one for each of its blocks. */
enum { RANGES = 4 };

static int64_t work_of(const cuda_program *p, const dev_job *job) {
    if (job->product < 0) return 0;
    const dev_product *of = &p->products[job->product];
    return (int64_t)of->rows * of->cols * of->terms / of->split;
}

/* After all that come before it. */
static void add_job(cuda_program *p, dev_job job) {
    int32_t at = p->n_jobs++;
    for (; at > 0; at--) {
        const dev_job *before = &p->jobs[at - 1];
        if (before->release < job.release) break;
        if (before->release == job.release && work_of(p, before) >= work_of(p, &job)) break;
        p->jobs[at] = *before;
    }
    p->jobs[at] = job;
}

/* Ranges next to each other with the same release. */
static void add_ranges(cuda_program *p) {
    for (int32_t k = 0, count; k < p->job_ranges; k += count) {
        const int32_t release = p->ranges[k].release;
        for (count = 0; count < RANGES && k + count < p->job_ranges; count++)
            if (p->ranges[k + count].release != release) break;
        add_job(p, (dev_job){release, -1, k, count});
    }
}

mnp_status jobs_list(env *e, cuda_program *p) {
    size_t most = (size_t)p->job_ranges + 1;
    for (int32_t k = 0; k < p->n_products; k++) most += (size_t)p->products[k].split;
    p->jobs = env_alloc(e, most, sizeof *p->jobs, "a program");
    if (!p->jobs) return MNP_ENOMEM;
    for (int32_t k = 0; k < p->n_products; k++)
        for (int32_t part = 0; part < p->products[k].split; part++)
            add_job(p, (dev_job){p->products[k].release, k, part, 1});
    add_ranges(p);
    return MNP_OK;
}
