/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One srun and the agents that it starts.
 *
 *   calls in STARTING -> the agent has dialled back           up
 *                     -> a line names the node, or srun ended:
 *                        after its last words                 failed
 *                     -> the time is over                     failed
 *   all calls hung up -> LINGERING, if agents had come: srun ends with them
 *                     -> ASKED (SIGTERM): at once without agents, or if one was hung up on;
 *                        otherwise after SRUN_LINGER_MS
 *                     -> given up after SRUN_PATIENCE_MS: KILL by io/helpers.h; Slurm sees that
 *                        its srun has gone and ends the tasks
 *
 * Once an agent is up, what srun says about its node is evidence and not a verdict, and so is the
 * end of srun. When the stream ends, the evidence explains that (`lost`). There are two exceptions.
 * A node that Slurm takes for failed no longer belongs to the job. Without its srun, Slurm kills a
 * step at once, workers and agents in any order. In both cases the step ends the streams, so that
 * this is the failure that the job reports.
 */
#pragma once

#include <sys/queue.h>

#include "base/strv.h"
#include "transport/dial_back.h"
#include "transport/srun/process.h"
#include "transport/transports.h"

#define SRUN_LINGER_MS 1500
#define SRUN_PATIENCE_MS 1000

struct srun_step;

enum srun_call_state { SRUN_QUEUED, SRUN_STARTING, SRUN_UP, SRUN_OVER };

struct srun_call {
    struct transport_call_head head;
    const struct transport_target *target;
    const struct transport_events *events;
    void *events_context;
    enum srun_call_state state;
    int64_t called_ms; /* monotonic */
    bool explained;    /* `lost` has come */
    char *fate;        /* of an agent that will not come: what Slurm says; NULL */
    struct dial_back_claim *claim;
    struct srun_transport *srun;
    TAILQ_ENTRY(srun_call) place; /* while it is queued */
    struct srun_step *step;       /* NULL until then */
};

struct srun_step_config {
    const struct srun_settings *settings;
    const struct srun_options *options;
    const struct strv *arguments;
    struct dial_back *dial;
    void (*over)(void *context, struct srun_step *step); /* it may be destroyed in here */
    void *context;
};

/* Takes the array `calls`. They are SRUN_STARTING then, or SRUN_OVER and failed. The config is
 * borrowed. */
struct srun_step *srun_step_create(const struct srun_step_config *config, struct srun_call **calls,
                                   size_t count);
void srun_step_leave(struct srun_call *call); /* the call is hung up */
void srun_step_destroy(struct srun_step *step);
