/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/hang_waits_driver.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "driver/job/part.h"

struct wait {
    struct stall stall;
    uint32_t round;
};

struct hang_waits {
    struct wait *items; /* in the order of their coming */
    int count;
};

struct hang_waits *hang_waits_create(void)
{
    return mem_alloc(sizeof(struct hang_waits));
}

void hang_waits_forget(struct hang_waits *waits)
{
    for (int i = 0; i < waits->count; i++)
        stall_clear(&waits->items[i].stall);
    free(waits->items);
    *waits = (struct hang_waits){.count = 0};
}

void hang_waits_destroy(struct hang_waits *waits)
{
    if (waits != NULL)
        hang_waits_forget(waits);
    free(waits);
}

/* What the worker has answered about this set before. */
static void drop_older(struct hang_waits *waits, const struct stall *stall, uint32_t round)
{
    int kept = 0;
    for (int i = 0; i < waits->count; i++) {
        struct wait *wait = &waits->items[i];
        if (wait->stall.seat == stall->seat && wait->stall.set == stall->set &&
            wait->round != round)
            stall_clear(&wait->stall);
        else
            waits->items[kept++] = *wait;
    }
    waits->count = kept;
}

void hang_waits_take(struct hang_waits *waits, struct stall *stall, uint32_t round)
{
    drop_older(waits, stall, round);
    if (stall->missing.count == 0 || waits->count == HANG_WAITS_MAX) {
        stall_clear(stall);
        return;
    }
    waits->items = mem_resize_array(waits->items, (size_t)waits->count + 1, sizeof(*waits->items));
    waits->items[waits->count++] = (struct wait){*stall, round};
}

static bool has(const struct stall_ranks *ranks, int rank)
{
    for (int i = 0; i < ranks->count; i++) {
        if (ranks->list[i] == rank)
            return true;
    }
    return false;
}

/* Another operation for which this rank waits; NULL: none is known. */
static const struct stall *wait_of(const struct hang_waits *waits, const struct stall *except,
                                   int rank)
{
    for (int i = 0; i < waits->count; i++) {
        const struct stall *stall = &waits->items[i].stall;
        if (stall != except && has(&stall->waiting, rank))
            return stall;
    }
    return NULL;
}

/* Less is better: how many ranks are missing, and whether the first of them waits itself. */
static int64_t badness(const struct hang_waits *waits, const struct stall *stall)
{
    int64_t missing = stall->missing.more ? INT_MAX : stall->missing.count;
    return 2 * missing + (wait_of(waits, stall, stall->missing.list[0]) != NULL);
}

const struct stall *hang_waits_decide(const struct hang_waits *waits,
                                      const struct stall_list *stalls, int64_t now_ns)
{
    const struct stall *best = NULL, *stall = NULL;
    for (int i = 0; i < waits->count; i++) {
        stall = &waits->items[i].stall;
        if (best == NULL || badness(waits, stall) < badness(waits, best))
            best = stall;
    }
    for (int i = 0; (stall = stall_list_at(stalls, i)) != NULL; i++) {
        bool counts = stall_lasts(stall, now_ns) && stall->missing.count > 0;
        if (counts && (best == NULL || badness(waits, stall) < badness(waits, best)))
            best = stall;
    }
    return best;
}

void hang_waits_text(const struct hang_waits *waits, const struct stall *found, struct buf *out)
{
    const struct stall *other = wait_of(waits, found, found->missing.list[0]);
    stall_text(found, out);
    if (other == NULL)
        return;
    buf_puts(out, "; ");
    stall_text(other, out);
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    job->own[PART_hang_waits] = hang_waits_create();
    return 0;
}

static void close_part(struct job *job)
{
    hang_waits_destroy(job_part(job, hang_waits));
}

static bool take(struct job *job, struct stall *stall, uint32_t round)
{
    hang_waits_take(job_part(job, hang_waits), stall, round);
    return true;
}

const struct driver_part hang_waits_part = {
    .name = "hang_waits", .open = open_part, .close = close_part, .waits = take};
