/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/transports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "transport/boot/boot.h"
#include "transport/dial.h"
#include "transport/ssh/parts.h"

/* One host by the `ssh` program, through the exec transport: for what libssh2 cannot do. */

struct ssh_fallback {
    struct exec_transport exec; /* of this host alone: its words hold what was said about it */
    struct transport_target target;
    struct transport_call *call;
};

static void fallback_destroy(struct ssh_fallback *fallback)
{
    if (fallback == NULL)
        return;
    transport_hang_up(fallback->call);
    exec_transport_close(&fallback->exec);
    strv_destroy(&fallback->exec.words);
    free(fallback);
}

/*
 * One call of the ssh transport: configuration, keys, address, connection, login, agent. The window
 * decides when it may go on (call_go); the loop drives everything else.
 */

struct ssh_call {
    struct transport_call_head head;
    struct ssh_transport *ssh;
    const struct transport_target *target;
    const struct transport_events *events;
    void *events_context;

    struct ssh_ticket *ticket;         /* NULL: up, or over */
    void (*go)(struct ssh_call *call); /* what it does when its turn comes */
    enum transport_stage stage;
    struct ssh_wanted wanted; /* what the job says about the host */
    struct ssh_question *question;
    const struct ssh_config *config; /* borrowed from the queries; NULL: not known yet */
    struct resolve_request *resolving;
    struct resolve_result *addresses;
    char *server; /* what the window counts it under */

