/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/crew_ready.h"

#include "base/status.h"

/* The lowest rank of this node that runs the app; app -1: of any. */
static int first_rank_of(const struct crew_setup *setup, int app)
{
    const Hvdrun__Prepare *prepare = setup->prepare;
    for (size_t i = 0; i < prepare->n_workers; i++) {
        if (app < 0 || prepare->workers[i]->app == (uint32_t)app)
            return (int)prepare->workers[i]->rank;
    }
    return 0;
}

void crew_ready_send(const struct post *post, const struct crew_setup *setup,
                     const struct error *problem)
{
    Hvdrun__Ready message = HVDRUN__READY__INIT;
    if (problem != NULL) {
        message.problem = (char *)problem->text;
        message.rank = (uint32_t)first_rank_of(setup, setup->apps.problem);
        message.status = (uint32_t)(problem->status != 0 ? problem->status : STATUS_LAUNCHER);
    }
    message.master_port = (uint32_t)setup->master_port;
    message.jax_port = (uint32_t)setup->jax_port;
    message.mpi = setup->apps.notes.items;
    message.n_mpi = setup->apps.notes.count;
    message.bindings = setup->binding.pictures.items;
    message.n_bindings = setup->binding.pictures.count;
    if (setup->route.iface != NULL) { /* else it failed before */
        message.address = setup->route.address;
        message.interface = setup->route.iface;
    }
    post_message(post, FRAME_READY, &message.base);
}
