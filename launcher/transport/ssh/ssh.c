/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/ssh.h"

#include <stdlib.h>

#include "base/mem.h"
#include "transport/ssh/call.h"

struct ssh_transport {
    struct ssh_shared *shared;
};

static void turn_fire(void *context)
{
    const struct ssh_transport *ssh = context;
    ssh_shared_open_resolver(ssh->shared);
    /* One call per turn: it may report, and its owner may hang up others or us. */
    struct ssh_call *call = ssh_window_next(ssh->shared->window);
    if (call == NULL)
        return;
    ssh_shared_schedule(ssh->shared);
    ssh_call_go(call);
}

struct ssh_transport *ssh_transport_create(const struct ssh_settings *settings)
{
    struct ssh_transport *ssh = mem_alloc(sizeof(*ssh));
    ssh->shared = ssh_shared_create(settings, turn_fire, ssh);
    return ssh;
}

void ssh_transport_destroy(struct ssh_transport *ssh)
{
    if (ssh == NULL)
        return;
    ssh_shared_destroy(ssh->shared);
    free(ssh);
}

static struct transport_call *ssh_ops_call(void *context, const struct transport_target *target,
                                           const struct transport_events *events,
                                           void *events_context)
{
    struct ssh_transport *ssh = context;
    struct ssh_call *call = ssh_call_create(ssh->shared, target, events, events_context);
    ((struct transport_call_head *)call)->ops = ssh_transport(ssh).ops;
    ssh_shared_schedule(ssh->shared);
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
