/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent gives each crew. */
#pragma once

#include <signal.h>

#include "agent/modules.h"
#include "agent/post.h"
#include "agent/stream.h"
#include "io/child.h"
#include "io/reaper.h"
#include "node/facts.h"
#include "wire/control.pb-c.h"

struct mpi_host;
struct spawners;
struct progress_desk;
struct progress_door;

/* What starts the processes of workers in another way than by fork and exec: a part of the agent
 * offers it. */
struct spawner {
    void *own;
    /* Takes a worker: `done` comes once, later, from the loop. It has the pid of a child of this
     * process that is as child_spawn() would have made it; or -1 and an error of child_spawn().
     * `spec` is copied, its descriptors too. False: start it in the usual way. */
    bool (*spawn)(void *own, const struct child_spec *spec,
                  void (*done)(void *context, pid_t pid, const struct error *err), void *context);
    /* The worker with this context is not wanted any more: `done` does not come, and no process
     * of it runs the user's program. */
    void (*cancel)(void *own, const void *context);
};

struct crew_config {
    struct loop *loop;
    const struct post *post; /* the agent's; the crew's frames go under its own epoch */
    uint32_t epoch;
    struct stream_pool *pool;
    struct reaper *reaper;
    const struct node_facts *facts;
    struct mpi_host *mpi; /* the agent's; NULL: this crew joins older ones, and gets no MPI */
    const sigset_t *mask; /* for the workers */
    struct modules *modules;
    const char *job_id;
    int64_t drain_ms;
    int rendezvous_port;      /* 0: none */
    const char *line_address; /* of the lines to workers; NULL: none */
    Hvdrun__Ready ready;      /* what parts say in READY; the texts are theirs */
    const char *problem;      /* NULL, or why a part has not what these workers need */
    struct progress_desk *progress_desk;
    struct progress_door *progress_door; /* NULL: none */
    const struct spawner *spawner;       /* NULL: workers are started in the usual way */
    struct spawners *spawners;           /* that start them side by side; NULL: one by one */
    /* Every worker is FINISHED. Called from inside the crew: do not destroy it here. */
    void (*finished)(void *context);
    void *context;
};
