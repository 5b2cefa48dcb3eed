/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that wait, what srun can do, and the list of steps. */
#include "transport/transports.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/module_open.h"
#include "io/program.h"
#include "model/settings/split.h"
#include "transport/srun/step.h"

#define HELP_MAX ((size_t)1 << 20)
#define HELP_MS 10000
#define GUESTS_BESIDE_NODES 64

struct srun_transport {
    const struct srun_settings *settings;
    struct strv arguments;
    struct dial_back *dial;
    TAILQ_HEAD(, srun_call) queue;
    struct loop_timer *turn, *tell_idle;
    struct program *help;
    bool has_options;
    struct srun_options options;
    struct srun_step_config step_config;
    struct srun_step **steps;
    size_t count, room;
};

static void step_over(void *context, struct srun_step *step)
{
    struct srun_transport *srun = context;
    size_t at = 0;
    while (srun->steps[at] != step)
        at++;
    srun->steps[at] = srun->steps[--srun->count];
    srun_step_destroy(step);
    if (srun->count == 0)
        loop_timer_set(srun->tell_idle, 0);
}

static void became_idle(void *context)
{
    struct srun_transport *srun = context;
    if (srun_transport_is_idle(srun))
        srun->settings->idle(srun->settings->context);
}

/* Those that wait, or the first of them. More steps begin in turns of their own: what a step tells
 * may change the queue. */
static void begin_step(struct srun_transport *srun)
{
    struct srun_call **calls = NULL, *call;
    size_t count = 0, room = 0;
    do {
        call = TAILQ_FIRST(&srun->queue);
        TAILQ_REMOVE(&srun->queue, call, place);
        MEM_ADD_ROOM(calls, count, room) = call;
    } while (!TAILQ_EMPTY(&srun->queue) && !srun->settings->one_each);
    struct srun_step *step = srun_step_create(&srun->step_config, calls, count);
    MEM_ADD_ROOM(srun->steps, srun->count, srun->room) = step;
    if (!TAILQ_EMPTY(&srun->queue))
        loop_timer_set(srun->turn, 0);
}

static void got_help(void *context, const struct program_result *result)
{
    struct srun_transport *srun = context;
    const struct srun_settings *settings = srun->settings;
    srun->help = NULL;
    srun->has_options = true;
    bool has_run = result->why == NULL || result->status >= 0;
    if (!has_run || !srun_options_parse(result->text, &srun->options)) {
        /* If it cannot be run at all, the step will say so. */
        char *line AUTO_FREE =
            mem_printf("cannot read srun --help (%s): hvdrun uses only options that every srun has",
                       has_run ? result->last_line : result->why);
        settings->note(settings->context, LOG_INFO, line);
    }
    loop_timer_set(srun->turn, 0);
}

static void ask_for_help(struct srun_transport *srun)
{
    static char *const argv[] = {(char *)"srun", (char *)"--help", NULL};
    const struct program_spec spec = {.loop = srun->settings->room->loop,
                                      .helpers = srun->settings->room->helpers,
                                      .argv = argv,
                                      .output_max = HELP_MAX,
                                      .time_max_ms = HELP_MS};
    srun->help = program_start(&spec, got_help, srun);
}

static void turn_fire(void *context)
{
    struct srun_transport *srun = context;
    if (TAILQ_EMPTY(&srun->queue) || srun->help != NULL)
        return;
    if (srun->has_options)
        begin_step(srun);
    else
        ask_for_help(srun);
}

static int open_parts(struct srun_transport *srun, struct error *err)
{
    const struct srun_settings *settings = srun->settings;
    if (settings->arguments != NULL && words_split(settings->arguments, &srun->arguments, err) < 0)
        return error_wrap(err, "--srun-args");
    struct dial_back_config config = {.loop = settings->room->loop,
                                      .module =
                                          module_open(settings->module_path, TLS_MODULE_KIND, err),
                                      .job_id = settings->room->job_id,
                                      .dead_after_ms = settings->room->silence_ms,
                                      .guests = settings->nodes + GUESTS_BESIDE_NODES,
                                      .note = settings->note,
                                      .context = settings->context};
    if (config.module == NULL)
        return -1;
    srun->dial = dial_back_create(&config, err);
    return srun->dial == NULL ? -1 : 0;
}

struct srun_transport *srun_transport_create(const struct srun_settings *settings,
                                             struct error *err)
{
    struct srun_transport *srun = MEM_NEW((struct srun_transport){.settings = settings});
    TAILQ_INIT(&srun->queue);
    srun->turn = loop_timer_create(settings->room->loop, turn_fire, srun);
    srun->tell_idle = loop_timer_create(settings->room->loop, became_idle, srun);
    if (open_parts(srun, err) < 0) {
        srun_transport_destroy(srun);
        return NULL;
    }
    srun->step_config = (struct srun_step_config){.settings = settings,
                                                  .options = &srun->options,
                                                  .arguments = &srun->arguments,
                                                  .dial = srun->dial,
                                                  .over = step_over,
                                                  .context = srun};
    return srun;
}

void srun_transport_destroy(struct srun_transport *srun)
{
    if (srun == NULL)
        return;
    for (size_t i = 0; i < srun->count; i++)
        srun_step_destroy(srun->steps[i]);
    program_cancel(srun->help);
    dial_back_destroy(srun->dial);
    loop_timer_destroy(srun->turn);
    loop_timer_destroy(srun->tell_idle);
    strv_destroy(&srun->arguments);
    free(srun->steps);
    free(srun);
}

bool srun_transport_is_idle(const struct srun_transport *srun)
{
    return srun->count == 0;
}

static void ops_hang_up(struct transport_call *transport_call)
{
    struct srun_call *call = (struct srun_call *)transport_call;
    if (call->step == NULL)
        TAILQ_REMOVE(&call->srun->queue, call, place);
    else
        srun_step_leave(call);
    dial_back_forget(call->claim);
    free(call->fate);
    free(call);
}

static struct transport_call *ops_call(void *context, const struct transport_target *target,
                                       const struct transport_events *events, void *events_context)
{
    struct srun_transport *srun = context;
    struct srun_call *call = MEM_NEW((struct srun_call){.head = {srun_transport(srun).ops},
                                                        .srun = srun,
                                                        .target = target,
                                                        .called_ms = clock_mono_ms(),
                                                        .events = events,
                                                        .events_context = events_context});
    TAILQ_INSERT_TAIL(&srun->queue, call, place);
    loop_timer_set(srun->turn, 0);
    return (struct transport_call *)call;
}

struct transport srun_transport(struct srun_transport *srun)
{
    static const struct transport_ops ops = {.call = ops_call, .hang_up = ops_hang_up};
    return (struct transport){.ops = &ops, .context = srun};
}
