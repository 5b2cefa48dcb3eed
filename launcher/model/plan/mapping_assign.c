/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of mapping.h at work. Those that fill hosts up to their slots (slot, numa, node) count
 * first whether all ranks find room; those that say a host's ranks themselves (ppr, seq, a list)
 * are held against its slots afterwards.
 */
#include <limits.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "model/plan/mapping.h"

#define SHOWN_HOSTS_MAX 200 /* bytes of the host list in an error, about */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t limit_of(const struct host *host)
{
    return host->max_slots > 0 ? host->max_slots : INT_MAX;
}

/* How many ranks find a place when every host may be filled up to its slots so many times. */
static int64_t room(const struct host_list *hosts, int64_t rounds)
{
    int64_t total = 0;
    for (size_t i = 0; i < hosts->count; i++)
        total += smaller(rounds * hosts->items[i].slots, limit_of(&hosts->items[i]));
    return total;
}

static int no_slots(const struct host_list *hosts, int size, bool oversubscribe, struct error *err)
{
    struct buf list AUTO_BUF = BUF_INIT(SHOWN_HOSTS_MAX + 512);
    for (size_t i = 0; i < hosts->count; i++) {
        if (list.length > SHOWN_HOSTS_MAX) {
            buf_puts(&list, ", ...");
            break;
        }
        buf_printf(&list, "%s%s: %d", i > 0 ? ", " : "", hosts->items[i].name,
                   hosts->items[i].slots);
    }
    int64_t slots = room(hosts, oversubscribe ? size : 1);
    const char *plural = size == 1 ? "" : "s";
    if (oversubscribe && slots > 0)
        return error_status(err, STATUS_NO_SLOTS,
                            "not enough slots: %d rank%s wanted, but max_slots limits the hosts to "
                            "%lld even with --oversubscribe; give more hosts",
                            size, plural, (long long)slots);
    return error_status(err, STATUS_NO_SLOTS,
                        "not enough slots: %d rank%s wanted, %lld slot%s found (%s); give more "
                        "hosts or slots, or --oversubscribe",
                        size, plural, (long long)slots, slots == 1 ? "" : "s", buf_text(&list));
}

/* Host after host. With more ranks than slots, all hosts are filled up together: a host's ranks are
 * counted first, so they follow each other. */
static void fill_hosts(const struct host_list *hosts, int size, int *out)
{
    int64_t least = 0, most = size; /* rounds that are surely full, and surely too many */
    while (most - least > 1) {
        int64_t middle = least + (most - least) / 2;
        if (room(hosts, middle) <= size)
            least = middle;
        else
            most = middle;
    }
    int64_t left = size - room(hosts, least);
    int rank = 0;
    for (size_t i = 0; i < hosts->count; i++) {
        int64_t slots = hosts->items[i].slots, limit = limit_of(&hosts->items[i]);
        int64_t count = smaller(least * slots, limit);
        int64_t more = smaller(smaller(slots, limit - count), left);
        left -= more;
        for (count += more; count > 0; count--)
            out[rank++] = (int)i;
    }
}

struct open_host {
    int host, slots;
};

/* One to each of the hosts that still have a slot, in turn, until one side is at its end. */
static int deal_round(struct open_host *open, size_t count, int *given, int rank, int size,
                      int *out)
{
    while (count > 0 && rank < size) {
        size_t kept = 0;
        for (size_t i = 0; i < count && rank < size; i++) {
            struct open_host at = open[i];
            out[rank++] = at.host;
            given[at.host]++;
            at.slots--;
            if (at.slots > 0)
                open[kept++] = at;
        }
        count = kept;
    }
    return rank;
}

/* Round the hosts. A round ends when all slots are taken; the next one begins with fresh ones, for
 * those that have not reached their limit. */
static void deal_hosts(const struct host_list *hosts, int size, int *out)
{
    int *given AUTO_FREE = mem_array(hosts->count, sizeof(*given));
    int *alive AUTO_FREE = mem_array(hosts->count, sizeof(*alive));
    struct open_host *open AUTO_FREE = mem_array(hosts->count, sizeof(*open));
    size_t alive_count = hosts->count;
    for (size_t i = 0; i < hosts->count; i++)
        alive[i] = (int)i;
    for (int rank = 0; rank < size;) {
        size_t count = 0;
        for (size_t i = 0; i < alive_count; i++) {
            const struct host *host = &hosts->items[alive[i]];
            int slots = (int)smaller(host->slots, limit_of(host) - given[alive[i]]);
            if (slots <= 0)
                continue;
            open[count] = (struct open_host){alive[i], slots};
            alive[count++] = alive[i];
        }
        alive_count = count;
        rank = deal_round(open, count, given, rank, size, out);
    }
}

