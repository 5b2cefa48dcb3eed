/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transports: ways to get an agent onto a node and a duplex stream to it. Each transport is a const
 * table of functions with a context of its own; no code compares their names. The stream is the
 * job's only connection to the node (D2).
 *
 * A call is one attempt at one node. It reports through its events, from the loop and never from
 * within transport_call(): each stage when it begins, then `up` or `failed` once. Every stage has a
 * deadline of its own, so one of the two always comes.
 *
 * Here are also what all transports share (transport_room), and the one way to an agent that is not
 * a transport: local_fork(), which forks it at once, without a loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/log.h"

struct agent_image;
struct helpers;
struct loop;

/* What a call is waiting for, in the words that a user reads. */
#define TRANSPORT_STAGE_LIST(X)                                                  \
    X(STAGE_WAITING, "waiting")     /* its turn has not come */                  \
    X(STAGE_CONFIG, "ssh config")   /* `ssh -G` */                               \
    X(STAGE_RESOLVE, "resolve")     /* its name */                               \
    X(STAGE_CONNECT, "connect")     /* TCP, or the proxy command */              \
    X(STAGE_HANDSHAKE, "handshake") /* banner and key exchange */                \
    X(STAGE_HOST_KEY, "host key")   /* is it the one we know? */                 \
    X(STAGE_AUTH, "auth")                                                        \
    X(STAGE_START, "start")     /* a shell on the host, what is there already */ \
    X(STAGE_SEND, "send agent") /* hvdrun-agent itself */                        \
    X(STAGE_AGENT, "agent")     /* it was started and has not said HELLO */

enum transport_stage {
#define TRANSPORT_STAGE_ENUM(name, text) name,
    TRANSPORT_STAGE_LIST(TRANSPORT_STAGE_ENUM)
#undef TRANSPORT_STAGE_ENUM
        TRANSPORT_STAGES
};

const char *transport_stage_name(enum transport_stage stage);

/* What all transports of a driver share. It outlives their calls. */
struct transport_room {
    struct loop *loop;
    struct helpers *helpers;
    struct agent_image *image;
    const char *job_id;
    int64_t limit_ms;   /* for one stage of one call */
    int64_t silence_ms; /* after which the job gives a node up, for TCP_USER_TIMEOUT */
};

/* All pointers are borrowed until the call is over. */
struct transport_target {
    const char *host;     /* as in the plan */
    const char *address;  /* to connect to instead; NULL: the host's name */
    const char *user;     /* NULL: not said */
    const char *identity; /* file with the private key; NULL: not said */
    int port;             /* 0: not said */
    int node;
};

struct transport_stream {
    int read_fd, write_fd; /* may be equal; the caller owns them */
    pid_t pid;             /* of the child behind it; 0: none */
    bool same_machine;     /* its processes are our descendants, or the keeper of an agent that
                              serves one job after another ends them (agent_config.h) */
    bool dialled_in;       /* somebody else started the agent, and may start another one */
    char peer[64];         /* numeric address of the host as we reach it; "": not known */
    int peer_port;         /* that was connected to; 0: not known */
};

struct transport_events {
    void (*stage)(void *context, enum transport_stage stage);
    /* An agent speaks on this stream; its descriptors are the receiver's now. */
    void (*up)(void *context, const struct transport_stream *stream);
    /* One line without the host's name: cause and remedy. */
    void (*failed)(void *context, enum transport_stage stage, const char *why);
    /* After `up`: why the stream is about to end, as far as the transport knows. */
    void (*lost)(void *context, const char *why);
    /* A line for the log: what was chosen (LOG_INFO), what the host's stderr said. */
    void (*note)(void *context, enum log_level level, const char *line);
};

struct transport_call; /* each transport's own struct begins with struct transport_call_head */

struct transport_ops {
    struct transport_call *(*call)(void *context, const struct transport_target *target,
                                   const struct transport_events *events, void *events_context);
    /* Breaks off whatever goes on, closes what the transport holds; no event after that. */
    void (*hang_up)(struct transport_call *call);
};

struct transport {
    const struct transport_ops *ops;
    void *context;
};

struct transport_call_head {
    const struct transport_ops *ops;
};

/* Starts; never fails at once. transport_hang_up() is due for every call, once, also after it has
 * failed; accepts NULL. */
struct transport_call *transport_call(const struct transport *transport,
                                      const struct transport_target *target,
                                      const struct transport_events *events, void *events_context);
void transport_hang_up(struct transport_call *call);

/*
 * The first local agents: on this machine, forked without exec, on a socketpair (D1).
 *
 * Fork them before the driver has an event loop, a thread, or anything else that does not survive a
 * fork. The child first calls setsid() and closes every descriptor but its own. The driver is a
 * subreaper, so whatever a dying agent leaves behind becomes its child. These agents come up at
 * once, so they are not calls of a transport. Local agents that are needed later are (local_exec in
 * transport/transports.h).
 */
struct local_agent {
    /* The agent's main function, from the caller; returns the child's exit status. */
    int (*run)(void *context, const char *host, int fd);
    void *context;
};

int local_fork(const struct local_agent *agent, const char *host, struct transport_stream *stream,
               struct error *err);
