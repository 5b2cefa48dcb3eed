/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/recent.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "driver/job/job_kind.h"

/* In the ring, before the bytes of each piece. */
struct head {
    int64_t wall_ns;
    uint32_t length;
    int rank;
    bool is_stderr;
    bool skips; /* not a piece: the next one is at the start of the ring */
};

struct recent {
    size_t size;
    char *ring; /* of this size; NULL before the first piece */
    size_t first, end;
    size_t used; /* from first to end, around the edge */
    int64_t last_ns;
};

/* A head never lies across the edge, and is aligned. */
static size_t room_of(size_t length)
{
    size_t unit = _Alignof(struct head);
    return (sizeof(struct head) + length + unit - 1) / unit * unit;
}

struct recent *recent_create(size_t size)
{
    struct recent *recent = mem_alloc(sizeof(*recent));
    size_t unit = _Alignof(struct head);
    recent->size = size / unit * unit;
    return recent;
}

void recent_destroy(struct recent *recent)
{
    if (recent == NULL)
        return;
    free(recent->ring);
    free(recent);
}

static const struct head *head_at(const struct recent *recent, size_t at)
{
    return (const struct head *)(const void *)(recent->ring + at);
}

/* The bytes that an entry takes: a skip takes all up to the edge. */
static size_t taken_at(const struct recent *recent, size_t at)
{
    if (recent->size - at < sizeof(struct head) || head_at(recent, at)->skips)
        return recent->size - at;
    return room_of(head_at(recent, at)->length);
}

static void drop_first(struct recent *recent)
{
    size_t taken = taken_at(recent, recent->first);
    recent->used -= taken;
    recent->first = (recent->first + taken) % recent->size;
}

/* Makes `size` free bytes in a row at `end`. */
static void make_room(struct recent *recent, size_t size)
{
    size_t to_edge = recent->size - recent->end;
    if (size > to_edge) {
        while (recent->size - recent->used < to_edge)
            drop_first(recent);
        if (to_edge >= sizeof(struct head)) {
            struct head skip = {.skips = true};
            memcpy(recent->ring + recent->end, &skip, sizeof(skip));
        }
        recent->used += to_edge;
        recent->end = 0;
    }
    while (recent->size - recent->used < size)
        drop_first(recent);
}

void recent_add(struct recent *recent, const struct recent_piece *piece)
{
    size_t length = piece->length < recent->size / 4 ? piece->length : recent->size / 4;
    if (recent->ring == NULL)
        recent->ring = mem_alloc(recent->size);
    if (piece->rank != RECENT_LAUNCHER)
        recent->last_ns = piece->wall_ns;
    make_room(recent, room_of(length));
    struct head head = {.wall_ns = piece->wall_ns,
                        .length = (uint32_t)length,
                        .rank = piece->rank,
                        .is_stderr = piece->is_stderr};
    memcpy(recent->ring + recent->end, &head, sizeof(head));
    memcpy(recent->ring + recent->end + sizeof(head), piece->text + piece->length - length, length);
    recent->used += room_of(length);
    recent->end = (recent->end + room_of(length)) % recent->size;
}

int64_t recent_last_ns(const struct recent *recent)
{
    return recent->last_ns;
}

void recent_walk(const struct recent *recent,
                 void (*each)(void *context, const struct recent_piece *piece), void *context)
{
    size_t at = recent->first;
    for (size_t seen = 0; seen < recent->used;) {
        size_t taken = taken_at(recent, at);
        if (recent->size - at >= sizeof(struct head) && !head_at(recent, at)->skips) {
            const struct head *head = head_at(recent, at);
            struct recent_piece piece = {.rank = head->rank,
                                         .is_stderr = head->is_stderr,
                                         .wall_ns = head->wall_ns,
                                         .text = recent->ring + at + sizeof(*head),
                                         .length = head->length};
            each(context, &piece);
        }
        seen += taken;
        at = (at + taken) % recent->size;
    }
}

struct last_lines {
    size_t count, skip;
    void (*each)(void *context, const struct recent_piece *line); /* NULL: counts them only */
    void *context;
};

