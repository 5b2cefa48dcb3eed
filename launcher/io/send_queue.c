/* SPDX-License-Identifier: Apache-2.0 */
#include "io/send_queue.h"

#include <stdlib.h>
#include <string.h>

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
    struct send_piece *piece =
        MEM_NEW((struct send_piece){.block = shared_block_hold(block),
                                    .own_before = queue->own.length - queue->assigned,
                                    .offset = offset,
                                    .length = length});
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

struct pieced {
    struct pieced *next;
    enum frame_type type;
    uint32_t epoch;
    struct buf head;            /* its first bytes */
    struct shared_block *block; /* all others */
    size_t at;                  /* how many are in the queue */
};

void frame_queue_init(struct frame_queue *frames, size_t limit)
{
    *frames = (struct frame_queue){.node = FRAME_NODE_NONE, .last = &frames->first};
    send_queue_init(&frames->queue, limit);
}

static size_t pieced_rest(const struct pieced *pieced)
{
    return pieced->head.length + pieced->block->length - pieced->at;
}

static void drop_pieced(struct frame_queue *frames, struct pieced **at)
{
    struct pieced *pieced = *at;
    frames->pieces -= pieced_rest(pieced);
    *at = pieced->next;
    if (*at == NULL)
        frames->last = at;
    buf_destroy(&pieced->head);
    shared_block_release(pieced->block);
    free(pieced);
}

void frame_queue_clear(struct frame_queue *frames)
{
    send_queue_clear(&frames->queue);
    while (frames->first != NULL)
        drop_pieced(frames, &frames->first);
}

void frame_queue_destroy(struct frame_queue *frames)
{
    frame_queue_clear(frames);
    send_queue_destroy(&frames->queue);
}

size_t frame_queue_length(const struct frame_queue *frames)
{
    return send_queue_length(&frames->queue) + frames->pieces;
}

uint8_t *frame_queue_reserve(struct frame_queue *frames, size_t body)
{
    return send_queue_reserve(&frames->queue, FRAME_HEADER_SIZE + body);
}

void frame_queue_header(const struct frame_queue *frames, uint8_t *place, enum frame_type type,
                        uint32_t epoch, size_t body)
{
    struct frame_header header = {.version = FRAME_VERSION,
                                  .type = (uint8_t)type,
                                  .number = frames->sent,
                                  .length = (uint32_t)body,
                                  .node = frames->node,
                                  .epoch = epoch};
    frame_header_put(&header, place);
}

void frame_queue_commit(struct frame_queue *frames, enum frame_type type, uint32_t epoch,
                        size_t body)
{
    frame_queue_header(frames, frame_queue_reserve(frames, body), type, epoch, body);
    frames->sent++;
    send_queue_commit(&frames->queue, FRAME_HEADER_SIZE + body);
}

bool frame_queue_share(struct frame_queue *frames, enum frame_type type, uint32_t epoch,
                       uint8_t lead, const struct buf *head, struct shared_block *block,
                       size_t offset, size_t length)
{
    size_t from = offset < head->length ? offset : head->length;
    size_t own = head->length - from < length ? head->length - from : length;
    size_t first = lead != 0;
    uint8_t *place = frame_queue_reserve(frames, first + own);
    if (place == NULL)
        return false;
    if (lead != 0)
        place[FRAME_HEADER_SIZE] = lead;
    memcpy(place + FRAME_HEADER_SIZE + first, buf_text(head) + from, own);
    frame_queue_header(frames, place, type, epoch, first + length);
    frames->sent++;
    send_queue_commit(&frames->queue, FRAME_HEADER_SIZE + first + own);
    return send_queue_share(&frames->queue, block, offset - from, length - own) == 0;
}

void frame_queue_add_pieces(struct frame_queue *frames, enum frame_type type, uint32_t epoch,
                            struct buf *head, struct shared_block *block)
{
    struct pieced *pieced = MEM_NEW((struct pieced){
        .type = type, .epoch = epoch, .head = *head, .block = shared_block_hold(block)});
    buf_init(head, head->limit);
    frames->pieces += pieced_rest(pieced);
    *frames->last = pieced;
    frames->last = &pieced->next;
}

bool frame_queue_next_piece(struct frame_queue *frames)
{
    struct pieced *pieced = frames->first;
    if (pieced == NULL)
        return false;
    size_t rest = pieced_rest(pieced), length = rest < LINK_PIECE ? rest : LINK_PIECE;
    bool last = rest == length;
    if (!frame_queue_share(frames, last ? FRAME_PIECES_END : FRAME_PIECE, pieced->epoch,
                           last ? (uint8_t)pieced->type : 0, &pieced->head, pieced->block,
                           pieced->at, length))
        return false;
    pieced->at += length;
    frames->pieces -= length;
    if (last)
        drop_pieced(frames, &frames->first);
    return true;
}

void frame_queue_drop_pieces(struct frame_queue *frames, uint32_t epoch)
{
    for (struct pieced **at = &frames->first; *at != NULL;) {
        if ((*at)->epoch == epoch && (*at)->at == 0)
            drop_pieced(frames, at);
        else
            at = &(*at)->next;
    }
}
