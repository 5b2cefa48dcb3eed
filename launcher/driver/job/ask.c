/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/job/ask.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/job/part.h"

#define MISSING_SHOWN 8

struct asker {
    ask_done *done;
    void *context;
};

struct asks {
    struct ask *first;
    uint32_t number;          /* of the last question */
    int64_t begun_ms[TOPICS]; /* the last question about each topic; 0: none */
};

/* Takes the question out of the list. */
static void destroy(struct asks *asks, struct ask *ask)
{
    struct ask **at = &asks->first;
    while (*at != ask)
        at = &(*at)->next;
    *at = ask->next;
    loop_timer_destroy(ask->timer);
    for (size_t i = 0; i < ask->count; i++)
        message_free(ask->answers[i].message);
    free(ask->answers);
    free(ask->askers);
    free(ask->request.data);
    free(ask);
}

static void close_part(struct job *job)
{
    struct asks *asks = job_part(job, asks);
    while (asks->first != NULL)
        destroy(asks, asks->first);
}

/* One asker at a time: each may forget others. */
static void finish(void *context)
{
    struct ask *ask = context;
    ask->over = true;
    while (ask->asker_count > 0) {
        struct asker asker = ask->askers[0];
        ask->asker_count--;
        memmove(ask->askers, ask->askers + 1, ask->asker_count * sizeof(asker));
        asker.done(asker.context, ask);
    }
    destroy(job_part(ask->job, asks), ask);
}

/* Questions */

static void add_asker(struct ask *ask, ask_done *done, void *context)
{
    for (size_t i = 0; i < ask->asker_count; i++) {
        if (ask->askers[i].done == done && ask->askers[i].context == context)
            return;
    }
    if (done == NULL)
        return;
    MEM_ADD(ask->askers, ask->asker_count) = (struct asker){done, context};
}

struct ask *ask_begin(struct job *job, const struct question *question, int64_t limit_ms,
                      ask_done *done, void *context)
{
    struct ask *ask = MEM_NEW((struct ask){.job = job,
                                           .next = job_part(job, asks)->first,
                                           .question = question,
                                           .number = ++job_part(job, asks)->number,
                                           .limit_ms = limit_ms});
    ask->timer = loop_timer_create(job->loop, finish, ask);
    loop_timer_set(ask->timer, 0);
    job_part(job, asks)->first = ask;
    job_part(job, asks)->begun_ms[question->topic->number] = clock_mono_ms();
    add_asker(ask, done, context);
    return ask;
}

/* Does nothing if the agent cannot answer. */
static void send_to(struct ask *ask, struct node_link *node, const ProtobufCBinaryData *request)
{
    Hvdrun__Ask message = HVDRUN__ASK__INIT;
    if (!node_link_alive(node) || node->hello == NULL || node->state >= NODE_CLOSING)
        return;
    message.topic = ask->question->topic->number;
    message.question = ask->number;
    message.request = *request;
    node_link_send(node, FRAME_ASK, ask->job->epoch, &message.base);
    MEM_ADD(ask->answers, ask->count) = (struct ask_answer){.node = node};
    ask->owing++;
    loop_timer_set(ask->timer, ask->limit_ms);
}

void ask_node(struct ask *ask, struct node_link *node, const ProtobufCMessage *request)
{
    ProtobufCBinaryData packed = message_pack(request);
    send_to(ask, node, &packed);
    free(packed.data);
}

/* The one that is under way, and may be shared. */
static struct ask *find_same(const struct job *job, const struct question *question,
                             const ProtobufCBinaryData *request)
{
    struct ask *ask = question->topic->fresh_ms == TOPIC_ANEW ? NULL : job_part(job, asks)->first;
    while (ask != NULL &&
           (ask->over || ask->question != question || ask->request.len != request->len ||
            (request->len > 0 && memcmp(ask->request.data, request->data, request->len) != 0)))
        ask = ask->next;
    return ask;
}

bool ask_all(struct job *job, const struct question *question, const ProtobufCMessage *request,
             int64_t limit_ms, ask_done *done, void *context)
{
    ProtobufCBinaryData packed = message_pack(request);
    struct ask *ask = find_same(job, question, &packed);
    int64_t age_ms = ask_age_ms(job, question->topic);
    if (ask != NULL || (age_ms >= 0 && age_ms < question->topic->fresh_ms)) {
        free(packed.data);
        if (ask != NULL)
            add_asker(ask, done, context);
        return ask != NULL;
    }
    ask = ask_begin(job, question, limit_ms, done, context);
    ask->request = packed;
    for (int i = 0; i < job->node_count; i++)
        send_to(ask, job->nodes[i], &packed);
    return true;
}

void ask_forget(struct job *job, const void *context)
{
    for (struct ask *ask = job_part(job, asks)->first, *next; ask != NULL; ask = next) {
        size_t kept = 0, before = ask->asker_count;
        next = ask->next;
        for (size_t i = 0; i < before; i++) {
            if (ask->askers[i].context != context)
                ask->askers[kept++] = ask->askers[i];
        }
        ask->asker_count = kept;
        if (kept < before && kept == 0 && ask->question->topic->fresh_ms == TOPIC_ANEW &&
            !ask->over)
            destroy(job_part(job, asks), ask);
    }
}

