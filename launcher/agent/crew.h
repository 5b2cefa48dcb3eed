/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crew: all workers of one epoch on this node, from PREPARE to the last FINISHED.
 *
 * PREPARE makes everything that can fail before anything runs (program found, MPI servers, ports,
 * bindings) and answers READY; START spawns, in slices, so that the loop stays alive with a
 * thousand ranks.
 */
#pragma once

#include "agent/post.h"
#include "agent/stream.h"
#include "agent/worker.h"
#include "io/reaper.h"
#include "node/facts.h"
#include "wire/control.pb-c.h"

struct crew;

struct crew_config {
    struct loop *loop;
    const struct post *post;
    struct stream_pool *pool;
    struct reaper *reaper;
    const struct node_facts *facts;
    struct mpi_host *mpi;   /* the agent's */
    const sigset_t *mask;   /* for the workers */
    const char *module_dir; /* where hvdrun-pmix.so and hvdrun-topology.so are */
    const char *job_id;
    int64_t drain_ms;
    int rendezvous_port;             /* 0: none */
    void (*finished)(void *context); /* every worker is FINISHED */
    void *context;
};

/* Takes `prepare` and sends READY, which says so when the crew cannot start. */
struct crew *crew_create(const struct crew_config *config, Hvdrun__Prepare *prepare);
void crew_destroy(struct crew *crew); /* the runtime folder too */

void crew_start(struct crew *crew, const Hvdrun__Start *start);
bool crew_exited(struct crew *crew, const struct reaper_exit *exit); /* false: not a worker */
void crew_stop(struct crew *crew); /* the end has begun: nothing more is spawned */
void crew_signal(struct crew *crew, int signal);
void crew_resize(struct crew *crew, int rows, int columns);
void crew_input(struct crew *crew, const struct frame_data *data, const uint8_t *bytes,
                size_t length);
void crew_cut(struct crew *crew); /* no process is left: streams end with what is in them */
void crew_report_states(struct crew *crew);

int crew_live(const struct crew *crew);                    /* workers whose process runs */
bool crew_is_finished(const struct crew *crew);            /* also when it never started */
bool crew_has_group(const struct crew *crew, pid_t group); /* of a live worker */
