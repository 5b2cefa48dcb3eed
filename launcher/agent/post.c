/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/post.h"

#include <stdlib.h>
#include <string.h>

#include "io/send_queue.h"
#include "wire/control.pb-c.h"

static void post_log(void *context, enum log_level level, const char *line)
{
    const struct post *post = context;
    Hvdrun__Log message = HVDRUN__LOG__INIT;
    message.level = (uint32_t)level;
    message.text = (char *)line; /* protobuf-c only reads it */
    post_message(post, FRAME_LOG, &message.base);
}

void post_init(struct post *post, struct link *link)
{
    *post = (struct post){.link = link,
                          .log = {.level = LOG_NOTICE, .emit = post_log, .context = post}};
}

void post_init_part(struct post *post, const struct post *whole, uint32_t epoch)
{
    *post = (struct post){.whole = whole, .epoch = epoch, .log = whole->log};
}

struct link *post_link(const struct post *post)
{
    return post->whole != NULL ? post->whole->link : post->link;
}

void post_message(const struct post *post, enum frame_type type, const ProtobufCMessage *message)
{
    struct link *link = post_link(post);
    if (link != NULL)
        link_send_message(link, type, post->epoch, message);
}

void post_pieces(const struct post *post, enum frame_type type, const ProtobufCMessage *message,
                 unsigned field, const void *bytes, size_t length)
{
    struct link *link = post_link(post);
    if (link == NULL)
        return;
    struct shared_block *block = shared_block_create(length);
    if (length > 0)
        memcpy(block->bytes, bytes, length);
    link_send_pieces(link, type, post->epoch, message, field, block);
    shared_block_release(block);
}

bool post_takes(const struct post *post, size_t length)
{
    const struct link *link = post_link(post);
    return link != NULL && link_takes(link, length);
}

void post_empty(const struct post *post, enum frame_type type)
{
    struct link *link = post_link(post);
    if (link != NULL)
        link_send(link, type, post->epoch, NULL, 0);
}

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
