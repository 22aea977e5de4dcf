/* mnp_job.h: many processes, a chapter of its own. What mnp.h says of failure, lifetime, threads
 * and structs holds here too.
 *
 * A program started by mpirun may make its context one rank of the job: from then on training,
 * scoring and drawing families of functions are shared by all ranks, with the bits of one process.
 * Every rank makes the same calls in the same order; files are the caller's business (rank 0's).
 * A trainer belongs to the job, or to no job, as its context was when it was made; elsewhere it
 * refuses to run. MNP_EPEER: another rank failed or is silent. docs/user/cluster.md */
#ifndef MNP_JOB_H
#define MNP_JOB_H

#include "mnp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mnp_job_opts {
    size_t size;    /* sizeof(mnp_job_opts)                                                     */
    double timeout; /* seconds of silence after which a rank is lost; 0 = 120                   */
    bool fast;      /* add gradients in MPI's own order: the bits then depend on the rank count */
} mnp_job_opts;

/* MNP_EUNSUPPORTED: this build has no MPI. MNP_EINVAL: the context is in a job already. */
MNP_API mnp_status mnp_job_join(mnp_ctx *ctx, const mnp_job_opts *opts);
MNP_API int mnp_job_rank(const mnp_ctx *ctx); /* 0 without a job */
MNP_API int mnp_job_size(const mnp_ctx *ctx); /* ranks; 1 without a job */
/* All ranks leave the job, in the same place, and go on without it. */
MNP_API void mnp_job_leave(mnp_ctx *ctx);
/* Between the two this rank works for itself, as if there were no job; it stays a member, and rank
 * and size keep their values. All ranks suspend and resume in the same places. */
MNP_API void mnp_job_suspend(mnp_ctx *ctx);
MNP_API void mnp_job_resume(mnp_ctx *ctx);

/* The next calls are made by all ranks, and are done at once without a job. */

/* Waits until every rank is here. */
MNP_API mnp_status mnp_job_barrier(mnp_ctx *ctx);
/* Rank 0's bytes for all. data may be NULL where there are none. */
MNP_API mnp_status mnp_job_broadcast(mnp_ctx *ctx, void *data, size_t bytes);
/* This rank's part [lo, hi) of `total` things, in whole units of `unit` things, 1 or more. */
MNP_API mnp_status mnp_job_split(mnp_ctx *ctx, int64_t total, int64_t unit, int64_t *lo,
                                 int64_t *hi);
/* Every rank's part for all: `data` has `total` elements of `element` bytes, each rank has filled
 * its mnp_job_split(), and afterwards holds the whole array. */
MNP_API mnp_status mnp_job_gather(mnp_ctx *ctx, void *data, int64_t total, int64_t unit,
                                  size_t element);

/* A sign of life to the others, between pieces of long work that the caller does himself. */
MNP_API void mnp_job_heartbeat(mnp_ctx *ctx);
/* A rank that cannot go on tells the others, which end too when they next wait. True: this rank is
 * the one that should print why, always so without a job. mnp_ctx_destroy() then ends the job. */
MNP_API bool mnp_job_abort(mnp_ctx *ctx, const char *why);

#ifdef __cplusplus
}
#endif
#endif