static void walk_piece(void *context, const struct recent_piece *piece)
{
    struct last_lines *lines = context;
    struct recent_piece line = *piece;
    const char *at = piece->text, *end = at + piece->length;
    while (text_next_line(&at, end, &line.text, &line.length)) {
        if (lines->each != NULL && lines->count >= lines->skip)
            lines->each(lines->context, &line);
        lines->count++;
    }
}

void recent_walk_lines(const struct recent *recent, size_t most,
                       void (*each)(void *context, const struct recent_piece *line), void *context)
{
    struct last_lines all = {.each = NULL}, last = {.each = each, .context = context};
    recent_walk(recent, walk_piece, &all);
    last.skip = all.count > most ? all.count - most : 0;
    recent_walk(recent, walk_piece, &last);
}

struct rank_tail {
    struct recent *lines; /* NULL before the first one */
    char *bar;            /* NULL: none */
};

struct rank_tails {
    struct rank_tail *ranks;
    int count;
    size_t each, taken;
};

struct rank_tails *rank_tails_create(int ranks)
{
    struct rank_tails *tails = mem_alloc(sizeof(*tails));
    size_t share = ranks > 0 ? RANK_TAILS_BYTES / (size_t)ranks : RANK_TAIL_BYTES;
    tails->each = share > RANK_TAIL_BYTES ? RANK_TAIL_BYTES : share;
    if (tails->each < RANK_TAIL_BYTES_MIN)
        tails->each = RANK_TAIL_BYTES_MIN;
    return tails;
}

void rank_tails_want(struct job *job)
{
    int ranks = job->plan->size > 0 ? job->plan->size : (int)job->settings->max_np;
    if (job->kind->has_workers && job_part(job, rank_tails) == NULL)
        job->own[PART_rank_tails] = rank_tails_create(ranks);
}

void rank_tails_destroy(struct rank_tails *tails)
{
    if (tails == NULL)
        return;
    for (int i = 0; i < tails->count; i++) {
        recent_destroy(tails->ranks[i].lines);
        free(tails->ranks[i].bar);
    }
    free(tails->ranks);
    free(tails);
}

static void grow(struct rank_tails *tails, int rank)
{
    int count = tails->count < 8 ? 8 : tails->count;
    while (count <= rank)
        count *= 2;
    tails->ranks = mem_resize_array(tails->ranks, (size_t)count, sizeof(*tails->ranks));
    for (int i = tails->count; i < count; i++)
        tails->ranks[i] = (struct rank_tail){.lines = NULL};
    tails->count = count;
}

/* NULL: there is no room for it. */
static struct rank_tail *tail_for(struct rank_tails *tails, int rank)
{
    if (rank >= tails->count)
        grow(tails, rank);
    struct rank_tail *tail = &tails->ranks[rank];
    if (tail->lines == NULL) {
        if (tails->taken + tails->each > RANK_TAILS_BYTES)
            return NULL;
        tails->taken += tails->each;
        tail->lines = recent_create(tails->each);
    }
    return tail;
}

void rank_tails_add(struct rank_tails *tails, const struct recent_piece *piece)
{
    struct rank_tail *tail = tails == NULL || piece->rank < 0 ? NULL : tail_for(tails, piece->rank);
    if (tail == NULL)
        return;
    free(tail->bar);
    tail->bar = NULL;
    recent_add(tail->lines, piece);
}

void rank_tails_add_bar(struct rank_tails *tails, const struct recent_piece *piece)
{
    struct rank_tail *tail = tails == NULL || piece->rank < 0 ? NULL : tail_for(tails, piece->rank);
    if (tail == NULL)
        return;
    size_t length = piece->length;
    while (length > 0 && strchr("\r\n", piece->text[length - 1]) != NULL)
        length--;
    length = length < RANK_TAIL_BAR_BYTES ? length : RANK_TAIL_BAR_BYTES;
    free(tail->bar);
    tail->bar = mem_strndup(piece->text, length);
}

static const struct rank_tail *find(const struct rank_tails *tails, int rank)
{
    static const struct rank_tail none = {.lines = NULL};
    return tails != NULL && rank >= 0 && rank < tails->count ? &tails->ranks[rank] : &none;
}

const struct recent *rank_tails_of(const struct rank_tails *tails, int rank)
{
    return find(tails, rank)->lines;
}

const char *rank_tails_bar(const struct rank_tails *tails, int rank)
{
    return find(tails, rank)->bar;
}
