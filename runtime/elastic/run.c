/* SPDX-License-Identifier: Apache-2.0 */
#include "elastic/run.h"

#include "elastic/sync.h"

enum outcome { OVER, HOSTS_CHANGED, LOST };

static enum outcome outcome_of(int status)
{
    switch (status) {
    case HVD_ERR_HOSTS_CHANGED: return HOSTS_CHANGED;
    case HVD_ERR_PEER_LOST:
    case HVD_ERR_SHUT_DOWN:
    case HVD_ERR_TIMEOUT:
    case HVD_ERR_ENGINE: return LOST;
    default: return OVER;
    }
}

/* What sync leaves behind when it fails may be a mixture of two states. */
static enum outcome attempt(struct elastic_state *state, const struct elastic_world *world,
                            int (*function)(void *context), void *context, int *status,
                            struct error *err)
{
    *status = elastic_sync(state, world, err);
    if (*status == HVD_OK)
        *status = function(context);
    return outcome_of(*status);
}

/* Each try waits until the launcher has ranks for the next epoch, or ends this one. */
static int next_epoch(const struct elastic_world *world, struct error *err)
{
    int status;
    do {
        world->close(world->context);
        status = world->open(world->context, err);
    } while (outcome_of(status) == LOST && status != HVD_ERR_ENGINE);
    return status;
}

int elastic_run(struct elastic_state *state, const struct elastic_world *world, bool rejoins,
                int (*function)(void *context), void *context, struct error *err)
{
    for (;;) {
        int status = HVD_OK;
        enum outcome outcome = attempt(state, world, function, context, &status, err);
        if (outcome == OVER || !rejoins)
            return status;
        if (outcome == LOST)
            elastic_state_restore(state);
        status = next_epoch(world, err);
        if (status != HVD_OK)
            return status;
    }
}
