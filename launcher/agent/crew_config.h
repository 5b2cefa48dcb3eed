/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent gives each crew. */
#pragma once

#include <signal.h>

#include "agent/modules.h"
#include "agent/post.h"
#include "agent/stream.h"
#include "io/reaper.h"
#include "node/facts.h"
#include "wire/control.pb-c.h"

struct mpi_host;
struct spawner;
struct spawners;
struct progress_desk;
struct progress_door;
struct runtime_dir;

#define DEADLINE_FILE_NAME "deadline" /* in each runtime folder (departure.c) */

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
    struct runtime_dir *folder; /* the crew takes it; NULL: it makes one */
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
