/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/stalls.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/plan/rank_list.h"

#define NAME_SHOWN 120

struct stall_list {
    struct stall *items; /* most jobs have none */
    int count;
};

struct stall_list *stall_list_create(void)
{
    return mem_alloc(sizeof(struct stall_list));
}

void stall_clear(struct stall *stall)
{
    free(stall->operation);
    free(stall->name);
    free(stall->waiting.list);
    free(stall->missing.list);
}

void stall_list_destroy(struct stall_list *list)
{
    if (list == NULL)
        return;
    for (int i = 0; i < list->count; i++)
        stall_clear(&list->items[i]);
    free(list->items);
    free(list);
}

static struct stall *find(struct stall_list *list, int seat, uint32_t set)
{
    for (int i = 0; i < list->count; i++) {
        struct stall *stall = &list->items[i];
        if (stall->seat == seat && stall->set == set && !stall->over)
            return stall;
    }
    return NULL;
}

static void make_room(struct stall_list *list)
{
    int victim = 0;
    if (list->count < STALLS_MAX)
        return;
    for (int i = list->count; i-- > 0;)
        victim = list->items[i].over ? i : victim;
    stall_clear(&list->items[victim]);
    list->count--;
    memmove(&list->items[victim], &list->items[victim + 1],
            (size_t)(list->count - victim) * sizeof(list->items[0]));
}

const struct stall *stall_list_add(struct stall_list *list, const struct stall *stall)
{
    struct stall *old = find(list, stall->seat, stall->set);
    if (old != NULL && strcmp(old->name, stall->name) == 0) {
        int64_t since = old->since_ns;
        uint32_t period = old->period;
        stall_clear(old);
        *old = *stall;
        old->since_ns = since;
        old->period = period;
        return old;
    }
    if (old != NULL)
        old->over = true;
    make_room(list);
    struct stall *added = &MEM_ADD(list->items, list->count);
    *added = *stall;
    added->period = stall->seconds; /* it is reported for the first time */
    return added;
}

void stall_list_over(struct stall_list *list, int seat, uint32_t set)
{
    struct stall *stall = find(list, seat, set);
    if (stall != NULL)
        stall->over = true;
}

void stall_list_all_over(struct stall_list *list)
{
    for (int i = 0; i < list->count; i++)
        list->items[i].over = true;
}

const struct stall *stall_list_at(const struct stall_list *list, int number)
{
    return list != NULL && number >= 0 && number < list->count ? &list->items[number] : NULL;
}

bool stall_lasts(const struct stall *stall, int64_t now_ns)
{
    int64_t patience_s = 2 * (int64_t)stall->period + 2;
    return !stall->over && now_ns - stall->reported_ns < patience_s * 1000000000;
}

static void put_ranks(const struct stall_ranks *ranks, const char *none, struct buf *out)
{
    size_t before = out->length;
    if (ranks->count == 0) {
        buf_puts(out, none);
        return;
    }
    rank_ranges(ranks->list, ranks->count, out);
    bool cut = out->length >= before + 4 &&
               strcmp(buf_text(out) + out->length - 4, ",...") == 0; /* rank_ranges() did it */
    if (ranks->more && !cut)
        buf_puts(out, ",...");
}

void stall_text(const struct stall *stall, struct buf *out)
{
    bool one = stall->waiting.count == 1 && !stall->waiting.more;
    bool longer = strlen(stall->name) > NAME_SHOWN;
    put_ranks(&stall->waiting, "some ranks", out);
    buf_puts(out, one ? " waits for " : " wait for ");
    put_ranks(&stall->missing, "other ranks", out);
    buf_printf(out, " in %s '%.*s%s'", stall->operation[0] != '\0' ? stall->operation : "operation",
               NAME_SHOWN, stall->name, longer ? "..." : "");
    if (stall->set != 0)
        buf_printf(out, " of process set %u", stall->set);
    buf_printf(out, ", for %u s", stall->seconds);
    if (stall->others > 0)
        buf_printf(out, " (and in %u more operation%s)", stall->others,
                   stall->others == 1 ? "" : "s");
}
