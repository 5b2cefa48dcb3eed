/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/fd.h"
#include "base/mem.h"
#include "transport/dial.h"
#include "transport/ssh/fallback.h"
#include "transport/ssh/login.h"
#include "transport/ssh/proxy.h"
#include "transport/ssh/stream.h"

struct ssh_call {
    struct transport_call_head head;
    struct ssh_shared *shared;
    const struct transport_target *target;
    const struct transport_events *events;
    void *events_context;

    struct ssh_ticket *ticket;         /* NULL: up, or over */
    void (*go)(struct ssh_call *call); /* what it does when its turn comes */
    enum transport_stage stage;
    struct ssh_wanted wanted; /* what the job says about the host */
    struct ssh_question *question;
    const struct ssh_config *config; /* borrowed from the queries; NULL: not known yet */
    bool has_keys;                   /* they have been looked for; `keys` can still be NULL */
    struct ssh_keys *keys;
    char *no_keys;       /* why there are none */
    char *strict_remedy; /* NULL: unknown host keys are accepted */
    struct resolve_request *resolving;
    struct resolve_result *addresses;
    char *server; /* what the window counts it under */

    struct dial *dial;
    int fd; /* of our own TCP connection */
    char peer[64];
    struct ssh_proxy *proxy;
    struct ssh_host_config host;
    struct ssh_login *login;
    int retries;
    struct loop_timer *rest; /* until the next try */

    struct ssh_stream *stream;
    struct ssh_fallback *fallback; /* the ssh program instead */
};

static void set_stage(struct ssh_call *call, enum transport_stage stage)
{
    if (call->stage == stage)
        return;
    call->stage = stage;
    call->events->stage(call->events_context, stage);
}

static void note(struct ssh_call *call, const char *line)
{
    call->events->note(call->events_context, LOG_INFO, line);
}

/* Connection and login, whatever has been reached of them. The stream first: it lives on both. */
static void close_connection(struct ssh_call *call)
{
    ssh_stream_destroy(call->stream);
    call->stream = NULL;
    ssh_login_destroy(call->login);
    call->login = NULL;
    dial_cancel(call->dial);
    call->dial = NULL;
    fd_close(&call->fd);
    ssh_proxy_destroy(call->proxy);
    call->proxy = NULL;
}

/* Its place in the window is for others now. */
static void leave_window(struct ssh_call *call)
{
    ssh_ticket_destroy(call->ticket);
    call->ticket = NULL;
    ssh_shared_schedule(call->shared);
}

static void fail(struct ssh_call *call, enum transport_stage stage, const char *why)
{
    AUTO_FREE char *line = mem_strdup(why); /* it may lie in what is closed now */
    close_connection(call);
    leave_window(call);
    call->events->failed(call->events_context, stage, line);
}

static void wait_for_turn(struct ssh_call *call, void (*go)(struct ssh_call *))
{
    call->go = go;
    ssh_ticket_wait(call->ticket, call->server);
    ssh_shared_schedule(call->shared);
}

static void forward_stage(void *context, enum transport_stage stage)
{
    set_stage(context, stage);
}

static void forward_failed(void *context, enum transport_stage stage, const char *why)
{
    fail(context, stage, why);
}

static void forward_lost(void *context, const char *why)
{
    struct ssh_call *call = context;
    call->events->lost(call->events_context, why);
}

static void program_up(void *context, const struct transport_stream *stream)
{
    struct ssh_call *call = context;
    leave_window(call);
    call->events->up(call->events_context, stream);
}

static void program_note(void *context, enum log_level level, const char *line)
{
    struct ssh_call *call = context;
    call->events->note(call->events_context, level, line);
}

