/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/parts.h"

#include <stdlib.h>

#include "base/mem.h"
#include "driver/job/part.h"

struct waiting_event {
    struct elastic_event event;
    char *text; /* of the event; NULL */
};

struct elastic_hub {
    struct job *job;
    struct elastic *core;
    const struct elastic_hub_ops *ops;
    void *context;
    struct loop_timer *timer;
    struct waiting_event *queue;
    size_t queued, room;
    bool feeding;
    bool delayed; /* a part has delayed a node, which has limits of its own */
};

static void set_timer(struct elastic_hub *hub)
{
    int64_t due = elastic_deadline(hub->core);
    if (due < 0 || hub->job->times.paused_ms != 0) {
        loop_timer_clear(hub->timer);
        return;
    }
    int64_t left = due - job_running_ms(hub->job);
    loop_timer_set(hub->timer, left > 0 ? left : 0);
}

static void process(struct elastic_hub *hub, const struct elastic_event *event)
{
    struct elastic_actions actions = {.count = 0};
    const struct log *log = &hub->job->log;
    bool delayed = PARTS_ANY(hub->job, delays, NULL);
    if (delayed || hub->delayed)
        elastic_wait_anew(hub->core, job_running_ms(hub->job));
    hub->delayed = delayed;
    elastic_event(hub->core, event, job_running_ms(hub->job), &actions);
    log_debug(log, "elastic: %s: host %d, seat %d: %s", elastic_event_name(event->kind),
              event->host, event->seat, elastic_state_name(elastic_state(hub->core)));
    hub->ops->listed(hub->context);
    for (size_t i = 0; i < actions.count; i++) {
        log_debug(log, "elastic: -> %s: host %d, seat %d",
                  elastic_action_name(actions.items[i].kind), actions.items[i].host,
                  actions.items[i].seat);
        hub->ops->act(hub->context, &actions.items[i]);
    }
    elastic_actions_destroy(&actions);
}

static void enqueue(struct elastic_hub *hub, const struct elastic_event *event)
{
    struct waiting_event *waiting = &MEM_ADD_ROOM(hub->queue, hub->queued, hub->room);
    *waiting = (struct waiting_event){*event, mem_strdup(event->text)};
    waiting->event.text = waiting->text;
}

void elastic_hub_feed(struct elastic_hub *hub, const struct elastic_event *event)
{
    enqueue(hub, event);
    if (hub->feeding)
        return;
    hub->feeding = true;
    for (size_t i = 0; i < hub->queued; i++) {
        struct elastic_event next = hub->queue[i].event; /* the queue may move */
        process(hub, &next);
        free(hub->queue[i].text);
    }
    hub->queued = 0;
    hub->feeding = false;
    set_timer(hub);
}

static void tick(void *context)
{
    elastic_hub_feed(context, &(struct elastic_event){.kind = ELASTIC_TICK});
}

struct elastic_hub *elastic_hub_create(struct job *job, const struct elastic_config *config,
                                       const struct elastic_hub_ops *ops, void *context)
{
    struct elastic_hub *hub =
        MEM_NEW((struct elastic_hub){.job = job, .ops = ops, .context = context});
    hub->core = elastic_create(config, job_running_ms(job));
    hub->timer = loop_timer_create(job->loop, tick, hub);
    return hub;
}

void elastic_hub_destroy(struct elastic_hub *hub)
{
    if (hub == NULL)
        return;
    loop_timer_destroy(hub->timer);
    elastic_destroy(hub->core);
    free(hub->queue);
    free(hub);
}

void elastic_hub_clock_changed(struct elastic_hub *hub)
{
    set_timer(hub);
}

struct job *elastic_hub_job(const struct elastic_hub *hub)
{
    return hub->job;
}

const struct elastic *elastic_hub_core(const struct elastic_hub *hub)
{
    return hub->core;
}
