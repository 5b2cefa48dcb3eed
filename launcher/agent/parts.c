/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/parts.h"

#include "agent/agent_state.h"

static const struct agent_part *const parts[AGENT_PARTS] = {
#define PART(name) [AGENT_PART_##name] = &name##_agent_part,
#include "agent/part_list.def"
};

const char *agent_parts_ask(struct agent *agent, const Hvdrun__Ask *message)
{
    for (int i = 0; i < AGENT_PARTS; i++) {
        const struct ask_rule *rule =
            parts[i] == NULL ? NULL : asked_rule(parts[i]->topics, message);
        if (rule != NULL)
            return asked_take(rule, agent, &agent->post, message);
    }
    return "ASK has a topic that is not known";
}

void agent_parts_close(struct agent *agent)
{
    for (int i = AGENT_PARTS - 1; i >= 0; i--) {
        if (agent->own[i] != NULL)
            parts[i]->close(agent);
    }
}
