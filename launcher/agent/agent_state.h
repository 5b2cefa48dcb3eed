/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the agent, for its own files only: agent.c creates and runs it, orders.c
 * carries out the frames of the driver, agent_end.c ends the workers and the agent.
 */
#pragma once

#include "agent/agent_config.h"
#include "agent/crews.h"
#include "agent/part.h"
#include "agent/stream.h"
#include "io/helpers.h"
#include "io/reaper.h"
#include "model/net/liveness.h"
#include "node/facts.h"

struct departure;
struct ending;
struct gpu_sampler;
struct hello;
struct keeper_line;
struct mpi_host;
struct tls_stream;

struct agent {
    const struct agent_config *config;
    struct loop *loop;
    struct tls_stream *tls; /* NULL: the link is plain */
    struct link *link;      /* NULL once the driver is lost */
    struct post post;
    /* Takes a frame of the driver that came by way of others: orders_take(), for parts. */
    void (*take)(struct agent *agent, const struct frame_header *header, const uint8_t *body);
    struct reaper *reaper;
    struct helpers *helpers; /* programs that the agent asks */
    struct loop_signals *signals;
    struct loop_timer *tick;
    struct liveness liveness;
    struct node_facts *facts;
    struct hello *hello;
    struct stream_pool pool;
    struct ending *ending;
    struct keeper_line *keeper; /* NULL: there is none */
    struct modules *modules;
    struct mpi_host *mpi;
    struct crews *crews;
    struct runtime_dir *folder; /* for the first crew; NULL: it is gone, or cannot be made */
    struct departure *departure;
    void *own[AGENT_PARTS]; /* the data of the parts: agent_own() */
    char *helper_program;   /* of the helper processes */
    struct gpu_sampler *gpus;
    char *job_id;
    int64_t grace_ms, drain_ms;
    uint32_t end_epoch;  /* of the newest END */
    bool processes_gone; /* every process below us has ended */
    bool terminated;     /* it got SIGTERM */
    bool quits;          /* QUIT has come: further frames are ignored */
    bool ended;          /* ENDED was sent; until the next PREPARE or another END */
    int status;
};
