/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which transport a host of the job gets. What the host list says about it goes first, then
 * --launch-agent and --transport, then what the job and the name of the host suggest.
 */
#pragma once

#include "driver/job/job.h"
#include "driver/reach/ways.h"
#include "model/hosts/hosts.h"

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