static int place_ppr(const struct mapping *mapping, const struct host_list *hosts, int size,
                     int *out, struct error *err)
{
    int64_t most = mapping_size(mapping, hosts);
    if (size > most)
        return error_status(err, STATUS_USAGE,
                            "--map-by ppr:%d:node has room for %lld rank%s on %zu host%s, but %d "
                            "are wanted; make -np and ppr agree, or give more hosts",
                            mapping->per_node, (long long)most, most == 1 ? "" : "s", hosts->count,
                            hosts->count == 1 ? "" : "s", size);
    for (int rank = 0; rank < size; rank++)
        out[rank] = rank / mapping->per_node;
    return 0;
}

static int place_seq(const struct host_list *hosts, int size, bool oversubscribe, int *out,
                     struct error *err)
{
    if ((size_t)size > hosts->said && !oversubscribe)
        return error_status(
            err, STATUS_NO_SLOTS,
            "not enough slots: %d ranks wanted, but --map-by seq starts one for each of the %zu "
            "entries of the host list; give more entries, or --oversubscribe",
            size, hosts->said);
    for (int rank = 0; rank < size; rank++)
        out[rank] = (int)hosts->sequence[(size_t)rank % hosts->said];
    return 0;
}

static int place_list(const struct mapping *mapping, const struct host_list *hosts, int size,
                      int *out, struct error *err)
{
    const struct rank_list *list = &mapping->list;
    if ((size_t)size != list->count)
        return error_status(err, STATUS_USAGE,
                            "%s has places for %zu rank%s, but %d %s wanted; make them agree or "
                            "leave -np out",
                            list->source, list->count, list->count == 1 ? "" : "s", size,
                            size == 1 ? "is" : "are");
    int *found AUTO_FREE = rank_list_resolve(list, hosts, err);
    for (int rank = 0; rank < size && found != NULL; rank++)
        out[rank] = found[rank];
    return found == NULL ? -1 : 0;
}

/* What put the ranks there, for errors. */
static const char *source_of(const struct mapping *mapping)
{
    if (mapping->rule == MAP_LIST)
        return mapping->list.source;
    return mapping->rule == MAP_SEQ ? "--map-by seq" : "--map-by ppr";
}

/* No host may have more ranks than its rule and its slots allow. */
static int check_slots(const struct mapping *mapping, const struct host_list *hosts, int size,
                       bool oversubscribe, const int *host_of, struct error *err)
{
    int *ranks AUTO_FREE = mem_array(hosts->count, sizeof(*ranks));
    for (int rank = 0; rank < size; rank++)
        ranks[host_of[rank]]++;
    for (size_t i = 0; i < hosts->count; i++) {
        const struct host *host = &hosts->items[i];
        int slots = mapping_slots(mapping, host, ranks[i]);
        bool limited = ranks[i] > limit_of(host);
        if (!limited && (oversubscribe || ranks[i] <= slots))
            continue;
        int allowed = limited ? host->max_slots : slots;
        return error_status(err, STATUS_NO_SLOTS,
                            "not enough slots: %s puts %d ranks on %s, which has %s%d slot%s; %s",
                            source_of(mapping), ranks[i], host->name, limited ? "at most " : "",
                            allowed, allowed == 1 ? "" : "s",
                            limited ? "use more hosts" : "give it more slots, or --oversubscribe");
    }
    return 0;
}

static int place(const struct mapping *mapping, const struct host_list *hosts, int size,
                 bool oversubscribe, int *out, struct error *err)
{
    switch (mapping->rule) {
    case MAP_PPR: return place_ppr(mapping, hosts, size, out, err);
    case MAP_SEQ: return place_seq(hosts, size, oversubscribe, out, err);
    case MAP_LIST: return place_list(mapping, hosts, size, out, err);
    case MAP_NODE:
    case MAP_SLOT:
    case MAP_NUMA: break;
    }
    if (room(hosts, oversubscribe ? size : 1) < size)
        return no_slots(hosts, size, oversubscribe, err);
    if (mapping->rule == MAP_NODE)
        deal_hosts(hosts, size, out);
    else
        fill_hosts(hosts, size, out);
    return 0;
}

int *mapping_assign(const struct mapping *mapping, const struct host_list *hosts, int size,
                    bool oversubscribe, struct error *err)
{
    oversubscribe = oversubscribe || mapping->oversubscribe;
    int *host_of = mem_array((size_t)size, sizeof(*host_of));
    if (place(mapping, hosts, size, oversubscribe, host_of, err) == 0 &&
        check_slots(mapping, hosts, size, oversubscribe, host_of, err) == 0)
        return host_of;
    free(host_of);
    return NULL;
}
