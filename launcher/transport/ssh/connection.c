/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/parts.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/loop.h"
#include "transport/boot/boot.h"
#include "transport/dial.h"
#include "transport/ssh_module/ssh_module.h"
#include "transport/transport.h"

/* What a call is at, for its user. */
static enum transport_stage login_stage(enum ssh_state state)
{
    switch (state) {
    case SSH_STATE_HOST_KEY: return STAGE_HOST_KEY;
    case SSH_STATE_AUTH: return STAGE_AUTH;
    case SSH_STATE_CHANNEL: return STAGE_START;
    default: return STAGE_HANDSHAKE;
    }
}

static void fail(struct ssh_connection *connection, enum transport_stage stage, const char *why)
{
    connection->events->failed(connection->context, stage, why);
}

/* A proxy that could not connect ends just like a server that cuts us off. */
static void proxy_cut(struct ssh_connection *connection, const char *why)
{
    const char *last = ssh_proxy_last_line(connection->proxy);
    AUTO_FREE char *line = mem_printf("the proxy ended: %s", last);
    if (ssh_proxy_was_cut(connection->proxy))
        connection->events->dropped(connection->context, why);
    else
        fail(connection, STAGE_CONNECT, line);
}

/* The session drives no more: its connection may be closed in the event that follows. */
static void stop_driving(struct ssh_connection *connection)
{
    loop_fd_destroy(connection->watch);
    connection->watch = NULL;
    loop_timer_clear(connection->deadline);
}

static void login_done(struct ssh_connection *connection, enum ssh_state state)
{
    const struct ssh_connection_events *events = connection->events;
    const struct ssh_module *module = connection->ssh->module;
    struct ssh_session *session = connection->session;
    if (state == SSH_STATE_OPEN) {
        events->logged_in(connection->context);
        events->note(connection->context, module->summary(session));
        events->open(connection->context);
    } else if (state == SSH_STATE_FALLBACK) {
        events->not_ours(connection->context, module->problem(session));
    } else if (state != SSH_STATE_AGAIN) {
        /* It goes through several states at once, so the last one that was told may be old. */
        fail(connection, login_stage(module->reached(session)), module->problem(session));
    } else if (connection->proxy != NULL) {
        proxy_cut(connection, module->problem(session));
    } else {
        events->dropped(connection->context, module->problem(session));
    }
}

/* Drives the session on the loop, with a deadline for each of its states. */
static void advance(void *context)
{
    struct ssh_connection *connection = context;
    const struct ssh_connection_events *events = connection->events;
    enum ssh_state state = connection->ssh->module->advance(connection->session);
    if (state >= SSH_STATE_OPEN) {
        stop_driving(connection);
        login_done(connection, state);
        return;
    }
    if (state != connection->state) {
        connection->state = state;
        loop_timer_set(connection->deadline, connection->ssh->settings->room->limit_ms);
        if (state == SSH_STATE_CHANNEL)
            events->logged_in(connection->context);
        events->stage(connection->context, login_stage(state));
    }
    loop_fd_watch(connection->watch, connection->ssh->module->wants(connection->session));
}

static void socket_ready(void *context, int what)
{
    (void)what;
    advance(context);
}

static void login_late(void *context)
{
    static const char *const waiting[] = {
        [SSH_STATE_HANDSHAKE] = "the ssh handshake did not end (is it an ssh server? is it "
                                "overloaded?)",
        [SSH_STATE_HOST_KEY] = "the host key could not be checked",
        [SSH_STATE_AUTH] = "the login did not end (is the server overloaded, or its account "
                           "service down?)",
        [SSH_STATE_CHANNEL] = "no shell was started after the login",
    };
    struct ssh_connection *connection = context;
    char *why AUTO_FREE = mem_printf("%s within %.3g s", waiting[connection->state],
                                     (double)connection->ssh->settings->room->limit_ms / 1000);
    stop_driving(connection);
    fail(connection, login_stage(connection->state), why);
}

/* What makes hvdrun refuse unknown keys, and how to change it: an option, the configuration, or
 * both. The caller owns it. */
static char *strict_remedy(const struct ssh_settings *settings, const struct ssh_config *config)
{
    const char *file = settings->config_file != NULL
                           ? settings->config_file
                           : "your ssh configuration (~/.ssh/config or /etc/ssh/ssh_config)";
    if (settings->strict && config->policy != SSH_HOST_STRICT)
        return mem_strdup("connect once without --ssh-strict");
    return mem_printf("change StrictHostKeyChecking yes to accept-new in %s%s", file,
                      settings->strict ? " and leave out --ssh-strict" : "");
}

