/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/ask.h"

#include <stdlib.h>

void asked_piece(const struct asked *asked, const ProtobufCMessage *piece, bool more)
{
    Hvdrun__Answer message = HVDRUN__ANSWER__INIT;
    message.question = asked->number;
    message.answer = message_pack(piece);
    message.more = more;
    post_message(asked->post, FRAME_ANSWER, &message.base);
    free(message.answer.data);
}

void asked_answer(const struct asked *asked, const ProtobufCMessage *answer)
{
    asked_piece(asked, answer, false);
}

const struct ask_rule *asked_rule(const struct ask_rule *rule, const Hvdrun__Ask *message)
{
    while (rule->topic != NULL && rule->topic->number != message->topic)
        rule++;
    return rule->topic == NULL ? NULL : rule;
}

const char *asked_take(const struct ask_rule *rule, struct agent *agent, const struct post *post,
                       const Hvdrun__Ask *message)
{
    const struct asked asked = {post, message->question};
    ProtobufCMessage *request =
        message_read(rule->topic->request, message->request.data, message->request.len);
    if (request == NULL)
        return "ASK has a request that cannot be read";
    rule->answer(agent, &asked, request);
    message_free(request);
    return NULL;
}
