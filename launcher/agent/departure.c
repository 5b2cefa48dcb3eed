/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/departure.h"

#include <stdlib.h>

#include "agent/preempt.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/strv.h"

#define DEADLINE_MAX_MS (INT64_C(10) * 365 * 86400 * 1000)

struct departure {
    struct loop *loop;
    struct helpers *helpers;
    const struct post *post;
    const struct crews *crews;
    struct strv probe; /* its words; none: there is no probe */
    int64_t period_ms;
    struct preempt *preempt;   /* NULL: it is not asked now */
    struct loop_timer *resume; /* set: it is asked again after a pause */
    struct deadline deadline;
};

void departure_destroy(struct departure *departure)
{
    if (departure == NULL)
        return;
    departure_pause(departure);
    loop_timer_destroy(departure->resume);
    strv_destroy(&departure->probe);
    deadline_clear(&departure->deadline);
    free(departure);
}

static void set_deadline(struct departure *departure, uint64_t within_ms, const char *why)
{
    int64_t within = within_ms < DEADLINE_MAX_MS ? (int64_t)within_ms : DEADLINE_MAX_MS;
    deadline_set(&departure->deadline, clock_wall_ns() / 1000000, within, why);
    crews_write_deadline(departure->crews, &departure->deadline, &departure->post->log);
}

static void notice(void *context, bool has_deadline, int64_t within_ms, const char *why)
{
    struct departure *departure = context;
    Hvdrun__Terminate message = HVDRUN__TERMINATE__INIT;
    message.has_deadline = has_deadline;
    message.within_ms = has_deadline && within_ms > 0 ? (uint64_t)within_ms : 0;
    message.why = (char *)(why == NULL ? "" : why); /* protobuf-c only reads it */
    if (has_deadline)
        set_deadline(departure, message.within_ms, message.why);
    post_message(departure->post, FRAME_TERMINATE, &message.base);
}

static void ask(void *context)
{
    struct departure *departure = context;
    departure->preempt = preempt_create(departure->loop, departure->helpers, departure->probe.items,
                                        departure->probe.count, departure->period_ms,
                                        &departure->post->log, notice, departure);
}

struct departure *departure_create(struct loop *loop, struct helpers *helpers,
                                   const struct post *post, const struct crews *crews)
{
    struct departure *departure = mem_alloc(sizeof(*departure));
    *departure = (struct departure){.loop = loop, .helpers = helpers, .post = post, .crews = crews};
    departure->resume = loop_timer_create(loop, ask, departure);
    return departure;
}

void departure_welcome(struct departure *departure, const Hvdrun__Welcome *welcome)
{
    if (welcome->n_preempt_probe == 0 || departure->probe.count > 0)
        return;
    for (size_t i = 0; i < welcome->n_preempt_probe; i++)
        strv_add(&departure->probe, welcome->preempt_probe[i]);
    departure->period_ms = welcome->preempt_period_ms;
    ask(departure);
}

void departure_pause(struct departure *departure)
{
    loop_timer_clear(departure->resume);
    preempt_destroy(departure->preempt);
    departure->preempt = NULL;
}

void departure_resume(struct departure *departure)
{
    if (departure->probe.count > 0 && departure->preempt == NULL)
        loop_timer_set(departure->resume, departure->period_ms);
}

void departure_sigterm(struct departure *departure)
{
    notice(departure, false, 0, "");
}

void departure_deadline(struct departure *departure, const Hvdrun__Deadline *message)
{
    if (message->none) {
        deadline_clear(&departure->deadline);
        crews_write_deadline(departure->crews, &departure->deadline, &departure->post->log);
    } else {
        set_deadline(departure, message->within_ms, message->why);
    }
}

void departure_inform(const struct departure *departure, const struct crew *crew)
{
    deadline_write(&departure->deadline, crew_folder(crew), &departure->post->log);
}
