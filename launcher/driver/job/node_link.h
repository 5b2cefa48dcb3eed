/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's side of one node: the link to its agent, with its state, its liveness, its clock and
 * its output credit. Everything that concerns the job goes up through the ops.
 *
 *   state      stream up  HELLO  READY  START-sent  END-sent  ENDED  QUIT-sent  closed
 *   CALLING    STARTING                                                         UNREACHED
 *   STARTING              UP                        ENDING                      LOST, UNREACHED
 *   UP                           READY              ENDING                      LOST
 *   READY                               RUNNING     ENDING                      LOST
 *   RUNNING                                         ENDING                      LOST
 *   ENDING                                                    ENDED             LOST
 *   ENDED                                                            CLOSING    LOST
 *   CLOSING                                                                     GONE
 */
#pragma once

#include "base/log.h"
#include "io/link.h"
#include "io/loop.h"
#include "model/exit/record.h"
#include "model/net/flow.h"
#include "model/net/liveness.h"
#include "transport/transport.h"
#include "wire/control.pb-c.h"

#define NODE_STATE_LIST(X)       \
    X(NODE_CALLING, "calling")   \
    X(NODE_STARTING, "starting") \
    X(NODE_UP, "up")             \
    X(NODE_READY, "ready")       \
    X(NODE_RUNNING, "running")   \
    X(NODE_ENDING, "ending")     \
    X(NODE_ENDED, "ended")       \
    X(NODE_CLOSING, "closing")   \
    X(NODE_GONE, "gone")         \
    X(NODE_LOST, "lost")         \
    X(NODE_UNREACHED, "unreached")

enum node_state {
#define NODE_STATE_ENUM(name, text) name,
    NODE_STATE_LIST(NODE_STATE_ENUM)
#undef NODE_STATE_ENUM
};

struct node_link;
struct dial;

struct node_link_ops {
    /* Every frame except those of the link itself (WELCOME, heartbeats, LOG). */
    void (*frame)(void *context, struct node_link *node, const struct frame_header *header,
                  const uint8_t *body);
    /* The link has closed: as agreed (state NODE_GONE) or not (NODE_LOST, with the reason).
     * Once. */
    void (*closed)(void *context, struct node_link *node, const char *why);
    /* true: the node went silent; false: it answers again. */
    void (*suspect)(void *context, struct node_link *node, bool silent, int64_t silence_ms);
};

/* Takes what many nodes get alike in pieces. false: it goes on this node's link. */
struct node_detour {
    bool (*take)(void *context, struct node_link *node, enum frame_type type, uint32_t epoch,
                 const ProtobufCMessage *message, unsigned field, struct shared_block *block);
    /* For node_link_takes(), of a node that is alive. */
    bool (*takes)(void *context, const struct node_link *node, size_t length);
    void *context;
};

struct node_link {
    int index; /* in job->nodes: the same for the whole job */
    int place; /* in the present plan; -1: none */
    char *host;
    enum node_state state;
    struct link *link;                  /* NULL before its stream is up, and once closed */
    const struct node_detour *detour;   /* NULL: none; lives longer */
    enum transport_stage stage;         /* while CALLING: how far the transport has come */
    int64_t stage_ns[TRANSPORT_STAGES]; /* when it reached each stage; 0: not, or unknown */
    struct transport_stream stream;
    struct liveness liveness;
    int64_t timeout_ms; /* silence after which it is lost, once its agent has sent HELLO */
    struct credit credit;
    bool suspect;
    bool doubted;      /* a second look at its host precedes a loss */
    int64_t looked_ms; /* the silence since then has had its look */
    struct dial *look; /* NULL: it has not begun, or is over */
    bool twin_told;    /* the user knows that it is the machine of another node */
    bool same_clock;   /* same kernel, so the same monotonic clock */
    struct clock_offset clock;
    int64_t answered_ns; /* when we sent the last heartbeat that has its answer; 0: none has */
    uint64_t alive_ns;   /* the last time of its own clock that the agent has sent; 0: none yet */
    Hvdrun__AgentHello *hello;
    int64_t hello_ns, ready_ns; /* when they came, on our clock; 0: not yet */
    int64_t killed_ns;          /* when it last began to end all workers, on our clock; 0: never */
    uint32_t lines_epoch;       /* a worker there has a line in this epoch; 0: none */
    uint16_t suspends;          /* SUSPENDs that its agent has not answered */
    bool may_return;            /* its agent leaves after SIGTERM, and another one may dial in */
    bool call_again;            /* the core wants the node again before its last agent has exited */
    char *unkilled;             /* what its agents last said that SIGKILL does not end; NULL */
    char *lost_why;   /* what the transport or the agent's exit says about the end; NULL */
    char *end_reason; /* of the link, which has ended, while the exit is awaited; NULL */
    int64_t ended_ns; /* when the link ended, on our clock; 0: it has not */
    struct loop_timer *last_words; /* until the exit of its process is not awaited any more */

    struct loop *loop;
    struct loop_timer *tick;
    const struct log *log;
    const struct node_link_ops *ops;
    void *context;
};

/* `node` knows its index and host; it is CALLING. */
void node_link_init(struct node_link *node, struct loop *loop, int64_t node_timeout_ms,
                    const struct log *log, const struct node_link_ops *ops, void *context);

/* Takes over the descriptors of `stream`, on which an agent speaks. -1: the node stays CALLING. */
int node_link_connect(struct node_link *node, const struct transport_stream *stream,
                      struct error *err);
/* After the agent has exited: clears the old link for another node_link_init(). */
void node_link_renew(struct node_link *node);
void node_link_destroy(struct node_link *node); /* `node` itself too; accepts NULL */

const char *node_state_name(enum node_state state);
/* A second look is still to come, or not over yet, that may double the limit of its silence. */
bool node_link_may_answer(const struct node_link *node);
bool node_link_alive(const struct node_link *node); /* it can be sent to */

void node_link_send(struct node_link *node, enum frame_type type, uint32_t epoch,
                    const ProtobufCMessage *message); /* NULL: an empty body */
/* As link_send_shared(), link_send_pieces(), and link_drop_pieces(). */
void node_link_send_shared(struct node_link *node, enum frame_type type, uint32_t epoch,
                           const ProtobufCMessage *message, unsigned field,
                           struct shared_block *block);
void node_link_send_pieces(struct node_link *node, enum frame_type type, uint32_t epoch,
                           const ProtobufCMessage *message, unsigned field,
                           struct shared_block *block);
void node_link_drop_pieces(struct node_link *node, uint32_t epoch);
/* May it have so many bytes more to send, and still half of the queue for others? */
bool node_link_takes(const struct node_link *node, size_t length);
void node_link_give_up(struct node_link *node, const char *why); /* closes it as lost */
/* No agent will come up there. Does nothing after HELLO. */
void node_link_unreached(struct node_link *node);

/* The transport knows why the stream will end. */
void node_link_explain(struct node_link *node, const char *why);
/* The process of the stream has ended; `wait_status` as waitpid(2) gives it. For a process that
 * ends badly this is the reason, unless node_link_explain() has given one. */
void node_link_exited(struct node_link *node, int wait_status);
void node_link_suspend(struct node_link *node, bool suspended);

/* What is known about when the node was lost. */
struct exit_loss node_link_loss(const struct node_link *node);

/* The agent's time on our clock, and the possible error. */
int64_t node_link_time(const struct node_link *node, uint64_t agent_ns);
int64_t node_link_uncertainty(const struct node_link *node);
