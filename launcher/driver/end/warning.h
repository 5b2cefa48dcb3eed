/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The warning that the end is near: a signal that the scheduler sends some time before it ends the
 * job (--warn-signal, model/exit/signal_rules.h), or SIGTERM when Slurm takes the nodes away.
 *
 *   idle     the signal; it only warns     passed on at once; the deadline file follows     idle
 *   idle     the signal; it ends the job   how long have we got? (scontrol, 5 s at most)    asking
 *   idle     TERM, with --slurm-requeue    is it Slurm that wants the end, or the user?     asking
 *   asking   the answer, or none           deadline file, the signal, the end's clock       warned
 *   asking   it was the user               as for any signal of the user                    idle
 *   warned   all workers ended             the job is over, before its time
 *   warned   the workers' time is over     TERM, then KILL (model/exit/warning_times.h)
 *
 * The end comes from `scontrol show job`, else from SLURM_JOB_END_TIME, else it is the grace. An
 * exit after the warning is nobody's failure: the workers were told to end, and programs do that
 * with any status. So with --slurm-requeue the job goes back into the queue whatever they end with,
 * unless the user has asked for the end meanwhile.
 */
#pragma once

#include "driver/job/job.h"
#include "model/exit/signal_rules.h"

struct warning;

/* NULL and `err`: the settings name signals that cannot be, or scontrol is missing. `user_ends`
 * takes a signal that was the user's wish for the end after all. */
struct warning *warning_create(struct job *job, void (*user_ends)(struct job *job, int signal),
                               struct error *err);
void warning_destroy(struct warning *warning); /* accepts NULL */

const struct signal_rules *warning_rules(const struct warning *warning);

/* Takes a signal of which somebody has sent us a new one. False: it is none of a warning's. */
bool warning_takes(struct warning *warning, int signal);

/* The agent of an elastic job was asked to end; perhaps all of them are. */
void warning_node_term(struct warning *warning);

/* The user wants the end: nothing goes back into a queue. */
void warning_user_ends(struct warning *warning);

/* The end of the job waits for an answer that decides what kind of end it is. */
bool warning_is_asking(const struct warning *warning);

/* All is over but the verdict: nobody waits for an answer any more. */
void warning_close(struct warning *warning);

/* What becomes of the verdict of the job's kind. */
void warning_verdict(const struct warning *warning, struct verdict *out);
bool warning_wants_requeue(const struct warning *warning);
