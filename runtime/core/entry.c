/* SPDX-License-Identifier: Apache-2.0 */
#include "core/entry.h"

#include <stdlib.h>

#include "base/mem.h"

enum { RANKS_SHOWN = 16 };

struct entry *entry_create(void)
{
    return mem_alloc(sizeof(struct entry));
}

void entry_begin(struct entry *entry, size_t id, const struct request *request, bool borrowed,
                 int64_t now_ns)
{
    entry->id = id;
    entry->request = borrowed ? *request : request_copy(request);
    entry->borrowed = borrowed;
    entry->since_ns = entry->warned_ns = now_ns;
}

void entry_end(struct entry *entry)
{
    if (!entry->borrowed)
        request_destroy(&entry->request);
    request_destroy(&entry->other);
    bits_clear(&entry->have);
    bits_clear(&entry->others);
    bits_clear(&entry->apart);
    entry->request = (struct request){0};
    entry->difference = NULL;
    entry->ready = 0;
}

void entry_destroy(struct entry *entry)
{
    entry_end(entry);
    bits_destroy(&entry->have);
    bits_destroy(&entry->others);
    bits_destroy(&entry->apart);
    free(entry);
}

void entry_own(struct entry *entry)
{
    if (entry->borrowed)
        entry->request = request_copy(&entry->request);
    entry->borrowed = false;
}

void entry_add(struct entry *entry, int rank, const struct request *request)
{
    bits_set(&entry->have, (size_t)rank);
    if (request->priority > entry->request.priority)
        entry->request.priority = request->priority;
    const char *difference = request_difference(&entry->request, request);
    if (difference == NULL)
        return;
    if (entry->other.key == NULL) {
        entry->other = request_copy(request);
        entry->difference = difference;
    }
    bool like_other = request_difference(&entry->other, request) == NULL;
    bits_set(like_other ? &entry->others : &entry->apart, (size_t)rank);
}

void entry_describe_ranks(const struct bits *which, const struct core_config *config,
                          struct buf *out)
{
    size_t count = bits_size(which), shown = 0;
    buf_puts(out, count == 1 ? "rank" : "ranks");
    for (size_t rank = bits_next(which, 0); rank < (size_t)config->size;
         rank = bits_next(which, rank + 1)) {
        if (shown == RANKS_SHOWN) {
            buf_printf(out, " and %zu more", count - shown);
            return;
        }
        const char *before = shown == 0 ? " " : shown + 1 == count ? " and " : ", ";
        buf_printf(out, "%s%d", before, config->ranks[rank]);
        shown++;
    }
}

/* Other operations need the data of a rank that has joined. */
static bool needs_all(enum kind kind)
{
    return kind != KIND_ALLREDUCE && kind != KIND_BARRIER;
}

void entry_describe_error(const struct entry *entry, const struct bits *joined,
                          const struct core_config *config, struct buf *out)
{
    const struct request *first = &entry->request;
    AUTO_BITS struct bits same = {0}, away = {0};
    bits_copy(&away, joined);
    bits_remove(&away, &entry->have);
    if (entry->difference != NULL) {
        bits_copy(&same, &entry->have);
        bits_remove(&same, &entry->others);
        bits_remove(&same, &entry->apart);
        buf_printf(out, "%s '%.200s': the %s differ: ", kind_text(first->kind), request_name(first),
                   entry->difference);
        request_describe(first, entry->difference, out);
        buf_puts(out, " on ");
        entry_describe_ranks(&same, config, out);
        buf_puts(out, ", and ");
        request_describe(&entry->other, entry->difference, out);
        buf_puts(out, " on ");
        entry_describe_ranks(&entry->others, config, out);
        if (bits_any(&entry->apart)) {
            buf_puts(out, "; ");
            entry_describe_ranks(&entry->apart, config, out);
            buf_puts(out,
                     bits_size(&entry->apart) == 1 ? " differs from both" : " differ from both");
        }
    } else if (needs_all(first->kind) && bits_any(&away)) {
        buf_printf(out, "%s '%.200s': it needs all ranks, and ", kind_text(first->kind),
                   request_name(first));
        entry_describe_ranks(&away, config, out);
        buf_puts(out, bits_size(&away) == 1 ? " has joined" : " have joined");
    }
}
