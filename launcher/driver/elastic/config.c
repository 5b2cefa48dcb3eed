/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/config.h"

#include "driver/end/teardown.h"

/* Beyond the grace period and the draining of streams: an agent that takes longer counts as
 * broken. */
#define AGENT_END_LIMIT_MS 10000

static enum elastic_mode mode_of(const struct settings *settings)
{
    switch (settings->on_failure) {
    case SET_ON_FAILURE_REJOIN: return ELASTIC_REJOIN;
    case SET_ON_FAILURE_RESTART: return ELASTIC_RESTART;
    case SET_ON_FAILURE_STOP: return ELASTIC_STOP;
    default: return ELASTIC_AUTO;
    }
}

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
static int max_np_of(const struct settings *settings)
{
    bool sized = settings->min_np > 0 || settings->max_np > 0 ||
                 settings->host_discovery_script != NULL || settings->hosts_watch != NULL;
    return sized ? (int)settings->max_np : (int)settings->np;
}

void elastic_config_from(const struct job *job, struct elastic_config *out)
{
    const struct settings *settings = job->settings;
    struct duration_range cooldown = settings->blacklist_cooldown_range;
    elastic_config_init(out);
    out->mode = mode_of(settings);
    out->np = np_of(job);
    out->min_np = settings->min_np > 0 ? (int)settings->min_np : out->np;
    out->max_np = max_np_of(settings);
    out->early = settings->rejoin == SET_REJOIN_EARLY;
    out->spares = (int)settings->spares;
    out->failure_limit = (int)settings->blacklist_after;
    out->reset_limit = (int)settings->reset_limit;
    out->max_restarts = (int)settings->max_restarts;
    out->max_preemptions = (int)settings->max_preemptions;
    out->elastic_timeout_ms = settings->elastic_timeout;
    out->rejoin_timeout_ms = settings->rejoin_timeout;
    out->prepare_timeout_ms = settings->start_timeout;
    out->grow_delay_ms = settings->grow_delay;
    out->patience_ms = settings->drain_timeout + AGENT_END_LIMIT_MS;
    out->grace_ms = teardown_grace(job, GRACE_AFTER_FAILURE_MS);
    out->orderly_grace_ms = teardown_grace(job, GRACE_AFTER_SIGNAL_MS);
    out->cooldown_min_ms = cooldown.min_ms > 0 ? cooldown.min_ms : 0;
    out->cooldown_max_ms = cooldown.max_ms > 0 ? cooldown.max_ms : 0;
}
