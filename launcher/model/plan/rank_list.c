/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan/rank_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/plain.h"
#include "base/status.h"

/* Ranks as text: "rank 3", "ranks 0-7,9". Pure. */

#define SHOWN_RANGES_MAX 8

void rank_ranges(const int *ranks, int count, struct buf *out)
{
    buf_puts(out, count == 1 ? "rank " : "ranks ");
    rank_ranges_bare(ranks, count, out);
}

void rank_ranges_bare(const int *ranks, int count, struct buf *out)
{
    for (int first = 0, shown = 0; first < count; shown++) {
        int last = first;
        while (last + 1 < count && ranks[last + 1] == ranks[last] + 1)
            last++;
        if (shown == SHOWN_RANGES_MAX) {
            buf_puts(out, ",...");
            return;
        }
        buf_printf(out, last > first ? "%s%d-%d" : "%s%d", shown > 0 ? "," : "", ranks[first],
                   ranks[last]);
        first = last + 1;
    }
}

/* The places. */

struct rank_place *rank_list_at(struct rank_list *list, size_t rank)
{
    if (rank >= list->room) {
        size_t twice = list->room * 2;
        list->room = rank < 8 ? 16 : twice > rank ? twice : rank + 1;
        list->items = mem_resize_array(list->items, list->room, sizeof(*list->items));
    }
    for (; list->count <= rank; list->count++)
        list->items[list->count] = (struct rank_place){.host = RANK_PLACE_NONE};
    return &list->items[rank];
}

/* `+n3`; -1: it is none. */
static int64_t counted(const char *text, size_t length)
{
    char digits[16] = "";
    int64_t number = -1;
    if (length < 3 || length - 2 >= sizeof(digits) || text[0] != '+' ||
        (text[1] != 'n' && text[1] != 'N') || text[2] < '0' || text[2] > '9')
        return -1;
    memcpy(digits, text + 2, length - 2);
    return parse_int(digits, 0, RANK_PLACE_COUNTED_MAX - 1, &number, NULL) < 0 ? -1 : number;
}

int rank_list_host(struct rank_list *list, const char *text, size_t length, int *out,
                   struct error *err)
{
    int64_t number = counted(text, length);
    bool brackets = length > 2 && text[0] == '[' && text[length - 1] == ']';
    if (number >= 0) {
        *out = (int)(-1 - number);
        return 0;
    }
    const char *bare = brackets ? text + 1 : text;
    size_t bare_length = brackets ? length - 2 : length;
    if (!name_is_safe(bare, bare_length))
        return error_status(err, STATUS_USAGE,
                            "'%s' is not a host; expected a name of the host list, or +n0 for its "
                            "first host",
                            plain_show(text, length).text);
    char *name AUTO_FREE = mem_strndup(bare, bare_length);
    const struct host *host = hosts_add(&list->names, name, 1, false);
    *out = (int)(host - list->names.items);
    return 0;
}

static int unknown(const struct rank_list *list, size_t rank, const struct host_list *hosts,
                   struct error *err)
{
    const struct rank_place *place = &list->items[rank];
    char *where AUTO_FREE =
        place->line > 0 ? mem_printf("%s:%d", list->source, place->line) : mem_strdup(list->source);
    if (place->host < 0)
        return error_status(err, STATUS_USAGE,
                            "%s: rank %zu is to run on +n%d, but the last of the job's %zu host%s "
                            "is +n%zu",
                            where, rank, -1 - place->host, hosts->count,
                            hosts->count == 1 ? "" : "s", hosts->count - 1);
    return error_status(err, STATUS_USAGE,
                        "%s: rank %zu is to run on %s, which is not among the %zu host%s of the "
                        "job; add it to -H or the hostfile",
                        where, rank, list->names.items[place->host].name, hosts->count,
                        hosts->count == 1 ? "" : "s");
}

int *rank_list_resolve(const struct rank_list *list, const struct host_list *hosts,
                       struct error *err)
{
    int *known AUTO_FREE = mem_array(list->names.count + 1, sizeof(*known));
    int *out = mem_array(list->count, sizeof(*out));
    for (size_t i = 0; i < list->names.count; i++) {
        const struct host *host = hosts_find(hosts, list->names.items[i].name);
        known[i] = host == NULL ? -1 : (int)(host - hosts->items);
    }
    for (size_t rank = 0; rank < list->count; rank++) {
        int host = list->items[rank].host;
        out[rank] = host >= 0 ? known[host] : -1 - host;
        if (out[rank] >= 0 && (size_t)out[rank] < hosts->count)
            continue;
        unknown(list, rank, hosts, err);
        free(out);
        return NULL;
    }
    return out;
}

void rank_list_destroy(struct rank_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].cpus);
    free(list->items);
    hosts_destroy(&list->names);
    free(list->source);
    *list = (struct rank_list){.count = 0};
}
