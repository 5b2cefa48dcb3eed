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

/*
 * orders.c: every frame of the driver. A table has the handler of each type, and when it may come.
 * A type without a line is a breach of the protocol.
 */
void orders_frame(struct agent *agent, const struct frame_header *header, const uint8_t *body);
/* The same, but it says nothing about the link to the driver. */
void orders_take(struct agent *agent, const struct frame_header *header, const uint8_t *body);

/* A frame of the driver cannot be accepted: reports to it why. */
void orders_refused(struct agent *agent, const char *why);

/*
 * agent_end.c: the end of an agent. It ends its workers when the driver says END or is lost. It
 * ends itself at QUIT, or when no driver waits for it.
 */
struct ending *agent_end_create(struct agent *agent);

/* Sends ENDED once every process has ended and every stream has been read. */
void agent_end_check(struct agent *agent);

/* After ENDED: gets ready for the next epoch, or for another END. */
void agent_end_anew(struct agent *agent);

/* The driver or the keeper is lost: ends the workers, then the agent. */
void agent_end_driver_lost(struct agent *agent);

/* The same for a driver that was silent for too long, after a FAREWELL. It may only be stopped, and
 * read that later. */
void agent_end_driver_silent(struct agent *agent, int64_t silence_ms);

/* The driver broke the protocol: reports `what`, then ends as if the driver were lost. */
void agent_end_breach(struct agent *agent, const char *what);

/* The frames END and QUIT. */
void agent_end_order(struct agent *agent, uint32_t epoch, const Hvdrun__End *message);
void agent_end_quit(struct agent *agent, const Hvdrun__Quit *message);
