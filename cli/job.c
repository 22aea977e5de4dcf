/* job.c: see job.h. */
#include "cli/job.h"

#include <stdlib.h>

#include "util/text.h"

/* Who starts processes, and how he numbers them. Slurm sets its own variables in every script; only
 * with PMIX_RANK were they set for MPI. */
static const struct {
    const char *mark, *rank, *size;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, /* Open MPI    */
    {"PMI_SIZE", "PMI_RANK", "PMI_SIZE"},                                     /* MPICH, srun */
    {"PMIX_RANK", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"},                       /* srun pmix   */
};

static int number(const char *name, int fallback) {
    const char *text = getenv(name);
    int64_t v = fallback;
    if (!text || text_parse_int64(text, &v) != TEXT_OK || v < 0 || v > 1000000) return fallback;
    return (int)v;
}

bool job_detect(cli *c) {
    for (size_t k = 0; k < sizeof launchers / sizeof *launchers; k++) {
        if (!getenv(launchers[k].mark)) continue;
        c->rank = number(launchers[k].rank, 0);
        c->ranks = number(launchers[k].size, 1);
        break;
    }
    return c->command->spreads || c->rank == 0;
}

int job_join(cli *c) {
    if (!c->command->spreads || c->ranks < 2) return 0;
    mnp_job_opts o = {.size = sizeof o,
                      .timeout = cli_real(c, "rank-timeout", 0, 1, 1e6),
                      .fast = cli_choice(c, "reduce", "ordered|fast", 0) == 1};
    if (cli_bad(c)) return c->status;
    mnp_status status = mnp_job_join(c->ctx, &o);
    if (status != MNP_OK)
        return cli_fail(c, EXIT_FAILED, "started as %d ranks, but this build cannot use MPI: %s",
                        c->ranks, mnp_last_error(c->ctx));
    c->joined = true;
    c->rank = mnp_job_rank(c->ctx);
    c->ranks = mnp_job_size(c->ctx);
    if (c->rank > 0) {
        c->quiet = true;
        c->json = false;
    }
    return 0;
}

bool cli_writes(const cli *c) {
    return c->rank == 0 || c->alone;
}

void cli_alone(cli *c, bool on) {
    c->alone = on;
    if (on)
        mnp_job_suspend(c->ctx);
    else
        mnp_job_resume(c->ctx);
}