static void start_program(struct ssh_call *call)
{
    static const struct transport_events events = {.stage = forward_stage,
                                                   .up = program_up,
                                                   .failed = forward_failed,
                                                   .lost = forward_lost,
                                                   .note = program_note};
    const struct ssh_settings *settings = call->shared->settings;
    const struct ssh_program program = ssh_settings_program(settings, call->config, &call->wanted);
    struct error err = ERROR_INIT;
    call->fallback =
        ssh_fallback_start(settings->room, &program, call->target, &events, call, &err);
    if (call->fallback == NULL)
        fail(call, STAGE_CONNECT, err.text);
}

static void fall_back(struct ssh_call *call, const char *why)
{
    char line[512];
    snprintf(line, sizeof(line), "hvdrun uses the ssh program for this host: %s", why);
    close_connection(call);
    note(call, line);
    if (call->server == NULL) {
        const struct ssh_config *config = call->config;
        call->server = config->proxy_jump != NULL ? mem_strdup(config->proxy_jump)
                                                  : mem_strdup(config->host_name);
    }
    wait_for_turn(call, start_program);
}

static void stream_up(void *context, int fd)
{
    struct ssh_call *call = context;
    struct transport_stream stream = {.read_fd = fd, .write_fd = fd};
    snprintf(stream.peer, sizeof(stream.peer), "%s", call->peer);
    if (call->config != NULL && call->peer[0] != '\0')
        stream.peer_port = call->config->port;
    leave_window(call);
    call->events->up(call->events_context, &stream);
}

static void stream_line(void *context, const char *line)
{
    struct ssh_call *call = context;
    bool is_up = call->ticket == NULL; /* before, it is part of the message if it fails */
    call->events->note(call->events_context, is_up ? LOG_NOTICE : LOG_INFO, line);
}

static void start_stream(struct ssh_call *call)
{
    static const struct ssh_stream_events events = {.stage = forward_stage,
                                                    .up = stream_up,
                                                    .failed = forward_failed,
                                                    .lost = forward_lost,
                                                    .line = stream_line};
    struct error err = ERROR_INIT;
    set_stage(call, STAGE_START);
    call->stream = ssh_stream_create(call->shared->settings->room, call->shared->module,
                                     ssh_login_session(call->login), call->host.fd,
                                     call->target->node, &events, call, &err);
    if (call->stream == NULL)
        fail(call, STAGE_START, err.text);
}

static void connect_host(struct ssh_call *call);

static void rest_over(void *context)
{
    wait_for_turn(context, connect_host);
}

/* The server (or the jump host) has too many half-open logins: later, and fewer at once. */
static void try_again(struct ssh_call *call, const char *why)
{
    if (call->retries == SSH_RETRIES_MAX) {
        char line[512];
        snprintf(line, sizeof(line), "%s (tried %d times)", why, call->retries + 1);
        fail(call, STAGE_HANDSHAKE, line);
        return;
    }
    uint32_t random = 0;
    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
        random = (uint32_t)call->target->node * 2654435761u;
    call->retries++;
    close_connection(call);
    ssh_ticket_dropped(call->ticket);
    ssh_ticket_rest(call->ticket);
    ssh_shared_schedule(call->shared);
    set_stage(call, STAGE_WAITING);
    loop_timer_set(call->rest, ssh_retry_delay_ms(call->retries, random));
}

/* A proxy that could not connect ends just like a server that cuts us off. */
static void proxy_cut(struct ssh_call *call, const char *why)
{
    const char *last = ssh_proxy_last_line(call->proxy);
    AUTO_FREE char *line = mem_printf("the proxy ended: %s", last);
    if (ssh_proxy_was_cut(call->proxy))
        try_again(call, why);
    else
        fail(call, STAGE_CONNECT, line);
}

static void login_state(void *context, enum ssh_state state)
{
    struct ssh_call *call = context;
    if (state == SSH_STATE_CHANNEL) {
        ssh_ticket_logged_in(call->ticket);
        ssh_shared_schedule(call->shared);
    }
    set_stage(call, ssh_login_stage(state));
}

