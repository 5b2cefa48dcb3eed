/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agents that dial the driver (D2): a listener on one port of all addresses, IPv6 and IPv4. A
 * scheduler has started them (transport/srun/), or a user (transport/dial_in/). They come in over
 * TLS with the key of this job.
 *
 *   accepted -> handshake (DIAL_BACK_HANDSHAKE_MS at most) -> name claimed -> up
 *                                                          -> refused, with a reason
 *
 * An agent claims a name by its identity, "hvdrun:JOB:NODE". A name belongs to its first
 * connection. An agent named DIAL_BACK_ANY gets the first name whose agent has not come. A second
 * claim, and a name that no call waits for, are refused, and a note gives name and peer address.
 * The agent gets a line, DIAL_BACK_WELCOME, DIAL_BACK_WAIT or DIAL_BACK_REFUSED, before the first
 * frame. If no descriptor is free, strangers are hung up on, and an agent among them comes again.
 * If there is still none for an agent, the claim has failed. A peer without the key is
 * disconnected. There are never more than `guests` strangers at the same time: the oldest makes
 * room.
 */
#pragma once

#include "io/dial_ends.h"
#include "io/loop.h"
#include "io/tls_module.h"
#include "transport/transport.h"

#define DIAL_BACK_HANDSHAKE_MS 5000

struct dial_back;
struct dial_back_claim;

struct dial_back_config {
    struct loop *loop;
    const struct tls_module *module;
    const char *job_id;    /* borrowed */
    int port;              /* 0: any that is free */
    const uint8_t *key;    /* TLS_KEY_SIZE bytes, which agents know; NULL: a random one */
    bool agents_return;    /* they come again: to come while no call waits is not worth a warning */
    int64_t dead_after_ms; /* for TCP_USER_TIMEOUT */
    int guests;            /* connections without a name at the same time */
    /* An agent with the key has a name, safe as that of a host, that no call has waited for. NULL:
     * one waits now; else why not, in a few words. May be NULL: there are no such names. */
    const char *(*stranger)(void *context, const char *name);
    /* A line that belongs to no call. */
    void (*note)(void *context, enum log_level level, const char *line);
    void *context;
};

struct dial_back_events {
    /* Its agent has come; the stream's descriptor is the receiver's. Once. */
    void (*up)(void *context, const struct transport_stream *stream);
    /* The connection of it broke; right before the stream ends. */
    void (*broken)(void *context, const char *why);
    /* It cannot be taken in, now or later: instead of `up`. */
    void (*failed)(void *context, const char *why);
};

/* NULL: no key, no port, no TLS. */
struct dial_back *dial_back_create(const struct dial_back_config *config, struct error *err);
void dial_back_destroy(struct dial_back *dial); /* after the last claim; accepts NULL */
int dial_back_port(const struct dial_back *dial);

/* The random key of the job, hexadecimal, and as long as the object lives. It is for the
 * environment of what starts the agents, never for a command line or a log. */
const char *dial_back_key(const struct dial_back *dial);

/* Waits for the agent of `name`, which is copied. Names are given to DIAL_BACK_ANY in this order.
 */
struct dial_back_claim *dial_back_expect(struct dial_back *dial, const char *name,
                                         const struct dial_back_events *events, void *context);
bool dial_back_has_gone(const struct dial_back_claim *claim); /* come, and its connection is over */
void dial_back_forget(struct dial_back_claim *claim);         /* and hangs up; accepts NULL */
