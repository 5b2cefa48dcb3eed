/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices a job that hangs: asks all agents for the pulse of their ranks, and lets hang.h judge.
 * --hang-warning, --hang-timeout, --expect and --on-hang say what follows.
 */
#include "features/hang/hang_watch_driver_test.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/status.h"
#include "driver/end/teardown.h"
#include "driver/job/ask.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/tell/events.h"
#include "driver/tell/rank_progress.h"
#include "features/hang/hang.h"
#include "features/hang/hang_culprit_driver.h"
#include "features/hang/hang_facts_driver.h"
#include "features/hang/stall_lines.h"
#include "features/stacks/look_driver.h"

/*
 * What the ranks do because hvdrun asked them, while it collects evidence: PyTorch writes a line
 * and a file when it dumps its flight recorder, uses new memory and its processor, and asks its
 * GPU. That is not progress, so it is subtracted from the numbers. What the rank's library
 * completes and what the rank reports is progress even then.
 */

#define LATE_SAMPLES 2 /* the answers lag behind, and so does the output */

const char hang_feature[] = "jobs that hang, and hvdrun stacks";

struct number {
    uint64_t last, hidden;
};

struct seat_stir {
    struct number output, io_bytes, cpu_us, faults, waits, main_ns, receptions;
    int late;
};

struct hang_stir {
    struct seat_stir *seats;
    size_t count;
    bool asks;
};

struct hang_stir *hang_stir_create(void)
{
    return mem_alloc(sizeof(struct hang_stir));
}

void hang_stir_destroy(struct hang_stir *stir)
{
    if (stir == NULL)
        return;
    free(stir->seats);
    free(stir);
}

void hang_stir_asks(struct hang_stir *stir, bool asks)
{
    stir->asks = asks;
    for (size_t i = 0; asks && i < stir->count; i++)
        stir->seats[i].late = LATE_SAMPLES;
}

static void take(struct number *number, bool hide, uint64_t *value)
{
    if (*value < number->last) /* another worker has the seat */
        number->hidden = 0;
    else if (hide)
        number->hidden += *value - number->last;
    number->last = *value;
    *value -= number->hidden;
}

void hang_stir_take(struct hang_stir *stir, int seat, struct hang_sample *sample)
{
    stir->seats = mem_reach(stir->seats, &stir->count, (size_t)seat + 1, sizeof(*stir->seats));
    struct seat_stir *its = &stir->seats[seat];
    bool hide = stir->asks || its->late > 0;
    if (!stir->asks && its->late > 0)
        its->late--;
    take(&its->output, hide, &sample->output);
    take(&its->io_bytes, hide, &sample->io_bytes);
    take(&its->cpu_us, hide, &sample->cpu_us);
    take(&its->faults, hide, &sample->faults);
    take(&its->waits, hide, &sample->waits);
    take(&its->main_ns, hide, &sample->main_ns);
    take(&its->receptions, hide, &sample->receptions);
    sample->has_gpu = sample->has_gpu && !hide;
}

#define TEXT_MAX ((size_t)1 << 16)
#define PULSE_LIMIT_MS 60000 /* late is better than never: a pulse counts whenever it comes */

struct hang_watch {
    struct job *job;
    struct expects *expects; /* NULL: none */
    struct hang *hang;
    struct ras_facts *ras;
    struct hang_stir *stir;
    struct stall_lines *stalls;
    struct loop_timer *tick;
    struct hang_looks *looks;
    char *text; /* of the last hang; NULL */
    int rank;   /* to blame for it; -1: none */
};

static void warn(const struct hang_watch *watch)
{
    struct job *job = watch->job;
    log_warning(
        &job->log,
        "no rank has shown progress for %.0f s; 'hvdrun stacks %s' shows where the ranks are, "
        "and --hang-warning 0 turns this line off",
        (double)job->settings->hang_warning / 1000, job->request->job_id);
    events_job(job, "hang_warning");
}

static void put_cause(const struct hang_watch *watch, struct buf *out)
{
    int unmet = hang_unmet(watch->hang);
    const struct expect *expect = unmet < 0 ? NULL : expects_at(watch->expects, unmet);
    if (expect == NULL)
        buf_printf(out, "no rank has shown progress for --hang-timeout %.1f s",
                   (double)watch->job->settings->hang_timeout / 1000);
    else
        buf_printf(out, "no line has matched --expect '%s' for %.1f s", expect->pattern,
                   (double)expect->limit_ms / 1000);
}

