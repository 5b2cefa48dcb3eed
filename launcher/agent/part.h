/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of the agent that answers questions of the driver about some topics (wire/topic.h). It has
 * a line in part_list.def and a constant `struct agent_part`, called NAME_agent_part; agent/parts.c
 * makes the table of all of them. Its data is created by the first question, since most jobs ask
 * nothing.
 */
#pragma once

#include "agent/ask.h"

enum agent_part_id {
#define PART(name) AGENT_PART_##name,
#include "agent/part_list.def"
    AGENT_PARTS
};

/* The data of a part, such as agent_own(agent, usage); NULL until the driver asks. */
#define agent_own(agent, name) ((struct name *)(agent)->own[AGENT_PART_##name])

struct agent_part {
    const char *name;
    const struct ask_rule *topics;      /* ends with one without a topic */
    void (*close)(struct agent *agent); /* only if it has data */
};

#define PART(name) extern const struct agent_part name##_agent_part;
#define FEATURE(name) extern const struct agent_part name##_agent_part __attribute__((weak));
#include "agent/part_list.def"
