/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways to the hosts of a job: which transport a host gets, and the open ones.
 *
 * What the host list says about a host goes first, then --launch-agent and --transport, then what
 * the job and the name of the host suggest. A transport is opened when the first host needs it.
 */
#pragma once

#include "driver/job/job.h"
#include "model/hosts/hosts.h"
#include "transport/transport.h"

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

/* For a host that is not this machine. In a Slurm job srun is the default, unless the entry names
 * another user, port, address or key. */
enum way way_choose(const struct job *job, const struct host_traits *traits);

/* Whether an agent there can start right away: the host is this machine, as known without a
 * resolver, or counts as this machine. `allocation` may be NULL. */
bool way_is_here(const struct settings *settings, const struct allocation *allocation,
                 const char *host, const struct host_traits *traits);

/* Without --transport, a host that is this machine needs no connection, unless the entry names
 * another user or port. True: only a resolver can tell. `way` is that of way_choose(). */
bool way_may_be_here(const struct settings *settings, enum way way, const char *host,
                     const struct host_traits *traits);

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