/* The module goes through several states at once, so the last one that it reported may be old. */
static void login_failed(struct ssh_call *call, const char *why)
{
    const struct ssh_module *module = call->shared->module;
    enum transport_stage stage = ssh_login_stage(module->reached(ssh_login_session(call->login)));
    fail(call, stage, why);
}

static void login_done(void *context, enum ssh_state state, const char *why)
{
    struct ssh_call *call = context;
    if (state == SSH_STATE_OPEN) {
        ssh_ticket_logged_in(call->ticket);
        ssh_shared_schedule(call->shared);
        note(call, call->shared->module->summary(ssh_login_session(call->login)));
        start_stream(call);
    } else if (state == SSH_STATE_FALLBACK) {
        fall_back(call, why);
    } else if (state == SSH_STATE_AGAIN) {
        if (call->proxy != NULL)
            proxy_cut(call, why);
        else
            try_again(call, why);
    } else {
        login_failed(call, why);
    }
}

static void log_in(struct ssh_call *call, int fd)
{
    static const struct ssh_login_events events = {.state = login_state, .done = login_done};
    const struct ssh_config *config = call->config;
    bool alias = config->host_key_alias != NULL;
    const struct ssh_settings *settings = call->shared->settings;
    enum ssh_host_policy policy = ssh_settings_policy(settings, config);
    if (call->strict_remedy == NULL && policy == SSH_HOST_STRICT)
        call->strict_remedy = ssh_settings_strict_remedy(settings, config);
    call->host = (struct ssh_host_config){
        .fd = fd,
        .name = alias ? config->host_key_alias : config->host_name,
        .address = call->proxy != NULL ? NULL : call->peer,
        .port = alias ? 22 : config->port,
        .user = config->user,
        .keys = call->keys,
        .no_keys = call->no_keys,
        .known_files = call->shared->known_files,
        .known_hosts = strv_items(&config->known_hosts),
        .policy = policy,
        .strict_remedy = call->strict_remedy,
        .hash_names = config->hash_names,
        .command = BOOT_COMMAND,
    };
    set_stage(call, STAGE_HANDSHAKE);
    call->login = ssh_login_start(call->shared->loop, call->shared->module, &call->host,
                                  settings->room->limit_ms, &events, call);
    ssh_shared_idle(call->shared);
}

static void take_keys(struct ssh_call *call)
{
    const struct ssh_identity identity =
        ssh_identities_find(call->shared->identities, call->config);
    for (size_t i = 0; identity.notes != NULL && i < identity.notes->count; i++)
        note(call, identity.notes->items[i]);
    call->has_keys = true;
    call->keys = identity.keys;
    if (identity.keys == NULL)
        call->no_keys = mem_strdup(identity.why);
}

/* Opening libssh2 and the keys takes some milliseconds. The server takes more until it says its
 * first word, so the first connection is made before. */
static void log_in_with_keys(struct ssh_call *call)
{
    const char *why_not = ssh_shared_open_module(call->shared);
    if (why_not != NULL) {
        fall_back(call, why_not);
        return;
    }
    if (!call->has_keys)
        take_keys(call);
    log_in(call, call->proxy != NULL ? ssh_proxy_fd(call->proxy) : call->fd);
}

static void dialled(void *context, const struct dial_result *result)
{
    struct ssh_call *call = context;
    call->dial = NULL;
    if (result->fd < 0) {
        fail(call, STAGE_CONNECT, result->why);
        return;
    }
    call->fd = result->fd;
    snprintf(call->peer, sizeof(call->peer), "%s", result->peer);
    log_in_with_keys(call);
}

static void connect_proxy(struct ssh_call *call)
{
    const struct ssh_settings *settings = call->shared->settings;
    struct strv argv AUTO_STRV = STRV_INIT;
    struct error err = ERROR_INIT;
    if (ssh_proxy_argv(call->config, call->wanted.host, settings->config_file, &argv, &err) == 0)
        call->proxy =
            ssh_proxy_start(call->shared->loop, settings->room->helpers, strv_items(&argv), &err);
    if (call->proxy == NULL)
        fail(call, STAGE_CONNECT, err.text);
    else
        log_in_with_keys(call);
}

