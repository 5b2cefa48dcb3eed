/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/rank_tails.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "driver/job/job_kind.h"

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
