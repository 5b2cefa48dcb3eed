/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of the srun transport and of its steps, from the driver. */
#pragma once

#include "transport/boot/room.h"
#include "transport/transport.h"

struct srun_settings {
    const struct transport_room *room;
    const char *module_path; /* of hvdrun-tls.so */
    const char *agent_path;  /* of hvdrun-agent, on the nodes as here */
    const char *arguments;   /* --srun-args; NULL */
    char *const *addresses;  /* numeric, of this machine, best first; NULL-ended */
    int64_t limit_ms;        /* for an agent to come, from its call */
    int nodes;               /* that may come at the same time */
    bool one_each;
    /* A line that belongs to no call: refused connections, what srun says of all nodes. */
    void (*note)(void *context, enum log_level level, const char *line);
    /* From the loop: no srun runs any more, see srun_transport_is_idle(). */
    void (*idle)(void *context);
    void *context;
};
