/* wgrad_tasks.c: see wgrad_tasks.h. */
#include "backend/cuda/fuse/wgrad_tasks.h"

/* Ranges of one wgrad task: in a batch of 100 one for each of its blocks. */
enum { SPANS = 4 };

static int64_t work_of(const cuda_program *p, const dev_wgrad_task *task) {
    if (task->product < 0) return 0;
    const dev_product *of = &p->products[task->product];
    return (int64_t)of->rows * of->cols * of->terms / of->split;
}

/* After all that come before it. */
static void add_wgrad_task(cuda_program *p, dev_wgrad_task task) {
    int32_t at = p->n_wgrad_tasks++;
    for (; at > 0; at--) {
        const dev_wgrad_task *before = &p->wgrad_tasks[at - 1];
        if (before->milestone < task.milestone) break;
        if (before->milestone == task.milestone && work_of(p, before) >= work_of(p, &task)) break;
        p->wgrad_tasks[at] = *before;
    }
    p->wgrad_tasks[at] = task;
}

/* Ranges next to each other with the same milestone. */
static void add_spans(cuda_program *p) {
    for (int32_t k = 0, count; k < p->task_spans; k += count) {
        const int32_t milestone = p->grad_spans[k].milestone;
        for (count = 0; count < SPANS && k + count < p->task_spans; count++)
            if (p->grad_spans[k + count].milestone != milestone) break;
        add_wgrad_task(p, (dev_wgrad_task){milestone, -1, k, count});
    }
}

mnp_status wgrad_tasks_list(env *e, cuda_program *p) {
    size_t most = (size_t)p->task_spans + 1;
    for (int32_t k = 0; k < p->n_products; k++) most += (size_t)p->products[k].split;
    p->wgrad_tasks = env_alloc(e, most, sizeof *p->wgrad_tasks, "a program");
    if (!p->wgrad_tasks) return MNP_ENOMEM;
    for (int32_t k = 0; k < p->n_products; k++)
        for (int32_t part = 0; part < p->products[k].split; part++)
            add_wgrad_task(p, (dev_wgrad_task){p->products[k].milestone, k, part, 1});
    add_spans(p);
    return MNP_OK;
}
