/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/transports.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "io/dial_ends.h"
#include "io/loop.h"
#include "io/module_open.h"
#include "transport/dial_back.h"

#define GUESTS_BESIDE_NODES 256 /* hosts of an elastic job may be listed later */
#define REMIND_MS 30000         /* after so long, -v says for which agent an elastic job waits */

#define DESCRIPTORS_OF_DRIVER 64
#define DESCRIPTORS_OF_NODE 3
#define GUESTS_MIN 8

struct dial_in {
    const struct dial_in_settings *settings;
    struct dial_back *dial;
};

struct dial_in_call {
    struct transport_call_head head;
    const struct dial_in *in;
    const struct transport_events *events;
    void *events_context;
    struct dial_back_claim *claim; /* NULL: it was given up */
    struct loop_timer *timer;
    bool has_begun;
};

static void waited(struct dial_in_call *call)
{
    const struct dial_in_settings *settings = call->in->settings;
    bool fails = settings->limit_ms > 0;
    char *why AUTO_FREE =
        mem_printf("no agent of this name has dialled in within %.3g s: does hvdrun-agent --dial "
                   "(or the same line of torchrun) run there, "
                   "with this name, port %d and the same secret? can it connect to this machine?",
                   (double)(fails ? settings->limit_ms : REMIND_MS) / 1000, settings->port);
    if (!fails) {
        call->events->note(call->events_context, LOG_INFO, why);
        return;
    }
    dial_back_forget(call->claim);
    call->claim = NULL;
    call->events->failed(call->events_context, STAGE_CONNECT, why);
}

static void timer_fire(void *context)
{
    struct dial_in_call *call = context;
    int64_t limit = call->in->settings->limit_ms;
    if (call->has_begun) {
        waited(call);
        return;
    }
    call->has_begun = true;
    loop_timer_set(call->timer, limit > 0 ? limit : REMIND_MS);
    call->events->stage(call->events_context, STAGE_CONNECT);
}

static void agent_up(void *context, const struct transport_stream *stream)
{
    struct dial_in_call *call = context;
    struct transport_stream own = *stream;
    own.dialled_in = true;
    loop_timer_clear(call->timer);
    call->events->up(call->events_context, &own);
}

static void agent_broken(void *context, const char *why)
{
    struct dial_in_call *call = context;
    call->events->lost(call->events_context, why);
}

static void agent_failed(void *context, const char *why)
{
    struct dial_in_call *call = context;
    loop_timer_clear(call->timer);
    call->events->failed(call->events_context, STAGE_AGENT, why);
}

/* At most half of the descriptors that the driver and its agents leave. */
static int guests_of(int nodes)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    int64_t wanted = (int64_t)nodes + GUESTS_BESIDE_NODES;
    getrlimit(RLIMIT_NOFILE, &limit);
    int64_t open = limit.rlim_cur > INT_MAX ? INT_MAX : (int64_t)limit.rlim_cur;
    int64_t room = (open - DESCRIPTORS_OF_DRIVER - DESCRIPTORS_OF_NODE * (int64_t)nodes) / 2;
    if (room < GUESTS_MIN)
        room = GUESTS_MIN;
    return (int)(wanted < room ? wanted : room);
}

struct dial_in *dial_in_create(const struct dial_in_settings *settings, struct error *err)
{
    uint8_t key[TLS_KEY_SIZE];
    if (dial_secret_key(settings->secret_file, settings->id, key, err) < 0)
        return NULL;
    if (dial_secret_is_open(settings->secret_file)) {
        char *line AUTO_FREE = mem_printf(DIAL_SECRET_OPEN, settings->secret_file);
        settings->note(settings->context, LOG_WARNING, line);
    }
    struct dial_in *in = MEM_NEW((struct dial_in){.settings = settings});
    struct dial_back_config config = {.loop = settings->room->loop,
                                      .module =
                                          module_open(settings->module_path, TLS_MODULE_KIND, err),
                                      .job_id = settings->id,
                                      .port = settings->port,
                                      .key = key,
                                      .agents_return = settings->limit_ms == 0,
                                      .dead_after_ms = settings->room->silence_ms,
                                      .guests = guests_of(settings->nodes),
                                      .stranger = settings->stranger,
                                      .note = settings->note,
                                      .context = settings->context};
    in->dial = config.module == NULL ? NULL : dial_back_create(&config, err);
    explicit_bzero(key, sizeof(key));
    if (in->dial != NULL)
        return in;
    free(in);
    return NULL;
}

void dial_in_destroy(struct dial_in *in)
{
    if (in == NULL)
        return;
    dial_back_destroy(in->dial);
    free(in);
}

static void ops_hang_up(struct transport_call *transport_call)
{
    struct dial_in_call *call = (struct dial_in_call *)transport_call;
    dial_back_forget(call->claim);
    loop_timer_destroy(call->timer);
    free(call);
}

static struct transport_call *ops_call(void *context, const struct transport_target *target,
                                       const struct transport_events *events, void *events_context)
{
    static const struct dial_back_events agent = {agent_up, agent_broken, agent_failed};
    struct dial_in *in = context;
    struct dial_in_call *call = MEM_NEW((struct dial_in_call){.head = {dial_in_transport(in).ops},
                                                              .in = in,
                                                              .events = events,
                                                              .events_context = events_context});
    call->timer = loop_timer_create(in->settings->room->loop, timer_fire, call);
    loop_timer_set(call->timer, 0);
    call->claim = dial_back_expect(in->dial, target->host, &agent, call);
    return (struct transport_call *)call;
}

struct transport dial_in_transport(struct dial_in *in)
{
    static const struct transport_ops ops = {.call = ops_call, .hang_up = ops_hang_up};
    return (struct transport){.ops = &ops, .context = in};
}
