/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the calls of the ssh transport share: the settings, the window that they go through, and
 * what is opened once for all of them. The SSH module and the keys are opened with the first
 * connection.
 */
#pragma once

#include "transport/resolve.h"
#include "transport/ssh/identity.h"
#include "transport/ssh/query.h"
#include "transport/ssh/settings.h"
#include "transport/ssh/window.h"

struct ssh_shared {
    const struct ssh_settings *settings;
    struct loop *loop;
    struct ssh_window *window;
    struct ssh_queries *queries;
    struct resolver *resolver;       /* from the first call on */
    char *why_not;                   /* no resolver or no module: the ssh program does all hosts */
    const struct ssh_module *module; /* from the first connection on */
    struct ssh_known_files *known_files; /* with the module */
    struct ssh_identities *identities;   /* likewise */
    struct ssh_query_settings query_settings;
    struct loop_timer *turn; /* lets calls in, from the loop */
    struct loop_timer *idle; /* does what can be done while servers are waited for */
};

/* `turn` comes from the loop, with `context`, a turn after ssh_shared_schedule(). */
struct ssh_shared *ssh_shared_create(const struct ssh_settings *settings,
                                     void (*turn)(void *context), void *context);
void ssh_shared_destroy(struct ssh_shared *shared); /* after the calls; accepts NULL */

/* Lets calls in that may go, a turn later. */
void ssh_shared_schedule(struct ssh_shared *shared);

/* Opens the resolver, once. Where that fails, `why_not` says why. */
void ssh_shared_open_resolver(struct ssh_shared *shared);

/* Opens the module, once. NULL: it is there; else why not. */
const char *ssh_shared_open_module(struct ssh_shared *shared);

/* A server was just sent something: what can be done before it answers is done a turn later. */
void ssh_shared_idle(struct ssh_shared *shared);
