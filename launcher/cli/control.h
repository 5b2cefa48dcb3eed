/* SPDX-License-Identifier: Apache-2.0 */
/* The commands about jobs; cli/control_words.h has their words. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/control_jobs.h"
#include "cli/control_words.h"
#include "driver/control/record.h"

/* control_command.c: `hvdrun status`, `drain`, `undrain` and `add`: talk to a running job and end.
 */

/* Runs the command and returns the exit status. -1: argv[1] is not such a command, so the command
 * line starts a job. */
int control_command(int argc, char *const *argv);

/*
 * control_status.c: prints the answer to a status request (driver/control/request.h) as a table for
 * people. It skips what the answer does not have, and removes control characters from texts.
 */

void control_status_text(const json_t *status, struct buf *out);

/* Appends how the job ended, and its last lines. `now_s`: seconds since 1970. */
void control_record_text(const json_t *record, enum job_record_state state, double now_s,
                         struct buf *out);

/* "ended, status 3", "stopped, status 130" or "lost", for a table. */
void control_record_state(const json_t *record, enum job_record_state state, struct buf *out);

/* control_ps.c: `hvdrun ps`: the jobs of this user on this machine. */

/* Appends the table, or an array of JSON objects: what each running job says of itself, and with
 * `all` what the records of the others say, the latest last. Every job has 2 s to answer; all of
 * them are asked at the same time. With `quiet`, appends only ids and asks no job.
 * A long command is cut so that a row has `width` columns (0: it is not cut). `more`: further
 * folders of this user. */
void control_ps(const struct job_list *list, const struct job_lists *more,
                const struct control_words *words, size_t width, struct buf *out);

/* control_log.c: `hvdrun logs` and `hvdrun attach`: show the log of a job, and follow it. */

enum control_log_end {
    CONTROL_LOG_FAILED = -1,
    CONTROL_LOG_SHOWN, /* all that `logs` shows without -f */
    CONTROL_LOG_OVER,  /* the job has ended, and all of its log was shown */
    CONTROL_LOG_LEFT   /* the user has left: Ctrl-C, or the detach keys */
};

/* Shows the log of the job `id` as the words say. CONTROL_LOG_FAILED: it keeps no log, or the
 * output cannot be written. */
enum control_log_end control_log(const struct job_list *list, const char *id,
                                 const struct control_words *words, struct error *err);

/*
 * control_slurm.c: a command with --slurm-job: about the job of hvdrun in a job of Slurm, from any
 * machine with srun.
 *
 * Its files are on the first node, in a TMPDIR that may be that Slurm job's own. So the command
 * starts itself there with srun, as one more step of the Slurm job. There it looks below the
 * TMPDIR of each process that has the number of the Slurm job in its environment. The records of
 * jobs have the number, too, so that the command is never about a job elsewhere.
 */

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
