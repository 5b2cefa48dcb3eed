/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's part of the store for torch.distributed: chooses the node that serves it. */
#include <string.h>

#include "driver/job/job_kind.h"
#include "driver/job/part.h"

const char torch_store_feature[] = "a store for torch.distributed, by an agent (--torch-store)";

/* Rank 0 has another machine if possible: then no other rank feels it when rank 0's is lost. */
static uint32_t choose_node(const struct job *job)
{
    int first = job->plan->ranks[0].node;
    for (int i = 0; i < job->plan->node_count; i++) {
        const char *id = job->places[i]->hello->boot_id;
        if (strcmp(id, job->places[first]->hello->boot_id) != 0)
            return (uint32_t)i;
    }
    return (uint32_t)(first + 1 < job->plan->node_count ? first + 1 : 0);
}

/* What the user has said about MASTER_ADDR or MASTER_PORT holds; with "agent" it is checked. */
static enum set_torch_store wanted(const struct settings *settings)
{
    bool given = strv_env_get(&settings->env, "MASTER_ADDR") != NULL ||
                 strv_env_get(&settings->env, "MASTER_PORT") != NULL || settings->master_port != 0;
    enum set_torch_store who = (enum set_torch_store)settings->torch_store;
    return who == SET_TORCH_STORE_AUTO && given ? SET_TORCH_STORE_RANK0 : who;
}

static void prepare(const struct job *job, Hvdrun__Prepare *message)
{
    enum set_torch_store who = wanted(job->settings);
    bool joins = job->ports.master_addr != NULL; /* others that go on have a store already */
    if (who == SET_TORCH_STORE_RANK0 || joins)
        return;
    message->torch_store = who;
    message->torch_store_node = choose_node(job);
    if (who == SET_TORCH_STORE_AGENT) {
        message->torch_store_port = message->master_port;
        message->master_port = 0;
    }
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    if (!job->kind->has_workers || job->settings->torch_store == SET_TORCH_STORE_RANK0)
        return 0;
    job->own[PART_torch_waits] = job;
    return 0;
}

static void close_part(struct job *job)
{
    (void)job;
}

const struct driver_part torch_waits_part = {
    .name = "torch_waits", .open = open_part, .close = close_part, .prepare = prepare};
