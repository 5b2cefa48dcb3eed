/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of a host: OpenSSH's defaults when there is no configuration at all, otherwise
 * what `ssh -G` says. `ssh -G` runs once for each host. If the files cannot say different things
 * about different hosts, it runs once for all hosts with the same user, port and key.
 */
#pragma once

#include "transport/ssh/config.h"
#include "transport/transport.h"

struct ssh_query_settings {
    const struct transport_room *room;
    const char *config_file; /* ssh -F; NULL: the user's and the system's */
};

/* A host and what has been said about it, by its entry in the host list or by an option. */
struct ssh_wanted {
    const char *host;
    const char *user;        /* NULL: not said */
    const char *identity;    /* file with the private key; NULL: not said */
    const char *identity_by; /* what named it, for messages */
    int port;                /* 0: not said */
};

struct ssh_queries;
struct ssh_question;

struct ssh_queries *ssh_queries_create(const struct ssh_query_settings *settings);
void ssh_queries_destroy(struct ssh_queries *queries); /* after the questions; accepts NULL */

/* `wanted` is needed during the call only. `done` comes once, from the loop, never from within this
 * call. The configuration is borrowed until the queries are destroyed; NULL: `why` says why. */
struct ssh_question *ssh_query_ask(struct ssh_queries *queries, const struct ssh_wanted *wanted,
                                   void (*done)(void *context, const struct ssh_config *config,
                                                const char *why),
                                   void *context);
/* Due for every question, once, also after its answer; accepts NULL. */
void ssh_question_destroy(struct ssh_question *question);
