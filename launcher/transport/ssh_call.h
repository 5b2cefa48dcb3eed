/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of the ssh transport: configuration, keys, address, connection, login, agent. The
 * window decides when it may go on (ssh_call_go); everything else is driven by the loop.
 */
#pragma once

#include "transport/dial.h"
#include "transport/resolve.h"
#include "transport/ssh.h"
#include "transport/ssh_identity.h"
#include "transport/ssh_query.h"
#include "transport/ssh_window.h"

/* What the calls of one transport share. */
struct ssh_transport {
    const struct ssh_settings *settings;
    struct loop *loop;
    struct loop_timer *schedule; /* lets calls in, from the loop */
    struct ssh_window *window;
    struct ssh_queries *queries;
    struct ssh_query_settings query_settings;
    bool opened;                     /* the module was looked for */
    const struct ssh_module *module; /* NULL: `why_not` says why */
    char *why_not;
    struct resolver *resolver;         /* with the module */
    struct ssh_identities *identities; /* with the module */
};

struct ssh_call;

struct ssh_call *ssh_call_create(struct ssh_transport *ssh, const struct transport_target *target,
                                 const struct transport_events *events, void *events_context);
void ssh_call_destroy(struct ssh_call *call);
void ssh_call_go(struct ssh_call *call); /* its turn in the window has come */

/* Lets calls in that may go, a turn later. */
void ssh_transport_schedule(struct ssh_transport *ssh);
