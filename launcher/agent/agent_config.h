/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent: one per node. It serves its driver over one link. When the driver says so or is lost,
 * the agent ends every process below it, then itself.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tls_end;
struct warm_holder;

struct agent_config {
    int read_fd, write_fd;      /* the link; taken over */
    const struct tls_end *tls;  /* the link goes through this instead, taken over; NULL */
    const char *module_dir;     /* of hvdrun-pmix.so and hvdrun-topology.so */
    const sigset_t *mask;       /* the user's signal mask, for the workers */
    pid_t driver_pid;           /* on this machine: our parent, unless there is a `holder`; or 0 */
    bool ends_as_job;           /* agent_run() returns what QUIT says, 128 + SIGTERM if that
                                   was the cause, or STATUS_LAUNCHER without QUIT; else 0 */
    int64_t term_grace_ms;      /* from SIGTERM until this host goes; 0: not known */
    int slots;                  /* that this host has; 0: as the driver says */
    const char *line;           /* what a copy of the driver's line says; NULL: it is not one */
    struct warm_holder *holder; /* of the feature warm: this process goes on with another job
                                   after this one; NULL */
    int keeper_fd;              /* the line to our keeper (agent/keeper.h); -1: there is none */
};

/* Runs until the job is over. Returns the process's exit status. */
int agent_run(const struct agent_config *config);
