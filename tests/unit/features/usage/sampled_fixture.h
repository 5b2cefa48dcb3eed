/* SPDX-License-Identifier: Apache-2.0 */
/* A job whose hosts have agents that answer the sampler. */
#pragma once

#include "driver/ask_fixture.h"
#include "driver/job/part.h"
#include "driver/tell/recent.h"
#include "features/usage/usage_driver.h"

struct sampled {
    struct fixture *f;
    struct sampler *sampler;
    struct agents agents;
};

static inline int sampled_begin(void **state)
{
    static struct sampled sampled;
    if (setup(state) < 0)
        return -1;
    sampled = (struct sampled){.f = *state};
    agents_begin(&sampled.agents, sampled.f);
    part_open(&sampled.f->job, PART_sampler, &sampler_part, NULL);
    sampled.sampler = job_part(&sampled.f->job, sampler);
    sampled.f->request.apps = &sampled.f->apps;
    sampled.f->job.own[PART_recent] = recent_create(RECENT_BYTES);
    *state = &sampled;
    return 0;
}

static inline int sampled_end(void **state)
{
    struct sampled *sampled = *state;
    part_close(&sampled->f->job, PART_sampler, &sampler_part);
    recent_destroy(job_part(&sampled->f->job, recent));
    agents_end(&sampled->agents);
    *state = sampled->f;
    return teardown(state);
}

/* What the agent of host a says: 8 GiB, and its ranks 0 and 1 have used so much. */
static inline int sampled_answer(struct sampled *sampled, uint64_t cpu_us)
{
    Hvdrun__Pressure pressure = HVDRUN__PRESSURE__INIT;
    Hvdrun__HostUsage host = HVDRUN__HOST_USAGE__INIT;
    Hvdrun__RankUsage ranks[3], *list[3];
    Hvdrun__Usage message = HVDRUN__USAGE__INIT;
    pressure.some_percent = 12.5;
    pressure.some_us = 3000000;
    pressure.full_us = 1000000;
    host.has_load = true;
    host.load = 1.5;
    host.memory_bytes = (uint64_t)8 << 30;
    host.memory_available_bytes = (uint64_t)3 << 30;
    host.memory = &pressure;
    message.host = &host;
    for (uint32_t i = 0; i < 3; i++) { /* rank 2 is on another host: that is nonsense */
        ranks[i] = (Hvdrun__RankUsage)HVDRUN__RANK_USAGE__INIT;
        ranks[i].seat = i;
        ranks[i].when_ns = (uint64_t)unit_limit_ns(0);
        ranks[i].cpu_us = cpu_us + i;
        ranks[i].resident_bytes = 4096 + i;
        ranks[i].threads = 7;
        ranks[i].processes = 2;
        list[i] = &ranks[i];
    }
    ranks[1].has_io = true;
    ranks[1].read_bytes = 100;
    ranks[1].written_bytes = 200;
    message.ranks = list;
    message.n_ranks = 3;
    return agents_answer(&sampled->agents, 0, &message.base);
}

/* Until the sampler would ask again. */
static inline void sampled_wait(struct sampled *sampled)
{
    while (ask_age_ms(&sampled->f->job, &topic_usage) < topic_usage.fresh_ms)
        run_turns(sampled->f->job.loop, 1);
}
