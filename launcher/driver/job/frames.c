/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/job/frames.h"

#include "driver/job/job_kind.h"
#include "wire/message_memory.h"

static int take_hello(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    (void)frame; /* the link has decoded it: node->hello */
    kind_hello(job, node);
    return 0;
}

static const struct frame_rule *rule_of(const struct job *job, uint8_t type)
{
    static const struct frame_rule hello = {take_hello, NULL, EPOCHS_ALL, NODE_STARTING, false};
    if (type == FRAME_HELLO)
        return &hello;
    return job->frames[type] != NULL ? job->frames[type] : &job->kind->frames[type];
}

static bool is_late(const struct job *job, const struct frame_rule *rule, uint32_t epoch)
{
    bool any =
        rule->epochs == EPOCHS_ALL || (rule->epochs == EPOCHS_OF_WORKERS && job->kind->many_epochs);
    return !any && epoch != job->epoch;
}

int frames_take(struct job *job, struct node_link *node, const struct frame_header *header,
                const uint8_t *body)
{
    if (header->type >= FRAME_TYPES)
        return -1;
    const struct frame_rule *rule = rule_of(job, header->type);
    struct agent_frame frame = {header->type, header->epoch, body, header->length, NULL};
    if (rule->take == NULL || (!job->kind->many_epochs && node->state < rule->least))
        return -1;
    if (is_late(job, rule, frame.epoch) || (rule->placed && node->place < 0))
        return 0;
    if (rule->message != NULL)
        frame.message = message_read(rule->message, body, frame.length);
    bool broken = rule->message != NULL && frame.message == NULL;
    int result = broken ? -1 : rule->take(job, node, &frame);
    message_free(frame.message);
    return result;
}
