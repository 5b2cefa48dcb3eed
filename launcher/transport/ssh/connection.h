/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection of a call to its server: TCP or a proxy, and the login over it. The keys that the
 * user has for the host are found with the first connection.
 */
#pragma once

#include "transport/ssh/shared.h"
#include "transport/transport.h"

struct ssh_connection;

struct ssh_connection_events {
    void (*stage)(void *context, enum transport_stage stage);
    void (*note)(void *context, const char *line);
    void (*logged_in)(void *context); /* the server is done with the login */

    /* One of these, once after each ssh_connection_open(), perhaps before it returns. All but the
     * first may close the connection; `why` is valid until then. */
    void (*open)(void *context); /* its session has started BOOT_COMMAND */
    void (*failed)(void *context, enum transport_stage stage, const char *why);
    void (*dropped)(void *context, const char *why);  /* the server has too many: try again */
    void (*not_ours)(void *context, const char *why); /* only the ssh program can do it */
};

/* Borrows all; `asked_name` is the host as the user has written it. */
struct ssh_connection *ssh_connection_create(struct ssh_shared *shared, const char *asked_name,
                                             const struct ssh_connection_events *events,
                                             void *context);
void ssh_connection_destroy(struct ssh_connection *connection); /* closes; accepts NULL */

/* `addresses`: NULL, if the configuration has a proxy. Both are borrowed until it is closed. */
void ssh_connection_open(struct ssh_connection *connection, const struct ssh_config *config,
                         const struct resolve_result *addresses);
void ssh_connection_close(struct ssh_connection *connection); /* it can be opened again */

/* Of an open one. */
struct ssh_session *ssh_connection_session(const struct ssh_connection *connection);
int ssh_connection_fd(const struct ssh_connection *connection);
const char *ssh_connection_peer(const struct ssh_connection *connection); /* ""; a proxy is used */
