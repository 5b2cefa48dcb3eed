/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/reach/way_choice.h"

#include <string.h>

#include "model/allocation/allocation.h"
#include "node/facts.h"

enum way way_choose(const struct job *job, const struct host_traits *traits)
{
    const struct allocation *allocation = job->request->allocation;
    bool is_plain = traits->user == NULL && traits->port == 0 && traits->address == NULL &&
                    traits->identity == NULL;
    int kind = traits->transport;
    if (kind == SET_TRANSPORT_AUTO && job->settings->launch_agent != NULL)
        return WAY_COMMAND;
    if (kind == SET_TRANSPORT_AUTO)
        kind = (int)job->settings->transport;
    switch (kind) {
    case SET_TRANSPORT_SSH_CLI: return WAY_SSH_CLI;
    case SET_TRANSPORT_SRUN: return WAY_SRUN;
    case SET_TRANSPORT_KUBECTL: return WAY_KUBECTL;
    case SET_TRANSPORT_DOCKER: return WAY_DOCKER;
    case SET_TRANSPORT_DIAL: return WAY_DIAL;
    case SET_TRANSPORT_AUTO:
        return is_plain && allocation != NULL && allocation->kind == ALLOCATION_SLURM ? WAY_SRUN
                                                                                      : WAY_SSH;
    default: return WAY_SSH;
    }
}

/* The name of this node in the Slurm job, whatever the name of the machine is. */
static bool is_slurm_name(const struct allocation *allocation, const char *host)
{
    return allocation != NULL && allocation->kind == ALLOCATION_SLURM && allocation->here != NULL &&
           strcmp(allocation->here, host) == 0;
}

bool way_is_here(const struct settings *settings, const struct allocation *allocation,
                 const char *host, const struct host_traits *traits)
{
    int kind = traits->transport;
    if (kind == SET_TRANSPORT_AUTO)
        kind = settings->launch_agent != NULL ? SET_TRANSPORT_SSH : (int)settings->transport;
    switch (kind) {
    case SET_TRANSPORT_LOCAL: return true;
    case SET_TRANSPORT_DIAL: return !traits->came && is_local_obviously(host) == LOCAL_YES;
    case SET_TRANSPORT_AUTO:
        return traits->user == NULL && traits->port == 0 && traits->address == NULL &&
               (is_slurm_name(allocation, host) || is_local_obviously(host) == LOCAL_YES);
    default: return false;
    }
}

bool way_may_be_here(const struct settings *settings, enum way way, const char *host,
                     const struct host_traits *traits)
{
    return way == WAY_SSH && traits->transport == SET_TRANSPORT_AUTO &&
           settings->transport == SET_TRANSPORT_AUTO && traits->user == NULL && traits->port == 0 &&
           is_local_obviously(host) == LOCAL_UNKNOWN;
}