/* The text of a hang, for the user; free it. `look` may be NULL. */
static char *hang_text(const struct hang_watch *watch, const struct ask *look,
                       struct culprit *found)
{
    struct buf culprit AUTO_BUF = BUF_INIT(TEXT_MAX), cause AUTO_BUF = BUF_INIT(TEXT_MAX);
    struct hang_facts facts = {watch->ras, watch->stalls};
    put_cause(watch, &cause);
    *found = (struct culprit){.kind = CULPRIT_NONE, .rank = -1};
    if (look != NULL)
        *found = hang_culprit(watch->job, watch->hang, &facts, look, &culprit);
    return mem_printf("the job hangs: %s%s%s", buf_text(&cause), look != NULL ? "; " : "",
                      buf_text(&culprit));
}

/* Of the worker that has this rank in the present epoch; -1: none. */
static int seat_of(const struct job *job, int rank)
{
    for (int seat = 0; rank >= 0 && seat < job->ranks.size; seat++) {
        if (job->ranks.records[seat].state == RANK_RUNNING && job_seat_rank(job, seat) == rank)
            return seat;
    }
    return -1;
}

/* All that the ranks can show has been collected. */
static void collected(void *context)
{
    struct hang_watch *watch = context;
    struct job *job = watch->job;
    hang_stir_asks(watch->stir, false);
    if (job->settings->on_hang != SET_ON_HANG_KILL)
        log_warning(&job->log, "%s", watch->text);
    else if (job->state == JOB_RUNNING)
        teardown_launcher(job, STATUS_HANG, watch->text);
    if (job->settings->on_hang == SET_ON_HANG_RESTART && job->state == JOB_RUNNING)
        KIND_TELL(job, hung, seat_of(job, watch->rank));
}

static void shown(void *context, const struct ask *look)
{
    struct hang_watch *watch = context;
    struct job *job = watch->job;
    free(watch->text);
    struct culprit culprit;
    watch->text = hang_text(watch, look, &culprit);
    watch->rank = culprit.rank;
    if (job->settings->on_hang != SET_ON_HANG_WARN)
        look_show(look);
    events_text(job, "hung", watch->text);
    struct incident incident = {.kind = INCIDENT_HANG,
                                .text = watch->text,
                                .rank = watch->rank,
                                .by_nccl = culprit.kind == CULPRIT_LAUNCHED,
                                .look = look};
    hang_stir_asks(watch->stir, true);
    if (!incident_raise(job, &incident, collected, watch))
        collected(watch);
}

static void found(struct hang_watch *watch)
{
    struct job *job = watch->job;
    if (job->settings->on_hang == SET_ON_HANG_WARN && job->settings->evidence == NULL) {
        struct culprit none;
        char *text AUTO_FREE = hang_text(watch, NULL, &none);
        events_text(job, "hung", text);
        log_warning(&job->log, "%s", text);
    } else {
        look_ask(job, hang_looks_depth(watch->looks), shown, watch);
    }
}

static void act(struct hang_watch *watch, enum hang_news news)
{
    switch (news) {
    case HANG_NOTHING: break;
    case HANG_LOOK: hang_looks_ask(watch->looks); break;
    case HANG_WARNING: warn(watch); break;
    case HANG_FOUND: found(watch); break;
    case HANG_PASSED: log_notice(&watch->job->log, "the job shows progress again"); break;
    }
}

static void take_pulse(struct hang_watch *watch, const Hvdrun__RankPulse *pulse, bool held)
{
    const struct progress_report *report = rank_progress(watch->job, (int)pulse->seat);
    uint64_t reports = report == NULL ? 0 : report->reports;
    uint64_t launches = ras_facts_take(watch->ras, (int)pulse->seat, pulse);
    const struct rank_record *record = &watch->job->ranks.records[pulse->seat];
    uint64_t output = record->output;
    bool quiet = hang_wants_more(watch->hang, job_running_ms(watch->job));
    uint64_t warnings =
        stall_lines_take(watch->stalls, (int)pulse->seat, &record->tail, quiet, clock_mono_ns());
    struct hang_sample sample = {.output = output > warnings ? output - warnings : 0,
                                 .operations = pulse->operations + reports + launches,
                                 .io_bytes =
                                     pulse->io_bytes > output ? pulse->io_bytes - output : 0,
                                 .tcp_data = pulse->tcp_data,
                                 .cpu_us = pulse->cpu_us,
                                 .faults = pulse->faults,
                                 .waits = pulse->waits,
                                 .main_ns = pulse->main_ns,
                                 .receivers = pulse->receivers,
                                 .receptions = pulse->receptions,
                                 .held = pulse->debugged || held,
                                 .has_gpu = pulse->has_gpu,
                                 .gpu_power_mw = pulse->gpu_power_mw,
                                 .gpu_memory_use = pulse->gpu_memory_use};
    hang_stir_take(watch->stir, (int)pulse->seat, &sample);
    hang_sample(watch->hang, (int)pulse->seat, &sample, job_running_ms(watch->job));
}

