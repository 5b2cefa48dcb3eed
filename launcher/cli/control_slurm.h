/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command with --slurm-job: about the job of hvdrun in a job of Slurm, from any machine with
 * srun.
 *
 * Its files are on the first node, in a TMPDIR that may be that Slurm job's own. So the command
 * starts itself there with srun, as one more step of the Slurm job. There it takes the TMPDIR of
 * the hvdrun that has the number of the Slurm job in its environment.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cli/control_words.h"

/* Does this process run on the first node of that job? `env`: of this process. */
bool control_slurm_is_there(const char *job, char *const *env);

/* The command line of srun for that of hvdrun, of which --slurm-job stays. `self` is hvdrun, and
 * `terminal`: the command has one. NULL at the end; the caller frees the array, whose items are
 * borrowed, and *job_option. */
const char **control_slurm_srun(const struct control_words *words, int argc, char *const *argv,
                                const char *self, bool terminal, char **job_option);

/* Without --slurm-job, nothing. Elsewhere it becomes srun, and returns only an error. On the node
 * of the job it sets TMPDIR, and names the job in `words` unless the user did. *id is the caller's.
 */
int control_slurm_enter(struct control_words *words, int argc, char *const *argv, char **id,
                        struct error *err);
