/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/ssh.h"

#include <stdlib.h>

#include "base/mem.h"
#include "transport/ssh/call.h"
#include "transport/ssh/library.h"

const char *ssh_transport_open_module(struct ssh_transport *ssh)
{
    struct error err = ERROR_INIT;
    if (ssh->module != NULL || ssh->why_not != NULL)
        return ssh->why_not;
    ssh->module = ssh_library_open(ssh->settings->module_path, &err);
    if (ssh->module == NULL) {
        ssh->why_not = mem_strdup(err.text);
        return ssh->why_not;
    }
    ssh->known_files = ssh->module->known_files_create();
    ssh->identities = ssh_identities_create(ssh->module);
    return NULL;
}

static void idle_fire(void *context)
{
    const struct ssh_transport *ssh = context;
    agent_image_hash(ssh->settings->room->image);
}

void ssh_transport_idle(struct ssh_transport *ssh)
{
    loop_timer_set(ssh->idle, 0);
}

static void begin(struct ssh_transport *ssh)
{
    struct error err = ERROR_INIT;
    ssh->resolver = resolver_create(ssh->loop, NULL, &err);
    if (ssh->resolver == NULL)
        ssh->why_not = mem_strdup(err.text);
}

static void schedule_fire(void *context)
{
    struct ssh_transport *ssh = context;
    if (ssh->resolver == NULL && ssh->why_not == NULL)
        begin(ssh);
    /* One call per turn: it may report, and its owner may hang up others or us. */
    struct ssh_call *call = ssh_window_next(ssh->window);
    if (call == NULL)
        return;
    loop_timer_set(ssh->schedule, 0);
    ssh_call_go(call);
}

void ssh_transport_schedule(struct ssh_transport *ssh)
{
    loop_timer_set(ssh->schedule, 0);
}

struct ssh_transport *ssh_transport_create(const struct ssh_settings *settings)
{
    struct ssh_transport *ssh = mem_alloc(sizeof(*ssh));
    *ssh = (struct ssh_transport){
        .settings = settings,
        .loop = settings->room->loop,
        .window = ssh_window_create(settings->window),
        .query_settings = {.room = settings->room, .config_file = settings->config_file},
    };
    ssh->queries = ssh_queries_create(&ssh->query_settings);
    ssh->schedule = loop_timer_create(ssh->loop, schedule_fire, ssh);
    ssh->idle = loop_timer_create(ssh->loop, idle_fire, ssh);
    return ssh;
}

void ssh_transport_destroy(struct ssh_transport *ssh)
{
    if (ssh == NULL)
        return;
    loop_timer_destroy(ssh->schedule);
    loop_timer_destroy(ssh->idle);
    ssh_window_destroy(ssh->window);
    ssh_queries_destroy(ssh->queries);
    resolver_destroy(ssh->resolver);
    ssh_identities_destroy(ssh->identities);
    if (ssh->module != NULL)
        ssh->module->known_files_destroy(ssh->known_files);
    free(ssh->why_not);
    free(ssh);
}

static struct transport_call *ssh_ops_call(void *context, const struct transport_target *target,
                                           const struct transport_events *events,
                                           void *events_context)
{
    struct ssh_transport *ssh = context;
    struct ssh_call *call = ssh_call_create(ssh, target, events, events_context);
    ((struct transport_call_head *)call)->ops = ssh_transport(ssh).ops;
    ssh_transport_schedule(ssh);
    return (struct transport_call *)call;
}

static void ssh_ops_hang_up(struct transport_call *call)
{
    ssh_call_destroy((struct ssh_call *)call);
}

struct transport ssh_transport(struct ssh_transport *ssh)
{
    static const struct transport_ops ops = {
        .name = "ssh", .call = ssh_ops_call, .hang_up = ssh_ops_hang_up};
    return (struct transport){.ops = &ops, .context = ssh};
}
