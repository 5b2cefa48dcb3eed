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

/*
 * From a connected socket to a session whose command runs. It drives the module's session on the
 * loop, with a deadline for each of its states, and keeps the session until it is destroyed.
 */

struct ssh_login_events {
    void (*state)(void *context, enum ssh_state state); /* a new one, not a final one */
    /* Once: SSH_STATE_OPEN, or a final one with one line that says why. The login may be
     * destroyed in here. */
    void (*done)(void *context, enum ssh_state state, const char *why);
};

struct ssh_login {
    const struct ssh_module *module;
    struct ssh_session *session;
    struct loop_fd *watch;
    struct loop_timer *timer; /* the state's deadline */
    struct loop_timer *first; /* sets off from the loop */
    enum ssh_state state;
    int64_t limit_ms;
    struct ssh_login_events events;
    void *context;
};

static void finish(struct ssh_login *login, enum ssh_state state, const char *why)
{
    loop_fd_destroy(login->watch);
    login->watch = NULL;
    loop_timer_clear(login->timer);
    login->events.done(login->context, state, why);
}

static void login_run(struct ssh_login *login)
{
    enum ssh_state state = login->module->advance(login->session);
    if (state >= SSH_STATE_OPEN) {
        finish(login, state,
               state == SSH_STATE_OPEN ? NULL : login->module->problem(login->session));
        return;
    }
    if (state != login->state) {
        login->state = state;
        loop_timer_set(login->timer, login->limit_ms);
        login->events.state(login->context, state);
    }
    loop_fd_watch(login->watch, login->module->wants(login->session));
}

static void login_ready(void *context, int what)
{
    (void)what;
    login_run(context);
}

static void login_first(void *context)
{
    login_run(context);
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
    struct ssh_login *login = context;
    char why[256];
    snprintf(why, sizeof(why), "%s within %.3g s", waiting[login->state],
             (double)login->limit_ms / 1000);
    finish(login, SSH_STATE_FAILED, why);
}

/* `config` and what it points to are borrowed until destroy. */
static struct ssh_login *login_start(struct loop *loop, const struct ssh_module *module,
                                     const struct ssh_host_config *config, int64_t limit_ms,
                                     const struct ssh_login_events *events, void *context)
{
    struct ssh_login *login = mem_alloc(sizeof(*login));
    *login = (struct ssh_login){.module = module,
                                .session = module->create(config),
                                .state = SSH_STATE_HANDSHAKE,
                                .limit_ms = limit_ms,
                                .events = *events,
                                .context = context};
    login->watch = loop_fd_create(loop, config->fd, login_ready, login);
    login->timer = loop_timer_create(loop, login_late, login);
    login->first = loop_timer_create(loop, login_first, login);
    loop_timer_set(login->timer, limit_ms);
    loop_timer_set(login->first, 0);
    return login;
}

static void login_destroy(struct ssh_login *login)
{
    if (login == NULL)
        return;
    loop_fd_destroy(login->watch);
    loop_timer_destroy(login->timer);
    loop_timer_destroy(login->first);
    login->module->destroy(login->session);
    free(login);
}

static struct ssh_session *login_session(const struct ssh_login *login)
{
    return login->session;
}

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

/* The connection: to the host, or to its proxy, and the login over it. */

struct ssh_connection {
    struct ssh_shared *shared;
    const char *asked_name;
    const struct ssh_connection_events *events;
    void *context;
    const struct ssh_config *config;

    bool has_keys; /* they have been looked for; `keys` can still be NULL */
    struct ssh_keys *keys;
    char *no_keys;       /* why there are none */
    char *strict_remedy; /* NULL: unknown host keys are accepted */

    struct dial *dial;
    int fd; /* of our own TCP connection */
    char peer[64];
    struct ssh_proxy *proxy;
    struct ssh_host_config host;
    struct ssh_login *login;
};

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

static void login_state(void *context, enum ssh_state state)
{
    const struct ssh_connection *connection = context;
    if (state == SSH_STATE_CHANNEL)
        connection->events->logged_in(connection->context);
    connection->events->stage(connection->context, login_stage(state));
}

/* The module goes through several states at once, so the last one that it reported may be old. */
static void login_failed(struct ssh_connection *connection, const char *why)
{
    const struct ssh_module *module = connection->shared->module;
    fail(connection, login_stage(module->reached(login_session(connection->login))), why);
}

static void login_done(void *context, enum ssh_state state, const char *why)
{
    struct ssh_connection *connection = context;
    const struct ssh_connection_events *events = connection->events;
    const struct ssh_session *session = login_session(connection->login);
    if (state == SSH_STATE_OPEN) {
        events->logged_in(connection->context);
        events->note(connection->context, connection->shared->module->summary(session));
        events->open(connection->context);
    } else if (state == SSH_STATE_FALLBACK) {
        events->not_ours(connection->context, why);
    } else if (state == SSH_STATE_AGAIN) {
        if (connection->proxy != NULL)
            proxy_cut(connection, why);
        else
            events->dropped(connection->context, why);
    } else {
        login_failed(connection, why);
    }
}