/* Answers */

static struct ask *find(const struct job *job, uint32_t number)
{
    struct ask *ask = job_part(job, asks)->first;
    while (ask != NULL && ask->number != number)
        ask = ask->next;
    return ask;
}

/* Most questions go to all nodes in their order: the search begins where the node then is. */
static struct ask_answer *owed_by(const struct ask *ask, const struct node_link *node)
{
    size_t start = (size_t)node->index < ask->count ? (size_t)node->index : ask->count - 1;
    for (size_t i = 0; !ask->over && i < ask->count; i++) {
        struct ask_answer *answer = &ask->answers[(start + ask->count - i) % ask->count];
        if (answer->node == node && answer->state == ASK_OWES)
            return answer;
    }
    return NULL;
}

/* What takes the message may forget the question, which then is no more. */
static int hand_over(struct ask *ask, struct ask_answer *from, ProtobufCMessage *message)
{
    struct job *job = ask->job;
    const struct question *question = ask->question;
    uint32_t number = ask->number;
    size_t place = (size_t)(from - ask->answers);
    ask->owing -= from->state != ASK_OWES;
    int result = question->take == NULL ? 0 : question->take(job, from->node, &message);
    ask = find(job, number);
    from = ask == NULL ? NULL : &ask->answers[place]; /* it may have asked more nodes */
    if (from != NULL && result < 0) {
        ask->owing -= from->state == ASK_OWES;
        from->state = ASK_LOST;
    }
    if (from != NULL && result == 0 && question->keep) {
        from->message = message;
        message = NULL;
    }
    message_free(message);
    if (ask != NULL && ask->owing == 0 && !ask->over)
        finish(ask);
    return result;
}

static int ask_take(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    const Hvdrun__Answer *message = frame->message;
    struct ask *ask = find(job, message->question);
    struct ask_answer *from = ask == NULL ? NULL : owed_by(ask, node);
    if (from == NULL)
        return 0; /* it is late, or was not asked for */
    const struct topic *topic = ask->question->topic;
    from->pieces++;
    from->bytes += message->answer.len;
    if (from->pieces + (message->more ? 1 : 0) > topic->pieces || from->bytes > topic->bytes)
        return -1;
    ProtobufCMessage *answer =
        message_read(topic->answer, message->answer.data, message->answer.len);
    if (answer == NULL)
        return -1;
    from->state = message->more ? ASK_OWES : ASK_ANSWERED;
    return hand_over(ask, from, answer);
}

/* It will not answer. `done` comes from the loop: the caller is in the middle of a loss. */
static void node_closed(struct job *job, struct node_link *node)
{
    for (struct ask *ask = job_part(job, asks)->first; ask != NULL; ask = ask->next) {
        struct ask_answer *answer = owed_by(ask, node);
        if (answer == NULL)
            continue;
        answer->state = ASK_LOST;
        if (--ask->owing == 0)
            loop_timer_set(ask->timer, 0);
    }
}

bool ask_is_open(const struct job *job, const struct topic *topic)
{
    const struct ask *ask = job_part(job, asks)->first;
    while (ask != NULL && (ask->over || ask->question->topic != topic))
        ask = ask->next;
    return ask != NULL;
}

bool ask_has_begun(const struct job *job, const struct topic *topic)
{
    for (const struct ask *ask = job_part(job, asks)->first; ask != NULL; ask = ask->next) {
        for (size_t i = 0; ask->question->topic == topic && i < ask->count; i++) {
            if (ask->answers[i].state == ASK_OWES && ask->answers[i].pieces > 0)
                return true;
        }
    }
    return false;
}

int64_t ask_age_ms(const struct job *job, const struct topic *topic)
{
    int64_t begun_ms = job_part(job, asks)->begun_ms[topic->number];
    return begun_ms == 0 ? -1 : clock_mono_ms() - begun_ms;
}

void ask_missing(const struct ask *ask, struct buf *out)
{
    size_t missing = 0;
    for (size_t i = 0; i < ask->count; i++) {
        if (ask->answers[i].state == ASK_ANSWERED)
            continue;
        if (missing++ < MISSING_SHOWN)
            buf_printf(out, "%s%s", missing > 1 ? ", " : "", ask->answers[i].node->host);
    }
    if (missing > MISSING_SHOWN)
        buf_printf(out, " and %zu more", missing - MISSING_SHOWN);
}

static const struct part_frame frames[] = {
    {FRAME_ANSWER, {ask_take, &hvdrun__answer__descriptor, EPOCHS_ALL, NODE_UP, false}}, {0}};
/* When it is closed, nobody who waits is called. */
const struct driver_part asks_part = {.name = "asks",
                                      .size = sizeof(struct asks),
                                      .close = close_part,
                                      .frames = frames,
                                      .node_closed = node_closed};
