/* SPDX-License-Identifier: Apache-2.0 */
#include "features/torch_store/torch_waits.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "model/plan/rank_list.h"

#define HOSTS_SHOWN 4

static bool waits(const struct torch_rank *rank)
{
    return rank->key != NULL;
}

static bool is_absent(const struct torch_rank *rank)
{
    return rank->known && !rank->connected;
}

static bool is_idle(const struct torch_rank *rank)
{
    return rank->known && rank->connected && rank->key == NULL;
}

/* Appends the ranks for which `is` holds, "ranks 0-2", and returns their number. */
static int put_ranks(const struct torch_rank *ranks, size_t count,
                     bool (*is)(const struct torch_rank *rank), struct buf *out)
{
    int *list AUTO_FREE = mem_array(count + 1, sizeof(*list)), found = 0;
    for (size_t i = 0; i < count; i++) {
        if (is(&ranks[i]))
            list[found++] = ranks[i].rank;
    }
    if (found > 0)
        rank_ranges(list, found, out);
    return found;
}

/* " on b, c" */
static void put_hosts(const struct torch_rank *ranks, size_t count,
                      bool (*is)(const struct torch_rank *rank), struct buf *out)
{
    const char *last = NULL;
    int shown = 0;
    for (size_t i = 0; i < count && shown <= HOSTS_SHOWN; i++) {
        if (!is(&ranks[i]) || (last != NULL && strcmp(last, ranks[i].host) == 0))
            continue;
        last = ranks[i].host;
        buf_printf(out, "%s%s", shown == 0 ? " on " : ", ", shown == HOSTS_SHOWN ? "..." : last);
        shown++;
    }
}

/* The one that waits for the key of most; of these, the one that has waited longest. */
static const struct torch_rank *typical(const struct torch_rank *ranks, size_t count)
{
    struct map counts = {NULL};
    size_t *numbers AUTO_FREE = mem_array(count + 1, sizeof(*numbers)), used = 0, most = 0;
    const struct torch_rank *best = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!waits(&ranks[i]))
            continue;
        size_t *number = map_get(&counts, map_text(ranks[i].key));
        if (number == NULL)
            number = &numbers[used++];
        map_put(&counts, map_text(ranks[i].key), number);
        ++*number;
    }
    for (size_t i = 0; i < count; i++) {
        const size_t *number = waits(&ranks[i]) ? map_get(&counts, map_text(ranks[i].key)) : NULL;
        if (number == NULL || *number < most ||
            (*number == most && ranks[i].waited_ms <= best->waited_ms))
            continue;
        most = *number;
        best = &ranks[i];
    }
    map_clear(&counts, NULL);
    return best;
}

void torch_waits_text(const struct torch_rank *ranks, size_t count, size_t strangers,
                      struct buf *out)
{
    int64_t longest_ms = 0;
    for (size_t i = 0; i < count; i++) {
        if (waits(&ranks[i]) && ranks[i].waited_ms > longest_ms)
            longest_ms = ranks[i].waited_ms;
    }
    const struct torch_rank *first = typical(ranks, count);
    if (first == NULL || longest_ms < TORCH_WAITS_MS)
        return;
    int waiting = put_ranks(ranks, count, waits, out);
    if (strangers > 0)
        buf_printf(out, " and %zu other client%s", strangers, strangers == 1 ? "" : "s");
    buf_printf(out, " wait%s in PyTorch's store for '%s'",
               (size_t)waiting + strangers == 1 ? "s" : "", first->key);
    if (first->more_keys > 0)
        buf_printf(out, " and %zu other key%s", first->more_keys, first->more_keys == 1 ? "" : "s");
    buf_printf(out, ", for %lld s", (long long)(longest_ms / 1000));
    struct buf missing AUTO_BUF = BUF_INIT(4096);
    bool absent = put_ranks(ranks, count, is_absent, &missing) > 0;
    int others = absent ? 0 : put_ranks(ranks, count, is_idle, &missing);
    if (!absent && others == 0)
        return;
    bool (*is)(const struct torch_rank *rank) = absent ? is_absent : is_idle;
    put_hosts(ranks, count, is, &missing);
    bool one = strncmp(buf_text(&missing), "rank ", strlen("rank ")) == 0;
    buf_printf(out, "; %s %s", buf_text(&missing),
               absent ? (one ? "is not connected to it" : "are not connected to it")
                      : (one ? "does not wait" : "do not wait"));
}
