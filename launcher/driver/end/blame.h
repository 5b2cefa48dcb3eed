/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks for the worker that most likely made the first one fail (model/exit/root_cause.h), with
 * what the driver knows about all workers.
 */
#pragma once

#include "driver/job/job.h"

/* For a job that goes on in another epoch. This worker may be the first that failed, and another
 * one most likely the cause. Then a message and an event say so. Call it when the output of the
 * worker has ended. */
void blame_say(const struct job *job, int seat);

/* root_cause_follows(), of a node that has just been lost */
bool blame_follows(const struct job *job, int seat, const struct node_link *node);

/* Names the likely cause in a verdict that names the first failure. The status becomes that of the
 * cause if it exited with a code of its own, and no --exit-policy asks for another one. */
void blame_refine(const struct job *job, struct verdict *verdict);

/*
 * The end of a static job waits for its cause. A rank that calls sys.exit() leaves its peers before
 * its process ends. So a peer may exit first, with an error about that rank. To end the others at
 * once would destroy the exit status that the user needs. So the job goes on until a rank has ended
 * that blames no peer, or a node is lost, for CAUSE_WAIT_MS at most.
 *
 * It does not wait if the cause is known. That is so after a crash or a kill, and if the first rank
 * or another one wrote an error of its own. Nor does it wait if the first rank wrote nothing.
 */

/* This rank was the first that failed. False: there is nothing to wait for. */
bool cause_wait_begin(struct job *job, int rank);

void cause_wait_exited(struct job *job, int rank);
void cause_wait_finished(struct job *job, int rank); /* its output is complete */
void cause_wait_end(struct job *job);                /* a node is lost */