static void connect_host(struct ssh_call *call)
{
    const struct ssh_config *config = call->config;
    int64_t limit_ms = call->shared->settings->room->limit_ms;
    set_stage(call, STAGE_CONNECT);
    if (call->addresses == NULL) {
        connect_proxy(call);
        return;
    }
    if (config->connect_timeout_s > 0 && config->connect_timeout_s < limit_ms / 1000)
        limit_ms = (int64_t)config->connect_timeout_s * 1000;
    call->dial = dial_start(call->shared->loop, call->addresses, config->port, "sshd", limit_ms,
                            ssh_settings_silence_ms(call->shared->settings), dialled, call);
}

static void resolved(void *context, const struct resolve_result *result)
{
    struct ssh_call *call = context;
    call->resolving = NULL;
    if (result->count == 0) {
        fail(call, STAGE_RESOLVE, result->why);
        return;
    }
    char address[64];
    dial_address_text(&result->addresses[0], address, sizeof(address));
    call->addresses = mem_dup(result, sizeof(*result));
    call->server = mem_printf("%s|%d", address, call->config->port);
    set_stage(call, STAGE_WAITING);
    wait_for_turn(call, connect_host);
}

static void find_way(struct ssh_call *call)
{
    const struct ssh_config *config = call->config;
    if (config->proxy_jump != NULL || config->proxy_command != NULL) {
        /* One jump host serves many hosts; a command may lead anywhere, so it counts by its text.
         */
        call->server =
            mem_strdup(config->proxy_jump != NULL ? config->proxy_jump : config->proxy_command);
        set_stage(call, STAGE_WAITING);
        wait_for_turn(call, connect_host);
        return;
    }
    set_stage(call, STAGE_RESOLVE);
    call->resolving = resolver_ask(call->shared->resolver, config->host_name, config->family,
                                   call->shared->settings->room->limit_ms, resolved, call);
}

static void configured(void *context, const struct ssh_config *config, const char *why)
{
    struct ssh_call *call = context;
    if (config == NULL) {
        fail(call, STAGE_CONFIG, why);
        return;
    }
    call->config = config;
    if (call->shared->why_not != NULL)
        fall_back(call, call->shared->why_not);
    else if (config->not_ours != NULL)
        fall_back(call, config->not_ours);
    else if (call->shared->settings->program_only)
        fall_back(call, "--transport ssh-cli");
    else
        find_way(call);
}

static void ask_config(struct ssh_call *call)
{
    set_stage(call, STAGE_CONFIG);
    call->question = ssh_query_ask(call->shared->queries, &call->wanted, configured, call);
}

struct ssh_call *ssh_call_create(struct ssh_shared *shared, const struct transport_target *target,
                                 const struct transport_events *events, void *events_context)
{
    struct ssh_call *call = mem_alloc(sizeof(*call));
    *call = (struct ssh_call){.shared = shared,
                              .target = target,
                              .wanted = ssh_settings_wanted(shared->settings, target),
                              .events = events,
                              .events_context = events_context,
                              .go = ask_config,
                              .stage = STAGE_WAITING,
                              .fd = -1};
    call->ticket = ssh_ticket_create(shared->window, call);
    call->rest = loop_timer_create(shared->loop, rest_over, call);
    return call;
}

void ssh_call_destroy(struct ssh_call *call)
{
    if (call == NULL)
        return;
    ssh_fallback_destroy(call->fallback);
    close_connection(call);
    if (call->ticket != NULL)
        leave_window(call);
    ssh_question_destroy(call->question);
    resolver_cancel(call->resolving);
    loop_timer_destroy(call->rest);
    free(call->addresses);
    free(call->server);
    free(call->no_keys);
    free(call->strict_remedy);
    free(call);
}

void ssh_call_go(struct ssh_call *call)
{
    call->go(call);
}
