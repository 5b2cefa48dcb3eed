/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent gives each crew, and two files of the crew. */
#pragma once

#include <signal.h>

#include "agent/modules.h"
#include "agent/post.h"
#include "agent/stream.h"
#include "io/reaper.h"
#include "node/facts.h"
#include "wire/control.pb-c.h"

struct crew_setup;
struct mpi_host;
struct spawner;
struct spawners;
struct progress_desk;
struct runtime_dir;
struct worker;

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
    const struct spawner *spawner; /* NULL: workers are started in the usual way */
    struct spawners *spawners;     /* that start them side by side; NULL: one by one */
    /* Every worker is FINISHED. Called from inside the crew: do not destroy it here. */
    void (*finished)(void *context);
    void *context;
};

/*
 * crew_progress.c: how the workers of one crew can say how far they are: by a file, or at the
 * status endpoint of the node. A crew without a runtime folder has neither.
 */
struct crew_progress;

/* `folder` is the runtime folder, or NULL. The seats are copied. What the files say goes to the
 * desk. NULL: there is no folder, or no desk. */
struct crew_progress *crew_progress_create(const struct crew_config *config, const char *folder,
                                           const uint32_t *seats, size_t count);
void crew_progress_destroy(struct crew_progress *progress); /* accepts NULL */

/* What the environment of a worker needs, the caller's; NULL: there is none. */
struct crew_progress_places {
    char *file;        /* HVDRUN_PROGRESS_FILE */
    char *url;         /* of the status endpoint; NULL when there is no token */
    const char *token; /* path of its file; borrowed */
};
struct crew_progress_places crew_progress_places(const struct crew_progress *progress,
                                                 uint32_t seat); /* accepts NULL */

/* The worker has ended: what it wrote last is taken now. Accepts NULL. */
void crew_progress_ended(struct crew_progress *progress, uint32_t seat);

/* crew_start.c: the start of the workers of a crew, and what differs between them. */
#define CREW_START_MAX 128 /* workers in one turn of the loop */

/* Starts the workers [from, to) of PREPARE, at most CREW_START_MAX, after crew_setup_env(), or the
 * first of them when that takes long. Returns how many it has started, at least one. The state of
 * each says what came of it. `progress` may be NULL. `started` is for those that a spawner
 * (crew_config.h) has taken, with the worker as the context. */
int crew_start_workers(struct crew_setup *setup, const struct crew_progress *progress,
                       struct worker *workers, int from, int to,
                       void (*started)(void *context, pid_t pid, const struct error *err));
