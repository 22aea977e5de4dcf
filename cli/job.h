/* job.h: a command that mpirun (or srun) has started several times. The launcher's variables tell;
 * the library itself does not read the environment. */
#ifndef MNP_CLI_JOB_H
#define MNP_CLI_JOB_H

#include "cli/cli.h"

/* Fills rank and ranks. False: a command that does not spread, on another rank than 0: done. */
bool job_detect(cli *c);
/* Joins the job, if there is one. 0, or an exit status after one line on stderr. */
int job_join(cli *c);

#endif
