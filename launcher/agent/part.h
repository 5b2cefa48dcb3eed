/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of the agent. It has one task, its own data (agent_own), and a line in part_list.def. Its
 * constant `struct agent_part` is called NAME_agent_part; agent/parts.c makes the table of all.
 */
#pragma once

#include "agent/post.h"
#include "io/reaper.h"
#include "wire/control.pb-c.h"
#include "wire/frame.h"
#include "wire/topic.h"

struct agent;
struct crew_config;

/* Questions of the driver (ASK). */

/* Makes the answer about a topic, at once or later. The request is borrowed for the call. */
struct ask_rule {
    const struct topic *topic;
    void (*answer)(struct agent *agent, const struct asked *asked, const ProtobufCMessage *request);
};

/* The one for the topic of an ASK; NULL: none is. The rules end with one without a topic. */
const struct ask_rule *asked_rule(const struct ask_rule *rules, const Hvdrun__Ask *message);
/* NULL, or how the ASK breaks the protocol. */
const char *asked_take(const struct ask_rule *rule, struct agent *agent, const struct post *post,
                       const Hvdrun__Ask *message);

/* Parts. */

enum agent_part_id {
#define PART(name) AGENT_PART_##name,
#include "agent/part_list.def"
    AGENT_PARTS
};

/* The data of a part, such as agent_own(agent, usage); NULL: it has none, or not yet. */
#define agent_own(agent, name) ((struct name *)(agent)->own[AGENT_PART_##name])

struct agent_order { /* a frame about the whole node; `body` is its message, freed afterwards */
    enum frame_type type;
    const ProtobufCMessageDescriptor *message;
    void (*take)(struct agent *agent, const struct frame_header *header, const void *body);
};

struct agent_part { /* any function may be NULL */
    const char *name;
    const struct ask_rule *topics;    /* questions that it answers; ends with one without a topic */
    const struct agent_order *orders; /* ends with one whose type is 0 */
    void (*open)(struct agent *agent); /* when the agent begins */
    /* PREPARE has come: changes what it says of this host's programs, folders and environment. */
    void (*adapt)(struct agent *agent, Hvdrun__Prepare *prepare);
    /* A crew is about to be created: adds to what it gets. `joins`: to workers that go on. */
    void (*crew)(struct agent *agent, struct crew_config *config, const Hvdrun__Prepare *prepare,
                 bool joins);
    /* Only if it has data: the workers that go on are in another epoch; the end of the agent. */
    void (*epoch)(struct agent *agent, uint32_t epoch);
    void (*close)(struct agent *agent);
    /* Only if it has data: a child has ended that neither a crew nor the helpers know. */
    void (*stranger)(struct agent *agent, const struct reaper_exit *exit);
};

#define PART(name) extern const struct agent_part name##_agent_part;
#define FEATURE(name) extern const struct agent_part name##_agent_part __attribute__((weak));
#include "agent/part_list.def"

/* For all parts (parts.c). */
void agent_parts_open(struct agent *agent);
void agent_parts_close(struct agent *agent);
void agent_parts_adapt(struct agent *agent, Hvdrun__Prepare *prepare);
void agent_parts_crew(struct agent *agent, struct crew_config *config,
                      const Hvdrun__Prepare *prepare, bool joins);
void agent_parts_epoch(struct agent *agent, uint32_t epoch);

void agent_parts_stranger(struct agent *agent, const struct reaper_exit *exit);

/* ASK. NULL, or how it breaks the protocol. */
const char *agent_parts_ask(struct agent *agent, const Hvdrun__Ask *message);
const struct agent_order *agent_parts_order(uint8_t type); /* NULL: no part takes the frame */
