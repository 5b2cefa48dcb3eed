/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent is started with. */
#pragma once

#include <signal.h>
#include <sys/types.h>

struct tls_end;

struct agent_config {
    int read_fd, write_fd;     /* the link; taken over */
    const struct tls_end *tls; /* the link goes through this instead, taken over; NULL */
    const char *module_dir;    /* of hvdrun-pmix.so and hvdrun-topology.so */
    const sigset_t *mask;      /* the user's signal mask, for the workers */
    pid_t driver_pid;          /* our parent on this machine; 0: the driver is elsewhere */
    int keeper_fd;             /* the line to our keeper (agent/keeper.h); -1: there is none */
};
