/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/parts.h"

#include <signal.h>
#include <string.h>

#include "base/parse.h"
#include "base/status.h"
#include "driver/end/teardown.h"

/* From the settings of a job to the configuration of its core */

/* Beyond the grace period and the draining of streams: an agent that takes longer counts as
 * broken. */
#define AGENT_END_LIMIT_MS 10000
#define HOLD_LIMIT_MS 60000
#define HOLD_ANSWER_MS 15000

static const enum elastic_mode modes[] = {[SET_ON_FAILURE_AUTO] = ELASTIC_AUTO,
                                          [SET_ON_FAILURE_REJOIN] = ELASTIC_REJOIN,
                                          [SET_ON_FAILURE_RESTART] = ELASTIC_RESTART,
                                          [SET_ON_FAILURE_STOP] = ELASTIC_STOP};

/* As horovodrun: without -np the smallest number with which the job goes on, without that number
 * all slots. */
static int np_of(const struct job *job)
{
    const struct settings *settings = job->settings;
    int slots = hosts_slots(job->request->hosts);
    if (settings->np > 0)
        return (int)settings->np;
    if (settings->min_np > 0)
        return (int)settings->min_np;
    if (settings->max_np > 0 && slots > settings->max_np)
        return (int)settings->max_np;
    return slots > 0 ? slots : 1;
}

/* As horovodrun: all available slots, unless --max-np limits them. But a job that only asks for
 * restarts (--max-restarts, --on-failure) has exactly -np workers. */
int elastic_max_np(const struct settings *settings)
{
    bool sized = settings->min_np > 0 || settings->max_np > 0 ||
                 settings->host_discovery_script != NULL || settings->hosts_watch != NULL;
    return sized ? (int)settings->max_np : (int)settings->np;
}

/* A restart may wait for GPU memory (features/gpu_free) before it is prepared. The time behind the
 * colon of "90%:60s" has been checked. */
static int64_t hold_limit(const struct settings *settings)
{
    const char *colon = settings->gpu_free == NULL ? NULL : strchr(settings->gpu_free, ':');
    int64_t limit_ms = settings->gpu_free == NULL ? 0 : HOLD_LIMIT_MS;
    if (colon != NULL)
        (void)parse_duration_ms(colon + 1, &limit_ms, NULL);
    return limit_ms > 0 ? limit_ms + HOLD_ANSWER_MS : 0;
}

void elastic_config_from(const struct job *job, struct elastic_config *out)
{
    const struct settings *settings = job->settings;
    struct duration_range cooldown = settings->blacklist_cooldown_range;
    elastic_config_init(out);
    out->mode = modes[settings->on_failure];
    out->np = np_of(job);
    out->min_np = settings->min_np > 0 ? (int)settings->min_np : out->np;
    out->max_np = elastic_max_np(settings);
    out->early = settings->rejoin == SET_REJOIN_EARLY;
    out->hosts_dial_in = settings->transport == SET_TRANSPORT_DIAL;
    out->spares = (int)settings->spares;
    out->failure_limit = (int)settings->blacklist_after;
    out->reset_limit = (int)settings->reset_limit;
    out->max_restarts = (int)settings->max_restarts;
    out->idle_restarts = (int)settings->no_progress_restarts;
    out->max_preemptions = (int)settings->max_preemptions;
    out->elastic_timeout_ms = settings->elastic_timeout;
    out->rejoin_timeout_ms = settings->rejoin_timeout;
    out->prepare_timeout_ms = settings->start_timeout;
    out->hold_ms = hold_limit(settings);
    out->grow_delay_ms = settings->grow_delay;
    out->gather_ms = job->request->gather_ms > 0 ? job->request->gather_ms : settings->grow_delay;
    out->patience_ms = settings->drain_timeout + AGENT_END_LIMIT_MS;
    out->grace_ms = teardown_grace(job, GRACE_AFTER_FAILURE_MS);
    out->orderly_grace_ms = teardown_grace(job, GRACE_AFTER_SIGNAL_MS);
    out->cooldown_min_ms = cooldown.min_ms > 0 ? cooldown.min_ms : 0;
    out->cooldown_max_ms = cooldown.max_ms > 0 ? cooldown.max_ms : 0;
}

/* From the verdict of the core to that of the job */

static int status_of(const struct elastic_verdict *verdict)
{
    if (verdict->code > 0)
        return verdict->signaled ? 128 + verdict->code : verdict->code & 0xff;
    switch (verdict->end) {
    case ELASTIC_END_SUCCESS: return 0;
    case ELASTIC_END_HOST_LOST: return STATUS_NODE_LOST;
    case ELASTIC_END_NO_HOSTS: return STATUS_NO_SLOTS;
    case ELASTIC_END_RESET_LIMIT: return verdict->host < 0 ? STATUS_LAUNCHER : STATUS_NODE_LOST;
    default: return STATUS_LAUNCHER;
    }
}

static enum exit_cause cause_of(const struct elastic_verdict *verdict)
{
    switch (verdict->end) {
    case ELASTIC_END_SUCCESS: return CAUSE_NONE;
    case ELASTIC_END_CRASH:
    case ELASTIC_END_FAULT: return verdict->signaled ? CAUSE_SIGNAL : CAUSE_EXIT;
    case ELASTIC_END_HOST_LOST: return CAUSE_NODE_LOST;
    default: return CAUSE_LAUNCHER;
    }
}

/* The core knows only that the driver ended the job. */
static void blame_driver(const struct job *job, struct verdict *out)
{
    if (job->gone)
        exit_outside_blame_signal(SIGPIPE, out);
    else if (job->outside.interrupted.signal > 0)
        exit_outside_blame_interruption(&job->outside, out);
    else
        verdict_set(out, STATUS_LAUNCHER, CAUSE_LAUNCHER,
                    "the launcher ended the job without a recorded reason");
}

void elastic_verdict_of(const struct job *job, const struct elastic *core, struct verdict *out)
{
    const struct elastic_verdict *verdict = elastic_verdict(core);
    if (job->outside.launcher.status != 0) {
        exit_outside_blame_launcher(&job->outside, out);
    } else if (verdict->end == ELASTIC_END_DRIVER || verdict->end == ELASTIC_END_NONE) {
        blame_driver(job, out);
    } else {
        verdict_set(out, status_of(verdict), cause_of(verdict), verdict->text);
        out->seat = verdict->seat;
        out->node = verdict->host;
    }
}

/* The user's signal reached the workers too. */
static bool is_after_interruption(const struct job *job, const struct rank_record *record)
{
    const struct exit_outside *outside = &job->outside;
    int64_t since = outside->interrupted.when_ns - outside->interrupted.round_ns;
    return outside->interrupted.signal != 0 && record->ended_ns > since;
}

enum exit_role elastic_role_of(const struct job *job, int seat)
{
    const struct rank_record *record = &job->ranks.records[seat];
    if (record->state < RANK_EXITED)
        return ROLE_NONE;
    if (!record->signaled && record->code == 0)
        return ROLE_OK;
    if (seat == job->verdict.seat)
        return ROLE_CAUSE;
    bool by_us = record->ended_by_us || is_after_interruption(job, record);
    return by_us && !record->aborted ? ROLE_CONSEQUENCE : ROLE_FAILED;
}
