/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions of a driver to three agents that answer anything, in any order: too much, too often,
 * what nobody has asked. Some askers go away meanwhile, some hosts are lost. Whoever waits is
 * called once, and whoever does not wait never.
 */
#include "driver/job/ask.h"
#include "driver/job/job.h"
#include "driver/job/part.h"
#include "fuzz.h"

#define NODES 3
#define ASKERS 4
#define QUESTIONS 16 /* numbers that answers name; few, so that they meet */

struct stage {
    struct fuzz_bytes bytes;
    struct job job;
    struct node_link nodes[NODES];
    struct asker {
        int waits; /* questions */
    } askers[ASKERS];
    size_t asked;
};

static struct stage *stage_of(const struct job *job)
{
    return job->kind_data;
}

static size_t some(struct stage *stage)
{
    return fuzz_u8(&stage->bytes);
}

/* Keeps it, refuses it, or loses interest; mostly nothing. */
static int take(struct job *job, struct node_link *node, ProtobufCMessage **answer)
{
    struct stage *stage = stage_of(job);
    size_t choice = some(stage);
    FUZZ_CHECK(*answer != NULL && node->index < NODES);
    if (choice >= 250) {
        struct asker *asker = &stage->askers[choice % ASKERS];
        ask_forget(job, asker);
        asker->waits = 0;
    } else if (choice >= 240) {
        message_free(*answer);
        *answer = NULL;
    }
    return choice >= 230 && choice < 240 ? -1 : 0;
}

static const struct topic pieces = {"pieces",
                                    TOPIC_evidence,
                                    &hvdrun__evidence_request__descriptor,
                                    &hvdrun__evidence__descriptor,
                                    TOPIC_ANEW,
                                    3,
                                    100};
static const struct question questions[] = {
    {&topic_states, NULL, .keep = true}, {&topic_usage, take, .keep = false},
    {&topic_pulse, take, .keep = false}, {&pieces, take, .keep = false},
    {&topic_probe, NULL, .keep = true},
};

static void done(void *context, const struct ask *ask)
{
    struct asker *asker = context;
    FUZZ_CHECK(asker->waits > 0);
    asker->waits--;
    for (size_t i = 0; i < ask->count; i++) {
        const struct ask_answer *answer = &ask->answers[i];
        FUZZ_CHECK(answer->message == NULL || answer->state == ASK_ANSWERED);
        FUZZ_CHECK(answer->bytes <= (size_t)64 << 20);
    }
}

static void begin(struct stage *stage)
{
    const struct question *question =
        &questions[some(stage) % (sizeof(questions) / sizeof(questions[0]))];
    struct asker *asker = &stage->askers[some(stage) % ASKERS];
    size_t nodes = some(stage);
    if (++stage->asked >= QUESTIONS)
        return;
    struct ask *ask = ask_begin(&stage->job, question, 1000000, done, asker);
    asker->waits++;
    for (int i = 0; i < NODES; i++) {
        if (nodes >> i & 1)
            ask_node(ask, &stage->nodes[i], NULL);
    }
}

static int say(struct stage *stage, struct node_link *node, const uint8_t *body, size_t length)
{
    Hvdrun__Answer *message = hvdrun__answer__unpack(NULL, length, body);
    const struct agent_frame frame = {.message = message};
    int result = message == NULL ? -1 : asks_part.frames[0].rule.take(&stage->job, node, &frame);
    if (message != NULL)
        hvdrun__answer__free_unpacked(message, NULL);
    return result;
}

static void answer(struct stage *stage, bool raw)
{
    struct node_link *node = &stage->nodes[some(stage) % NODES];
    Hvdrun__Answer message = HVDRUN__ANSWER__INIT;
    message.question = (uint32_t)some(stage) % QUESTIONS;
    message.more = some(stage) & 1;
    size_t length = some(stage) % 64;
    length = length < stage->bytes.left ? length : stage->bytes.left;
    uint8_t *own AUTO_FREE = (uint8_t *)fuzz_text(stage->bytes.at, length);
    stage->bytes.at += length;
    stage->bytes.left -= length;
    message.answer = (ProtobufCBinaryData){length, own};
    ProtobufCBinaryData packed = message_pack(&message.base);
    int result = raw ? say(stage, node, own, length) : say(stage, node, packed.data, packed.len);
    free(packed.data);
    if (result < 0)
        asks_part.node_closed(&stage->job, node);
}

static void stop(void *context)
{
    loop_stop(context);
}

static void step(struct stage *stage)
{
    size_t choice = some(stage);
    struct asker *asker = &stage->askers[choice % ASKERS];
    switch (choice >> 4) {
    case 0:
    case 1:
    case 2: begin(stage); break;
    case 3: asks_part.node_closed(&stage->job, &stage->nodes[choice % NODES]); break;
    case 4:
        ask_forget(&stage->job, asker);
        asker->waits = 0;
        break;
    case 5:
        loop_defer(stage->job.loop, stop, stage->job.loop);
        loop_run(stage->job.loop);
        break;
    case 6: answer(stage, true); break;
    default: answer(stage, false); break;
    }
}

FUZZ_TARGET
{
    struct stage stage = {.bytes = {data, size}};
    stage.job = (struct job){.kind_data = &stage, .loop = loop_create(NULL), .epoch = 1};
    part_open(&stage.job, PART_asks, &asks_part, NULL);
    for (int i = 0; i < NODES; i++)
        stage.nodes[i] = (struct node_link){.index = i, .host = (char *)"h"};
    while (stage.bytes.left > 0)
        step(&stage);
    part_close(&stage.job, PART_asks, &asks_part);
    loop_destroy(stage.job.loop);
    return 0;
}
