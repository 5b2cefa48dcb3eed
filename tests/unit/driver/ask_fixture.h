/* SPDX-License-Identifier: Apache-2.0 */
/* Agents of the job's hosts, as the driver's questions find them: a test hears what they are asked,
 * and says what they answer. */
#pragma once

#include <sys/socket.h>

#include "driver/job/ask.h"
#include "driver/job/part.h"
#include "driver/job_fixture.h"
#include "io/link.h"
#include "unit.h"

struct agents {
    struct fixture *f;
    int fds[2];            /* the other ends of the links; -1 */
    int asked[2];          /* how often */
    uint32_t topics[2];    /* of the last question to each */
    uint32_t questions[2]; /* its number; 0: none */
};

static inline void no_frame(void *context, const struct frame_header *header, const uint8_t *body)
{
    (void)context, (void)header, (void)body;
}

static inline void no_end(void *context, const char *reason)
{
    (void)context, (void)reason;
}

static inline void agents_begin(struct agents *agents, struct fixture *f)
{
    *agents = (struct agents){.f = f, .fds = {-1, -1}};
    part_open(&f->job, PART_asks, &asks_part, NULL);
}

static inline void agents_connect(struct agents *agents, int number)
{
    static const struct link_ops ops = {.frame = no_frame, .closed = no_end};
    struct node_link *node = agents->f->job.nodes[number];
    int ends[2];
    assert_int_equal(fd_socketpair(ends), 0);
    agents->fds[number] = ends[1];
    node->link = link_create(agents->f->job.loop, ends[0], ends[0], &ops, NULL, NULL);
    node->hello = hvdrun__agent_hello__unpack(NULL, 0, NULL);
    node->state = NODE_UP;
    assert_non_null(node->hello);
}

static inline void agents_disconnect(struct agents *agents, int number)
{
    struct node_link *node = agents->f->job.nodes[number];
    link_destroy(node->link);
    node->link = NULL;
    fd_close(&agents->fds[number]);
}

static inline void agents_end(struct agents *agents)
{
    part_close(&agents->f->job, PART_asks, &asks_part);
    for (int i = 0; i < 2; i++)
        agents_disconnect(agents, i);
    run_turns(agents->f->job.loop, 1);
}

/* Notes what the agents were asked. */
static inline void agents_hear(struct agents *agents)
{
    run_turns(agents->f->job.loop, 1);
    for (int i = 0; i < 2; i++) {
        uint8_t bytes[4096], *at = bytes;
        ssize_t got = recv(agents->fds[i], bytes, sizeof(bytes), MSG_DONTWAIT);
        struct frame_header header;
        for (const uint8_t *end = bytes + got; got > 0 && at < end;
             at += FRAME_HEADER_SIZE + header.length) {
            assert_int_equal(frame_header_get(at, &header, NULL), 0);
            assert_int_equal(header.type, FRAME_ASK);
            Hvdrun__Ask *ask = hvdrun__ask__unpack(NULL, header.length, at + FRAME_HEADER_SIZE);
            agents->asked[i]++;
            agents->topics[i] = ask->topic;
            agents->questions[i] = ask->question;
            hvdrun__ask__free_unpacked(ask, NULL);
        }
    }
}

/* These bytes are the answer of this host to a question, or a piece of it. */
static inline int agents_say(struct agents *agents, int number, uint32_t question,
                             ProtobufCBinaryData bytes, bool more)
{
    Hvdrun__Answer message = HVDRUN__ANSWER__INIT;
    message.question = question;
    message.answer = bytes;
    message.more = more;
    struct agent_frame frame = {.message = &message};
    return asks_part.frames[0].rule.take(&agents->f->job, agents->f->job.nodes[number], &frame);
}

/* It answers the last question that it has heard. */
static inline int agents_answer(struct agents *agents, int number, const ProtobufCMessage *answer)
{
    ProtobufCBinaryData packed = message_pack(answer);
    agents_hear(agents);
    int result = agents_say(agents, number, agents->questions[number], packed, false);
    free(packed.data);
    return result;
}
