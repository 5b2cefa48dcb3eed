/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exit policy (D7): all that happened to the ranks goes in, one verdict comes out. Pure; all
 * times are nanoseconds on the driver's monotonic clock.
 *
 * A static job ends at its first bad exit: a code other than 0, a signal, an abort, a program that
 * could not be executed, or a lost node. A clean exit never starts the teardown. The teardown
 * begins at once. The policy decides which rank is to blame at the end, when every exit is known.
 * The order in which the news came in does not matter, but for one exception. After the agent of a
 * node has reported our kill, the loss of that node is not a cause, whatever its clock says.
 *
 * - An exit is a CONSEQUENCE when it happened after our first kill reached its node, or after the
 *   user interrupted the job. The first comparison is exact, since both times are of that node's
 *   clock. All other failures are causal, and so are lost nodes and failures of the launcher.
 * - The earliest causal failure is the CAUSE. Ranks of several nodes can fail so close together
 *   that the clocks cannot order them, within their summed uncertainties. Then the strongest
 *   evidence decides (exit_record_grade), then the lowest rank, and the verdict says that it was a
 *   tie. An agent may see an end up to 0.1 s late. So a crash or a kill on another node ties with
 * an exit up to 0.1 s before it. Exits of one node share a clock, so only equal times tie. An agent
 *   that collects several exits in one turn gives all of them the same time.
 * - MPI_Abort counts as a failure of its rank with the given code, whatever the process exited
 *   with.
 * - A loss is a span of time. It begins with the last sign of life of the node's agent. It ends
 * when the driver could not but know. What happens in this span may be before the loss or after it,
 * whatever the driver heard first. So the kind of a failure decides. A failure that STANDS ALONE is
 * a crash, a kill, an error that the rank wrote, or comes after an error of another rank. All other
 * failures are how workers answer a lost peer.
 *   - One that blames a peer on stderr, not surely before the loss, is a consequence of it. So is
 *     one without a word that is surely after it. If the node only fell silent, that one may have
 *     had another reason: the verdict names the loss, then the rank, and says that it was a tie.
 *   - A failure that is surely before the loss goes before it. So does each one that the lost
 *     agent has reported. But a rank of it that died of SIGKILL up to half a second before the last
 *     sign of life was lost with it, and the span begins there. Peers may notice the end of a rank
 *     before its agent does. So if the agent reported no end of some rank, and its connection
 *     ended, the span begins 0.1 s earlier for ends that do not stand alone.
 *   - In the span, a failure that stands alone is named, and any if the node only fell silent:
 *     that makes peers wait first. Else the loss is named. The verdict names both, and says that
 *     it was a tie.
 *   - A rank may write an error and go on, so only its end counts. If the loss is named, an error
 *     in the span, or up to a minute before it, is named too. The verdict says that it was a tie.
 *   This assumes that peers do not notice a loss before it happens, that an agent reports no end
 *   after its own, and that a worker that fails because of a peer says so or says nothing.
 * - The user's INT, TERM, HUP or QUIT makes the status 128 + signal. Two exceptions: a causal
 *   failure came before it, or every rank exited with 0, since then the job handled the signal
 *   itself.
 * - A rank without a status at the end is a failure, even when nothing else is wrong.
 *
 * The status: `first` is that of the cause. `max` is the highest of all causal failures. `rank0` is
 * that of rank 0 whatever the others did, with two exceptions. A lost node or a failure of the
 * launcher still counts. A rank 0 that died as a consequence has the status of the cause. Only a
 * job whose status is 0 by these rules has succeeded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/exit/record.h"
#include "model/exit/symptom.h"
#include "model/exit/verdict.h"
#include "model/plan/plan.h"
#include "model/settings/words.h"

struct exit_policy;

/* The plan and what ends the job from outside are borrowed and outlive the policy. Ranks and nodes
 * out of the plan's range are ignored. */
struct exit_policy *exit_policy_create(enum exit_rule rule, const struct plan *plan,
                                       const struct exit_outside *outside);
void exit_policy_destroy(struct exit_policy *policy);

/* The job has more ranks: the new plan begins with the old one, and has the same nodes. */
void exit_policy_grow(struct exit_policy *policy, const struct plan *plan);

void exit_policy_started(struct exit_policy *policy, int rank); /* an exit implies it */

/* The next two return true when this news must start the teardown. They do so at most once in all,
 * and never after a kill or something from outside began it. `text` may be NULL. */

/* FACT_EXITED: also by a signal. FACT_ABORTED: the event's code is the given one; `text` is the
 * message. FACT_NOT_EXECUTED: the code is 126 or 127; `text` says which file and why. */
bool exit_policy_ended(struct exit_policy *policy, enum exit_fact fact,
                       const struct exit_event *event, const char *text);
bool exit_policy_node_lost(struct exit_policy *policy, int node, const struct exit_loss *loss,
                           const char *text);

/* Our first kill reached this node at `when_ns`, by its own clock converted to ours. Of several
 * calls for a node the earliest time counts. Not for a signal of the user that is passed on. */
void exit_policy_killed(struct exit_policy *policy, int node, int64_t when_ns);

/* What the rank's stderr says, before the verdict. Needed only if a node was lost. `uncertainty_ns`
 * is that of the clock of the rank's node. */
void exit_policy_said(struct exit_policy *policy, int rank, const struct symptom *symptom,
                      int64_t uncertainty_ns);

/* Linear in the ranks. With a status of 0 the cause may still be set, to a failure that `rank0`
 * ignores. */
void exit_policy_verdict(struct exit_policy *policy, struct verdict *out);

/* The role of a rank in the last verdict; before the first one no rank is the cause. ROLE_NONE: it
 * started and has no status. */
enum exit_role exit_policy_role(const struct exit_policy *policy, int rank);
int exit_policy_rank_status(const struct exit_policy *policy, int rank); /* 0..255; -1: none */
