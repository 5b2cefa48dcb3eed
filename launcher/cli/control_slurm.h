/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command with --slurm-job: about the job of hvdrun in a job of Slurm, from any machine with
 * srun.
 *
 * Its files are on the first node, in a TMPDIR that may be that Slurm job's own. So the command
 * starts itself there with srun, as one more step of the Slurm job. There it looks below the
 * TMPDIR of each process that has the number of the Slurm job in its environment. The records of
 * jobs have the number, too, so that the command is never about a job elsewhere.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cli/control_jobs.h"
#include "cli/control_words.h"

/* Does this process run on the first node of that job? `env`: of this process. */
bool control_slurm_is_there(const char *job, char *const *env);

/* The command line of srun for that of hvdrun, of which --slurm-job stays. `self` is hvdrun, and
 * `terminal`: the command has one. NULL at the end; the caller frees the array, whose items are
 * borrowed, and *job_option. */
const char **control_slurm_srun(const struct control_words *words, int argc, char *const *argv,
                                const char *self, bool terminal, char **job_option);

/* On the first node of the Slurm job, does nothing. Elsewhere it becomes srun, and returns only an
 * error. */
int control_slurm_enter(const struct control_words *words, int argc, char *const *argv,
                        struct error *err);

/* On that node: the folder of the job that the command is about, with only the jobs of hvdrun in
 * the Slurm job. Sets TMPDIR to the place of this folder, and `words->job` to the id of the job.
 * -1: there is no such job, or there are several.
 *
 * Without a job in `words`, it is the only running one. For logs and explain it may be the one that
 * ended last; then `words->job` stays NULL. ps takes all folders: *more has the further ones. A
 * path stays as it is. */
int control_slurm_jobs(struct control_words *words, struct job_list *list, struct job_lists *more,
                       struct error *err);