    struct ssh_connection connection;
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

static void note(void *context, const char *line)
{
    struct ssh_call *call = context;
    call->events->note(call->events_context, LOG_INFO, line);
}

/* The stream first: it lives on the connection. */
static void close_connection(struct ssh_call *call)
{
    ssh_stream_destroy(call->stream);
    call->stream = NULL;
    ssh_connection_close(&call->connection);
}

/* Its place in the window is for others now. */
static void leave_window(struct ssh_call *call)
{
    ssh_ticket_destroy(call->ticket);
    call->ticket = NULL;
    loop_timer_set(call->ssh->turn, 0);
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
    loop_timer_set(call->ssh->turn, 0);
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

/* They are 4 KiB. */
static void drop_addresses(struct ssh_call *call)
{
    free(call->addresses);
    call->addresses = NULL;
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

/* All is borrowed from the arguments. */
static struct ssh_program program_for(const struct ssh_settings *settings,
                                      const struct ssh_config *config,
                                      const struct ssh_wanted *wanted)
{
    static const char *const checks[] = {
        [SSH_HOST_ACCEPT_NEW] = NULL, [SSH_HOST_STRICT] = "yes", [SSH_HOST_ANY] = "no"};
    return (struct ssh_program){.config_file = settings->config_file,
                                .identity = wanted->identity,
                                .user = wanted->user,
                                .port = wanted->port,
                                .check = checks[ssh_settings_policy(settings, config)],
                                .silence_ms = ssh_settings_silence_ms(settings)};
}

static void start_program(struct ssh_call *call)
{
    static const struct transport_events events = {.stage = forward_stage,
                                                   .up = program_up,
                                                   .failed = forward_failed,
                                                   .lost = forward_lost,
                                                   .note = program_note};
    const struct ssh_settings *settings = call->ssh->settings;
    const struct ssh_program program = program_for(settings, call->config, &call->wanted);
    struct error err = ERROR_INIT;
    struct ssh_fallback *fallback = mem_alloc(sizeof(*fallback));
    struct transport transport = exec_transport(&fallback->exec);
    call->fallback = fallback;
    fallback->exec =
        (struct exec_transport){.room = settings->room, .boot_word = BOOT_COMMAND, .is_ssh = true};
    fallback->target = *call->target;
    fallback->target.user = program.user;
    fallback->target.port = program.port;
    if (ssh_program_words(&program, &fallback->exec.words, &err) < 0)
        fail(call, STAGE_CONNECT, err.text);
    else
        fallback->call = transport_call(&transport, &fallback->target, &events, call);
}

static void fall_back(void *context, const char *why)
{
    struct ssh_call *call = context;
    char line[512];
    snprintf(line, sizeof(line), "hvdrun uses the ssh program for this host: %s", why);
    close_connection(call);
    drop_addresses(call);
    note(call, line);
    if (call->server == NULL) {
        const struct ssh_config *config = call->config;
        call->server =
            mem_strdup(config->proxy_jump != NULL ? config->proxy_jump : config->host_name);
    }
    wait_for_turn(call, start_program);
}

static void stream_up(void *context, int fd)
{
    struct ssh_call *call = context;
    struct transport_stream stream = {.read_fd = fd, .write_fd = fd};
    const char *peer = call->connection.peer;
    snprintf(stream.peer, sizeof(stream.peer), "%s", peer);
    if (call->config != NULL && peer[0] != '\0')
        stream.peer_port = call->config->port;
    drop_addresses(call);
    leave_window(call);
    call->events->up(call->events_context, &stream);
}

static void stream_line(void *context, const char *line)
{
    struct ssh_call *call = context;
    bool is_up = call->ticket == NULL; /* before, it is part of the message if it fails */
    call->events->note(call->events_context, is_up ? LOG_NOTICE : LOG_INFO, line);
}

static void start_stream(void *context)
{
    struct ssh_call *call = context;
    static const struct ssh_stream_events events = {.stage = forward_stage,
                                                    .up = stream_up,
                                                    .failed = forward_failed,
                                                    .lost = forward_lost,
                                                    .line = stream_line};
    struct error err = ERROR_INIT;
    set_stage(call, STAGE_START);
    call->stream =
        ssh_stream_create(call->ssh->settings->room, call->ssh->module, call->connection.session,
                          call->connection.host.fd, call->target->node, &events, call, &err);
    if (call->stream == NULL)
        fail(call, STAGE_START, err.text);
}

static void connect_host(struct ssh_call *call);

static void rest_over(void *context)
{
    wait_for_turn(context, connect_host);
}

/* The server (or the jump host) has too many half-open logins: later, and fewer at once. */
static void try_again(void *context, const char *why)
{
    struct ssh_call *call = context;
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
    loop_timer_set(call->ssh->turn, 0);
    set_stage(call, STAGE_WAITING);
    loop_timer_set(call->rest, ssh_retry_delay_ms(call->retries, random));
}

static void logged_in(void *context)
{
    struct ssh_call *call = context;
    ssh_ticket_logged_in(call->ticket);
    loop_timer_set(call->ssh->turn, 0);
}

static void connect_host(struct ssh_call *call)
{
    set_stage(call, STAGE_CONNECT);
    ssh_connection_open(&call->connection, call->config, call->addresses);
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
    call->resolving = resolver_ask(call->ssh->resolver, config->host_name, config->family,
                                   call->ssh->settings->room->limit_ms, resolved, call);
}

static void configured(void *context, const struct ssh_config *config, const char *why)
{
    struct ssh_call *call = context;
    if (config == NULL) {
        fail(call, STAGE_CONFIG, why);
        return;
    }
    call->config = config;
    if (call->ssh->why_not != NULL)
        fall_back(call, call->ssh->why_not);
    else if (config->not_ours != NULL)
        fall_back(call, config->not_ours);
    else if (call->ssh->settings->program_only)
        fall_back(call, "--transport ssh-cli");
    else
        find_way(call);
}

static void ask_config(struct ssh_call *call)
{
    set_stage(call, STAGE_CONFIG);
    call->question = ssh_query_ask(call->ssh->queries, &call->wanted, configured, call);
}

/* The host's entry in the host list counts more than the options. All is borrowed from both. */
static struct ssh_wanted wanted_of(const struct ssh_settings *settings,
                                   const struct transport_target *host)
{
    bool own_identity = host->identity != NULL;
    return (struct ssh_wanted){.host = host->address != NULL ? host->address : host->host,
                               .user = host->user != NULL ? host->user : settings->user,
                               .identity = own_identity ? host->identity : settings->identity,
                               .identity_by = own_identity ? "identity in the host list"
                                                           : "--ssh-identity-file",
                               .port = host->port > 0 ? host->port : settings->port};
}

static struct transport_call *ops_call(void *context, const struct transport_target *target,
                                       const struct transport_events *events, void *events_context)
{
    static const struct ssh_connection_events connection_events = {.stage = forward_stage,
                                                                   .note = note,
                                                                   .logged_in = logged_in,
                                                                   .open = start_stream,
                                                                   .failed = forward_failed,
                                                                   .dropped = try_again,
                                                                   .not_ours = fall_back};
    struct ssh_transport *ssh = context;
    struct ssh_call *call = MEM_NEW((struct ssh_call){.head = {ssh_transport(ssh).ops},
                                                      .ssh = ssh,
                                                      .target = target,
                                                      .wanted = wanted_of(ssh->settings, target),
                                                      .events = events,
                                                      .events_context = events_context,
                                                      .go = ask_config,
                                                      .stage = STAGE_WAITING});
    call->connection = (struct ssh_connection){
        .ssh = ssh, .asked_name = call->wanted.host, .events = &connection_events, .context = call};
    call->ticket = ssh_ticket_create(ssh->window, call);
    call->rest = loop_timer_create(ssh->loop, rest_over, call);
    loop_timer_set(ssh->turn, 0);
    return (struct transport_call *)call;
}

static void ops_hang_up(struct transport_call *transport_call)
{
    struct ssh_call *call = (struct ssh_call *)transport_call;
    fallback_destroy(call->fallback);
    close_connection(call);
    if (call->ticket != NULL)
        leave_window(call);
    ssh_question_destroy(call->question);
    resolver_cancel(call->resolving);
    loop_timer_destroy(call->rest);
    free(call->addresses);
    free(call->server);
    free(call);
}

/* The transport. */

static void turn_fire(void *context)
{
    struct ssh_transport *ssh = context;
    ssh_shared_open_resolver(ssh);
    /* One call per turn: it may report, and its owner may hang up others or us. */
    struct ssh_call *call = ssh_window_next(ssh->window);
    if (call == NULL)
        return;
    loop_timer_set(ssh->turn, 0);
    call->go(call);
}

static void idle_fire(void *context)
{
    const struct ssh_transport *ssh = context;
    agent_image_hash(ssh->settings->room->image);
}

struct ssh_transport *ssh_transport_create(const struct ssh_settings *settings)
{
    struct ssh_transport *ssh =
        MEM_NEW((struct ssh_transport){.settings = settings,
                                       .loop = settings->room->loop,
                                       .window = ssh_window_create(settings->window),
                                       .queries = ssh_queries_create(settings)});
    ssh->turn = loop_timer_create(ssh->loop, turn_fire, ssh);
    ssh->idle = loop_timer_create(ssh->loop, idle_fire, ssh);
    return ssh;
}

void ssh_transport_destroy(struct ssh_transport *ssh)
{
    if (ssh == NULL)
        return;
    loop_timer_destroy(ssh->turn);
    loop_timer_destroy(ssh->idle);
    ssh_window_destroy(ssh->window);
    ssh_queries_destroy(ssh->queries);
    resolver_destroy(ssh->resolver);
    ssh_shared_forget_keys(ssh);
    if (ssh->module != NULL)
        ssh->module->known_files_destroy(ssh->known_files);
    free(ssh->why_not);
    free(ssh);
}

struct transport ssh_transport(struct ssh_transport *ssh)
{
    static const struct transport_ops ops = {.call = ops_call, .hang_up = ops_hang_up};
    return (struct transport){.ops = &ops, .context = ssh};
}
