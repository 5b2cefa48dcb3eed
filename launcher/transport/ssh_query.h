/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of a host: OpenSSH's defaults when there is no configuration at all, otherwise
 * what `ssh -G` says, run once for each distinct host, user and port.
 */
#pragma once

#include "transport/exec.h"
#include "transport/ssh_config.h"

struct ssh_query_settings {
    const struct transport_room *room;
    const char *config_file; /* ssh -F; NULL: the user's and the system's */
    const char *identity;    /* ssh -i; NULL */
};

struct ssh_queries;
struct ssh_question;

struct ssh_queries *ssh_queries_create(const struct ssh_query_settings *settings);
void ssh_queries_destroy(struct ssh_queries *queries); /* after the questions; accepts NULL */

/* `user` NULL and `port` 0: not said. `done` comes once, from the loop, never from within this
 * call. The configuration is borrowed until the queries are destroyed; NULL: `why` says why. */
struct ssh_question *
ssh_query_ask(struct ssh_queries *queries, const char *host, const char *user, int port,
              void (*done)(void *context, const struct ssh_config *config, const char *why),
              void *context);
/* Due for every question, once, also after its answer; accepts NULL. */
void ssh_question_destroy(struct ssh_question *question);
