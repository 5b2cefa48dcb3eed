/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The warning that the end is near: a signal that the scheduler sends some time before it ends the
 * job (--warn-signal, model/exit/signal_rules.h), or SIGTERM when Slurm takes the nodes away.
 *
 *   idle     the signal; it only warns     passed on at once; the deadline file follows     idle
 *   idle     the signal; it ends the job   how much time remains? (scontrol, 5 s at most)  asking
 *   idle     TERM, with --slurm-requeue    did Slurm send it, or the user?                  asking
 *   asking   the answer, or none           deadline file, the signal, the end's clock       warned
 *   asking   it was the user               as for any signal of the user                    idle
 *   warned   all workers ended             the job ends before its time
 *   warned   the workers' time is over     TERM, then KILL (model/exit/signal_rules.h)
 *
 * The time left comes from `scontrol show job`, else from SLURM_JOB_END_TIME, else it is the grace
 * period. An exit after the warning is not a failure: the workers got a signal to end, and programs
 * answer that with any status. So with --slurm-requeue the job is requeued whatever their statuses
 * are, unless the user has ended the job meanwhile.
 */
#pragma once

#include "driver/job/job.h"
#include "io/program.h"
#include "model/allocation/slurm.h"
#include "model/exit/signal_rules.h"

struct warning;

/* A job whose settings name signals that are not allowed, or in which scontrol is missing, cannot
 * start. */
const struct signal_rules *warning_rules(const struct warning *warning);

/* The workers get the signal, or what the rules send instead. */
void warning_pass_on(const struct warning *warning, int signal);

/* Takes a new signal to the launcher. False: it has nothing to do with a warning. */
bool warning_takes(struct warning *warning, int signal);

/* The agent of an elastic job got SIGTERM; perhaps all agents did. */
void warning_node_term(struct warning *warning);

/* The user ends the job: it is not requeued. */
void warning_user_ends(struct warning *warning);

/* Replaces the verdict of the kind of job where a warning ended it. */
void warning_verdict(const struct warning *warning, struct verdict *out);
bool warning_wants_requeue(const struct warning *warning);

/* Runs Slurm's `scontrol WORDS JOBID` for the job that we are in, for at most `limit_ms`; `words`
 * is ended by NULL. For `done` and the result see program_start(). */
struct program *scontrol_start(struct job *job, const char *const *words, int64_t limit_ms,
                               void (*done)(void *context, const struct program_result *result),
                               void *context);
