/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/parts.h"

#include "agent/agent_state.h"

/* NULL: its feature was left out. */
static const struct agent_part *const parts[AGENT_PARTS] = {
#define PART(name) [AGENT_PART_##name] = &name##_agent_part,
#include "agent/part_list.def"
};

static const struct agent_part *next(int *at)
{
    while (*at < AGENT_PARTS) {
        const struct agent_part *part = parts[(*at)++];
        if (part != NULL)
            return part;
    }
    return NULL;
}

#define EACH_PART(part)                               \
    int next_part = 0;                                \
    const struct agent_part *part = next(&next_part); \
    for (; part != NULL; part = next(&next_part))

void agent_parts_open(struct agent *agent)
{
    EACH_PART (part) {
        if (part->open != NULL)
            part->open(agent);
    }
}

void agent_parts_close(struct agent *agent)
{
    for (int i = AGENT_PARTS - 1; i >= 0; i--) {
        if (agent->own[i] != NULL)
            parts[i]->close(agent);
        agent->own[i] = NULL;
    }
}

void agent_parts_adapt(struct agent *agent, Hvdrun__Prepare *prepare)
{
    EACH_PART (part) {
        if (part->adapt != NULL)
            part->adapt(agent, prepare);
    }
}

void agent_parts_crew(struct agent *agent, struct crew_config *config,
                      const Hvdrun__Prepare *prepare, bool joins)
{
    EACH_PART (part) {
        if (part->crew != NULL)
            part->crew(agent, config, prepare, joins);
    }
}

void agent_parts_epoch(struct agent *agent, uint32_t epoch)
{
    EACH_PART (part) {
        if (part->epoch != NULL && agent->own[next_part - 1] != NULL)
            part->epoch(agent, epoch);
    }
}

void agent_parts_stranger(struct agent *agent, const struct reaper_exit *exit)
{
    EACH_PART (part) {
        if (part->stranger != NULL && agent->own[next_part - 1] != NULL)
            part->stranger(agent, exit);
    }
}

const char *agent_parts_ask(struct agent *agent, const Hvdrun__Ask *message)
{
    EACH_PART (part) {
        const struct ask_rule *rule =
            part->topics == NULL ? NULL : asked_rule(part->topics, message);
        if (rule != NULL)
            return asked_take(rule, agent, &agent->post, message);
    }
    return "ASK has a topic that is not known";
}

const struct agent_order *agent_parts_order(uint8_t type)
{
    EACH_PART (part) {
        const struct agent_order *order = part->orders;
        for (; order != NULL && order->type != 0; order++) {
            if (order->type == type)
                return order;
        }
    }
    return NULL;
}
