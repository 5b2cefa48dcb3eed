/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of the ssh transport: configuration, keys, address, connection, login, agent. The
 * window decides when it may go on (ssh_call_go); everything else is driven by the loop.
 */
#pragma once

#include "transport/dial.h"
#include "transport/resolve.h"
#include "transport/ssh/identity.h"
#include "transport/ssh/query.h"
#include "transport/ssh/ssh.h"
#include "transport/ssh/window.h"

/* What the calls of one transport share. */
struct ssh_transport {
    const struct ssh_settings *settings;
    struct loop *loop;
    struct loop_timer *schedule; /* lets calls in, from the loop */
    struct ssh_window *window;
    struct ssh_queries *queries;
    struct ssh_query_settings query_settings;
    struct loop_timer *idle;   /* there may be nothing to do but to wait for servers */
    struct resolver *resolver; /* from the first call on */
    char *why_not;             /* no resolver or no module, so the ssh program does all hosts */
    const struct ssh_module *module;     /* from the first connection on */
    struct ssh_known_files *known_files; /* with the module */
    struct ssh_identities *identities;   /* likewise */
};

struct ssh_call;

struct ssh_call *ssh_call_create(struct ssh_transport *ssh, const struct transport_target *target,
                                 const struct transport_events *events, void *events_context);
void ssh_call_destroy(struct ssh_call *call);
void ssh_call_go(struct ssh_call *call); /* its turn in the window has come */

/* Lets calls in that may go, a turn later. */
void ssh_transport_schedule(struct ssh_transport *ssh);

/* Opens the module, once. NULL: it is there; else why not. */
const char *ssh_transport_open_module(struct ssh_transport *ssh);

/* A server has been spoken to: what can be done before it answers is done a turn later. */
void ssh_transport_idle(struct ssh_transport *ssh);