/* What the workers of a node have used. */
static int take_pulses(struct job *job, struct node_link *node, ProtobufCMessage **answer)
{
    const Hvdrun__Pulse *message = (const Hvdrun__Pulse *)*answer;
    for (size_t i = 0; i < message->n_ranks; i++) {
        const Hvdrun__RankPulse *pulse = message->ranks[i];
        if (!job_seat_is_on(job, node, pulse->seat))
            continue;
        take_pulse(job_part(job, hang_watch), pulse, message->held);
        rank_stopped(&job->ranks.records[pulse->seat], pulse->stopped, clock_mono_ns());
    }
    return 0;
}

static void ask(struct hang_watch *watch)
{
    static const struct question question = {&topic_pulse, take_pulses, .keep = false};
    Hvdrun__PulseRequest request = HVDRUN__PULSE_REQUEST__INIT;
    request.closer = hang_wants_more(watch->hang, job_running_ms(watch->job));
    if (!request.closer) {
        ras_facts_forget(watch->ras);
        hang_waits_forget(job_part(watch->job, hang_waits));
    }
    ask_all(watch->job, &question, &request.base, PULSE_LIMIT_MS, NULL, NULL);
}

/* First the answers since the last tick, then the next request. While the job is suspended, its
 * clock stands still, and so does this. */
static void tick(void *context)
{
    struct hang_watch *watch = context;
    struct job *job = watch->job;
    loop_timer_set(watch->tick, hang_period_ms(watch->hang));
    if (job->state != JOB_RUNNING || job->times.paused_ms != 0)
        return;
    for (int seat = 0; seat < job->ranks.size; seat++) {
        const struct rank_record *record = &job->ranks.records[seat];
        hang_seat(watch->hang, seat, record->state == RANK_RUNNING ? record->epoch : 0);
    }
    act(watch, hang_tick(watch->hang, job_running_ms(job)));
    if (job->state == JOB_RUNNING)
        ask(watch);
}

static int open_part(struct job *job, struct error *err)
{
    const struct settings *settings = job->settings;
    struct hang_limits limits = {settings->hang_warning, settings->hang_timeout};
    struct expects *expects = NULL;
    if (!job->kind->has_workers)
        return 0;
    if (expects_create(&settings->expect, settings_place(settings, OPT_expect), &expects, err) < 0)
        return -1;
    if (limits.warning_ms <= 0 && limits.hang_ms <= 0 && expects == NULL)
        return 0;
    struct hang_watch *watch = MEM_NEW((struct hang_watch){.job = job,
                                                           .expects = expects,
                                                           .hang = hang_create(&limits, expects),
                                                           .ras = ras_facts_create(),
                                                           .stir = hang_stir_create(),
                                                           .stalls = stall_lines_create()});
    watch->looks = hang_looks_create(job, watch->hang);
    watch->tick = loop_timer_create(job->loop, tick, watch);
    loop_timer_set(watch->tick, hang_period_ms(watch->hang));
    job->own[PART_hang_watch] = watch;
    return 0;
}

static void close_part(struct job *job)
{
    struct hang_watch *watch = job_part(job, hang_watch);
    loop_timer_destroy(watch->tick);
    hang_looks_destroy(watch->looks);
    hang_destroy(watch->hang);
    ras_facts_destroy(watch->ras);
    hang_stir_destroy(watch->stir);
    stall_lines_destroy(watch->stalls);
    expects_destroy(watch->expects);
    free(watch->text);
    free(watch);
}

static void output(struct job *job, int seat, bool is_stderr, const void *bytes, size_t length)
{
    struct hang_watch *watch = job_part(job, hang_watch);
    if (watch != NULL && watch->expects != NULL)
        expects_bytes(watch->expects, seat, is_stderr, bytes, length, job_running_ms(job));
}

/* Names each --expect that no line has ever matched. */
static void ending(struct job *job)
{
    const struct hang_watch *watch = job_part(job, hang_watch);
    if (watch == NULL || watch->job->times.started_ns == 0)
        return;
    int64_t ran_ms = (clock_mono_ns() - watch->job->times.started_ns) / 1000000;
    const struct expect *expect;
    for (int i = 0; (expect = expects_at(watch->expects, i)) != NULL; i++) {
        if (!expect->met && ran_ms > expect->limit_ms)
            log_warning(&watch->job->log, "no line has ever matched --expect '%s'",
                        expect->pattern);
    }
}

/* It has no data if nobody wants to know. */
const struct driver_part hang_watch_part = {.name = "hang_watch",
                                            .open = open_part,
                                            .close = close_part,
                                            .output = output,
                                            .ending = ending};
