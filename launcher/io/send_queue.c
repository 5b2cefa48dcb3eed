/* SPDX-License-Identifier: Apache-2.0 */
#include "io/send_queue.h"

#include <stdlib.h>

#include "base/mem.h"

/* A part of a block, and how many own bytes go before it. */
struct send_piece {
    struct send_piece *next;
    struct shared_block *block;
    size_t own_before;
    size_t offset, length;
};

struct shared_block *shared_block_create(size_t length)
{
    struct shared_block *block = mem_alloc(sizeof(*block) + length);
    block->holders = 1;
    block->length = length;
    return block;
}

struct shared_block *shared_block_hold(struct shared_block *block)
{
    block->holders++;
    return block;
}

void shared_block_release(struct shared_block *block)
{
    if (block != NULL && --block->holders == 0)
        free(block);
}

void send_queue_init(struct send_queue *queue, size_t limit)
{
    *queue = (struct send_queue){.own = BUF_INIT(limit), .limit = limit};
    queue->last = &queue->first;
}

static void drop_first(struct send_queue *queue)
{
    struct send_piece *piece = queue->first;
    queue->first = piece->next;
    if (queue->first == NULL)
        queue->last = &queue->first;
    queue->assigned -= piece->own_before;
    queue->shared -= piece->length;
    shared_block_release(piece->block);
    free(piece);
}

void send_queue_clear(struct send_queue *queue)
{
    while (queue->first != NULL)
        drop_first(queue);
    buf_clear(&queue->own);
}

void send_queue_destroy(struct send_queue *queue)
{
    send_queue_clear(queue);
    buf_destroy(&queue->own);
}

size_t send_queue_length(const struct send_queue *queue)
{
    return queue->own.length + queue->shared;
}

uint8_t *send_queue_reserve(struct send_queue *queue, size_t length)
{
    if (length > queue->limit - send_queue_length(queue))
        return NULL;
    return buf_reserve(&queue->own, length);
}

void send_queue_commit(struct send_queue *queue, size_t length)
{
    buf_commit(&queue->own, length);
}

int send_queue_share(struct send_queue *queue, struct shared_block *block, size_t offset,
                     size_t length)
{
    if (length > queue->limit - send_queue_length(queue))
        return -1;
    if (length == 0)
        return 0;
    struct send_piece *piece = mem_alloc(sizeof(*piece));
    *piece = (struct send_piece){.block = shared_block_hold(block),
                                 .own_before = queue->own.length - queue->assigned,
                                 .offset = offset,
                                 .length = length};
    queue->assigned += piece->own_before;
    queue->shared += length;
    *queue->last = piece;
    queue->last = &piece->next;
    return 0;
}

const void *send_queue_next(const struct send_queue *queue, size_t *length)
{
    const struct send_piece *piece = queue->first;
    if (piece != NULL && piece->own_before == 0) {
        *length = piece->length;
        return piece->block->bytes + piece->offset;
    }
    *length = piece != NULL ? piece->own_before : queue->own.length;
    return *length > 0 ? buf_text(&queue->own) : NULL;
}

void send_queue_consume(struct send_queue *queue, size_t length)
{
    struct send_piece *piece = queue->first;
    if (piece != NULL && piece->own_before == 0) {
        piece->offset += length;
        piece->length -= length;
        queue->shared -= length;
        if (piece->length == 0)
            drop_first(queue);
        return;
    }
    buf_consume(&queue->own, length);
    if (piece != NULL) {
        piece->own_before -= length;
        queue->assigned -= length;
    }
}

void piece_list_init(struct piece_list *list)
{
    *list = (struct piece_list){.last = &list->first};
}

size_t pieced_rest(const struct pieced *pieced)
{
    return pieced->head.length + pieced->block->length - pieced->at;
}

static void drop_pieced(struct piece_list *list, struct pieced **at)
{
    struct pieced *pieced = *at;
    list->length -= pieced_rest(pieced);
    *at = pieced->next;
    if (*at == NULL)
        list->last = at;
    buf_destroy(&pieced->head);
    shared_block_release(pieced->block);
    free(pieced);
}

void piece_list_clear(struct piece_list *list)
{
    while (list->first != NULL)
        drop_pieced(list, &list->first);
}

void piece_list_drop(struct piece_list *list, uint32_t epoch)
{
    for (struct pieced **at = &list->first; *at != NULL;) {
        if ((*at)->epoch == epoch && (*at)->at == 0)
            drop_pieced(list, at);
        else
            at = &(*at)->next;
    }
}

void piece_list_add(struct piece_list *list, enum frame_type type, uint32_t epoch, struct buf *head,
                    struct shared_block *block)
{
    struct pieced *pieced = mem_alloc(sizeof(*pieced));
    *pieced = (struct pieced){
        .type = type, .epoch = epoch, .head = *head, .block = shared_block_hold(block)};
    buf_init(head, head->limit);
    list->length += pieced_rest(pieced);
    *list->last = pieced;
    list->last = &pieced->next;
}

void piece_list_sent(struct piece_list *list, size_t length)
{
    list->first->at += length;
    list->length -= length;
    if (pieced_rest(list->first) == 0)
        drop_pieced(list, &list->first);
}