static void log_in(struct ssh_connection *connection, int fd)
{
    static const struct ssh_login_events events = {.state = login_state, .done = login_done};
    const struct ssh_config *config = connection->config;
    bool alias = config->host_key_alias != NULL;
    const struct ssh_settings *settings = connection->shared->settings;
    enum ssh_host_policy policy = ssh_settings_policy(settings, config);
    if (connection->strict_remedy == NULL && policy == SSH_HOST_STRICT)
        connection->strict_remedy = ssh_settings_strict_remedy(settings, config);
    connection->host = (struct ssh_host_config){
        .fd = fd,
        .name = alias ? config->host_key_alias : config->host_name,
        .address = connection->proxy != NULL ? NULL : connection->peer,
        .port = alias ? 22 : config->port,
        .user = config->user,
        .keys = connection->keys,
        .no_keys = connection->no_keys,
        .known_files = connection->shared->known_files,
        .known_hosts = strv_items(&config->known_hosts),
        .policy = policy,
        .strict_remedy = connection->strict_remedy,
        .hash_names = config->hash_names,
        .command = BOOT_COMMAND,
    };
    connection->events->stage(connection->context, STAGE_HANDSHAKE);
    connection->login =
        login_start(connection->shared->loop, connection->shared->module, &connection->host,
                    settings->room->limit_ms, &events, connection);
    ssh_shared_idle(connection->shared);
}

static void take_keys(struct ssh_connection *connection)
{
    const struct ssh_identity identity =
        ssh_identities_find(connection->shared->identities, connection->config);
    for (size_t i = 0; identity.notes != NULL && i < identity.notes->count; i++)
        connection->events->note(connection->context, identity.notes->items[i]);
    connection->has_keys = true;
    connection->keys = identity.keys;
    if (identity.keys == NULL)
        connection->no_keys = mem_strdup(identity.why);
}

/* Opening libssh2 and the keys takes some milliseconds. The server takes more until it says its
 * first word, so the first connection is made before. */
static void log_in_with_keys(struct ssh_connection *connection)
{
    const char *why_not = ssh_shared_open_module(connection->shared);
    if (why_not != NULL) {
        connection->events->not_ours(connection->context, why_not);
        return;
    }
    if (!connection->has_keys)
        take_keys(connection);
    log_in(connection,
           connection->proxy != NULL ? ssh_proxy_fd(connection->proxy) : connection->fd);
}

static void dialled(void *context, const struct dial_result *result)
{
    struct ssh_connection *connection = context;
    connection->dial = NULL;
    if (result->fd < 0) {
        fail(connection, STAGE_CONNECT, result->why);
        return;
    }
    connection->fd = result->fd;
    snprintf(connection->peer, sizeof(connection->peer), "%s", result->peer);
    log_in_with_keys(connection);
}

static void connect_proxy(struct ssh_connection *connection)
{
    const struct ssh_shared *shared = connection->shared;
    struct strv argv AUTO_STRV = STRV_INIT;
    struct error err = ERROR_INIT;
    if (ssh_proxy_argv(connection->config, connection->asked_name, shared->settings->config_file,
                       &argv, &err) == 0)
        connection->proxy =
            ssh_proxy_start(shared->loop, shared->settings->room->helpers, strv_items(&argv), &err);
    if (connection->proxy == NULL)
        fail(connection, STAGE_CONNECT, err.text);
    else
        log_in_with_keys(connection);
}

void ssh_connection_open(struct ssh_connection *connection, const struct ssh_config *config,
                         const struct resolve_result *addresses)
{
    const struct ssh_settings *settings = connection->shared->settings;
    int64_t limit_ms = settings->room->limit_ms;
    connection->config = config;
    if (addresses == NULL) {
        connect_proxy(connection);
        return;
    }
    if (config->connect_timeout_s > 0 && config->connect_timeout_s < limit_ms / 1000)
        limit_ms = (int64_t)config->connect_timeout_s * 1000;
    connection->dial = dial_start(connection->shared->loop, addresses, config->port, "sshd",
                                  limit_ms, ssh_settings_silence_ms(settings), dialled, connection);
}

void ssh_connection_close(struct ssh_connection *connection)
{
    login_destroy(connection->login);
    connection->login = NULL;
    dial_cancel(connection->dial);
    connection->dial = NULL;
    fd_close(&connection->fd);
    ssh_proxy_destroy(connection->proxy);
    connection->proxy = NULL;
}

struct ssh_connection *ssh_connection_create(struct ssh_shared *shared, const char *asked_name,
                                             const struct ssh_connection_events *events,
                                             void *context)
{
    struct ssh_connection *connection = mem_alloc(sizeof(*connection));
    *connection = (struct ssh_connection){
        .shared = shared, .asked_name = asked_name, .events = events, .context = context, .fd = -1};
    return connection;
}

void ssh_connection_destroy(struct ssh_connection *connection)
{
    if (connection == NULL)
        return;
    ssh_connection_close(connection);
    free(connection->no_keys);
    free(connection->strict_remedy);
    free(connection);
}

struct ssh_session *ssh_connection_session(const struct ssh_connection *connection)
{
    return login_session(connection->login);
}

int ssh_connection_fd(const struct ssh_connection *connection)
{
    return connection->host.fd;
}

const char *ssh_connection_peer(const struct ssh_connection *connection)
{
    return connection->peer;
}
