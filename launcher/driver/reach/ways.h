/* SPDX-License-Identifier: Apache-2.0 */
/* The transports to the hosts of a job. Each one is opened when the first host needs it. */
#pragma once

#include "driver/job/job.h"
#include "transport/exec/exec.h"

enum way {
    WAY_SSH,
    WAY_SSH_CLI,
    WAY_SRUN,
    WAY_KUBECTL,
    WAY_DOCKER,
    WAY_DIAL,
    WAY_COMMAND, /* --launch-agent */
    WAYS
};

struct ways;

struct ways *ways_create(struct job *job, const struct transport_room *room); /* borrows both */

/* Borrowed. NULL: it cannot be opened; `err` has an exit status if the user can correct the
 * cause. */
const struct transport *ways_open(struct ways *ways, enum way way, struct error *err);

/* Whether no way waits for a program of its own, which ends after its agents. If one does,
 * job_advance() is called when that program has ended. Call it after every call was hung up. */
bool ways_are_idle(const struct ways *ways);
void ways_close(struct ways *ways);   /* after the last hang_up */
void ways_destroy(struct ways *ways); /* closes; accepts NULL */