static void log_in(struct ssh_connection *connection, int fd)
{
    struct ssh_transport *ssh = connection->ssh;
    const struct ssh_config *config = connection->config;
    const struct ssh_module *module = ssh->module;
    bool alias = config->host_key_alias != NULL;
    enum ssh_host_policy policy = ssh_settings_policy(ssh->settings, config);
    if (connection->strict_remedy == NULL && policy == SSH_HOST_STRICT)
        connection->strict_remedy = strict_remedy(ssh->settings, config);
    connection->host = (struct ssh_host_config){
        .fd = fd,
        .name = alias ? config->host_key_alias : config->host_name,
        .address = connection->proxy != NULL ? NULL : connection->peer,
        .port = alias ? 22 : config->port,
        .user = config->user,
        .keys = connection->keys->keys,
        .no_keys = connection->keys->why,
        .known_files = ssh->known_files,
        .known_hosts = strv_items(&config->known_hosts),
        .policy = policy,
        .strict_remedy = connection->strict_remedy,
        .hash_names = config->hash_names,
        .command = BOOT_COMMAND,
    };
    connection->events->stage(connection->context, STAGE_HANDSHAKE);
    connection->session = module->create(&connection->host);
    connection->state = SSH_STATE_HANDSHAKE;
    connection->watch = loop_fd_create(ssh->loop, fd, socket_ready, connection);
    connection->deadline = loop_timer_create(ssh->loop, login_late, connection);
    connection->first = loop_timer_create(ssh->loop, advance, connection);
    loop_timer_set(connection->deadline, ssh->settings->room->limit_ms);
    loop_timer_set(connection->first, 0);
    loop_timer_set(ssh->idle, 0);
}

/* Opening libssh2 and the keys takes some milliseconds. The server takes more until it says its
 * first word, so the first connection is made before. */
static void log_in_with_keys(struct ssh_connection *connection, int fd)
{
    const char *why_not = ssh_shared_open_module(connection->ssh);
    if (why_not != NULL) {
        connection->events->not_ours(connection->context, why_not);
        return;
    }
    if (connection->keys == NULL)
        connection->keys = ssh_shared_keys(connection->ssh, connection->config);
    struct strv notes AUTO_STRV = connection->keys->notes;
    connection->keys->notes = (struct strv)STRV_INIT;
    for (size_t i = 0; i < notes.count; i++)
        connection->events->note(connection->context, notes.items[i]);
    log_in(connection, fd);
}

static void dialled(void *context, const struct dial_result *result)
{
    struct ssh_connection *connection = context;
    connection->dial = NULL;
    if (result->fd < 0) {
        fail(connection, STAGE_CONNECT, result->why);
        return;
    }
    connection->host.fd = result->fd;
    connection->has_socket = true;
    snprintf(connection->peer, sizeof(connection->peer), "%s", result->peer);
    log_in_with_keys(connection, result->fd);
}

static void connect_proxy(struct ssh_connection *connection)
{
    const struct ssh_settings *settings = connection->ssh->settings;
    struct strv argv AUTO_STRV = STRV_INIT;
    struct error err = ERROR_INIT;
    if (ssh_proxy_argv(connection->config, connection->asked_name, settings->config_file, &argv,
                       &err) == 0)
        connection->proxy =
            ssh_proxy_start(settings->room->loop, settings->room->helpers, strv_items(&argv), &err);
    if (connection->proxy == NULL)
        fail(connection, STAGE_CONNECT, err.text);
    else
        log_in_with_keys(connection, ssh_proxy_fd(connection->proxy));
}

void ssh_connection_open(struct ssh_connection *connection, const struct ssh_config *config,
                         const struct resolve_result *addresses)
{
    const struct ssh_settings *settings = connection->ssh->settings;
    int64_t limit_ms = settings->room->limit_ms;
    connection->config = config;
    if (addresses == NULL) {
        connect_proxy(connection);
        return;
    }
    if (config->connect_timeout_s > 0 && config->connect_timeout_s < limit_ms / 1000)
        limit_ms = (int64_t)config->connect_timeout_s * 1000;
    connection->dial = dial_start(connection->ssh->loop, addresses, config->port, limit_ms,
                                  ssh_settings_silence_ms(settings), dialled, connection);
}

void ssh_connection_close(struct ssh_connection *connection)
{
    loop_fd_destroy(connection->watch);
    loop_timer_destroy(connection->deadline);
    loop_timer_destroy(connection->first);
    connection->watch = NULL;
    connection->deadline = connection->first = NULL;
    if (connection->session != NULL)
        connection->ssh->module->destroy(connection->session);
    connection->session = NULL;
    dial_cancel(connection->dial);
    connection->dial = NULL;
    if (connection->has_socket)
        fd_close(&connection->host.fd);
    connection->has_socket = false;
    ssh_proxy_destroy(connection->proxy);
    connection->proxy = NULL;
    free(connection->strict_remedy);
    connection->strict_remedy = NULL;
}
