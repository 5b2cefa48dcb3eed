/* SPDX-License-Identifier: Apache-2.0 */
/* A job whose hosts have agents that answer the sampler. */
#pragma once

#include "driver/job_fixture.h"
#include "driver/tell/recent.h"
#include "driver/usage/sampler.h"
#include "io/link.h"
#include "unit.h"

struct sampled {
    struct fixture *f;
    struct sampler *sampler;
    int agents[2]; /* the other ends of the links; -1 */
};

static inline void no_frame(void *context, const struct frame_header *header, const uint8_t *body)
{
    (void)context, (void)header, (void)body;
}

static inline void no_end(void *context, const char *reason)
{
    (void)context, (void)reason;
}

static inline int sampled_begin(void **state)
{
    static struct sampled sampled;
    if (setup(state) < 0)
        return -1;
    sampled = (struct sampled){.f = *state, .agents = {-1, -1}};
    sampled.sampler = sampled.f->job.sampler = sampler_create(&sampled.f->job);
    sampled.f->request.apps = &sampled.f->apps;
    sampled.f->job.recent = recent_create(RECENT_BYTES);
    *state = &sampled;
    return 0;
}

static inline int sampled_end(void **state)
{
    struct sampled *sampled = *state;
    sampler_destroy(sampled->sampler);
    recent_destroy(sampled->f->job.recent);
    for (int i = 0; i < 2; i++) {
        link_destroy(sampled->f->job.nodes[i]->link);
        sampled->f->job.nodes[i]->link = NULL;
        fd_close(&sampled->agents[i]);
    }
    run_turns(sampled->f->job.loop, 1);
    *state = sampled->f;
    return teardown(state);
}

static inline void sampled_connect(struct sampled *sampled, int number)
{
    static const struct link_ops ops = {.frame = no_frame, .closed = no_end};
    struct node_link *node = sampled->f->job.nodes[number];
    int ends[2];
    assert_int_equal(fd_socketpair(ends), 0);
    sampled->agents[number] = ends[1];
    node->link = link_create(sampled->f->job.loop, ends[0], ends[0], &ops, NULL, NULL);
    node->hello = hvdrun__agent_hello__unpack(NULL, 0, NULL);
    assert_non_null(node->hello);
}

/* What the agent of host a says: 8 GiB, and its ranks 0 and 1 have used so much. */
static inline int sampled_answer(struct sampled *sampled, uint64_t cpu_us)
{
    Hvdrun__Pressure pressure = HVDRUN__PRESSURE__INIT;
    Hvdrun__HostUsage host = HVDRUN__HOST_USAGE__INIT;
    Hvdrun__RankUsage ranks[3], *list[3];
    Hvdrun__Sampled message = HVDRUN__SAMPLED__INIT;
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
    uint8_t bytes[1000];
    struct agent_frame frame = {.body = bytes, .length = hvdrun__sampled__pack(&message, bytes)};
    return sampler_take(&sampled->f->job, sampled->f->job.nodes[0], &frame);
}

/* Until the sampler would ask again. */
static inline void sampled_wait(struct sampled *sampled)
{
    while (sampler_age_ms(sampled->sampler) < SAMPLER_FRESH_MS)
        run_turns(sampled->f->job.loop, 1);
}
