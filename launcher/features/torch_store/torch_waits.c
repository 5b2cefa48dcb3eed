/* SPDX-License-Identifier: Apache-2.0 */
#include "features/torch_store/torch_waits.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "model/plan/rank_list.h"

#define ESTABLISHED 1
#define FIELDS 10 /* sl, local, remote, state, queues, timer, retransmits, user, timeout, inode */
#define HOSTS_SHOWN 4

/* Connections */

void torch_peer_name(struct torch_peer *peer, const uint8_t *bytes, size_t length)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    bool four = length == 4 || memcmp(bytes, mapped, sizeof(mapped)) == 0;
    inet_ntop(four ? AF_INET : AF_INET6, four && length != 4 ? bytes + sizeof(mapped) : bytes,
              peer->address, sizeof(peer->address));
}

/* "0100007F:1F90": words of the address as the host sees them, and the port. */
static bool read_peer(const char *text, size_t length, struct torch_peer *peer)
{
    uint8_t bytes[16];
    size_t words = length == 13 ? 1 : length == 37 ? 4 : 0;
    if (words == 0 || text[8 * words] != ':')
        return false;
    for (size_t i = 0; i < words; i++) {
        char word[9] = {0};
        memcpy(word, text + 8 * i, 8);
        uint32_t value = (uint32_t)strtoul(word, NULL, 16);
        memcpy(bytes + 4 * i, &value, sizeof(value));
    }
    peer->port = (int)strtoul(text + 8 * words + 1, NULL, 16);
    torch_peer_name(peer, bytes, 4 * words);
    return true;
}

static void add_line(struct torch_sockets *sockets, const char *line,
                     const struct torch_peer *store)
{
    const char *fields[FIELDS];
    size_t lengths[FIELDS];
    struct torch_socket found;
    struct torch_peer remote;
    for (int i = 0; i < FIELDS; i++) {
        line += strspn(line, " ");
        fields[i] = line;
        lengths[i] = strcspn(line, " \n");
        line += lengths[i];
    }
    if (lengths[FIELDS - 1] == 0 || strtoul(fields[3], NULL, 16) != ESTABLISHED ||
        !read_peer(fields[2], lengths[2], &remote) || remote.port != store->port ||
        strcmp(remote.address, store->address) != 0 ||
        !read_peer(fields[1], lengths[1], &found.local))
        return;
    found.inode = strtoull(fields[FIELDS - 1], NULL, 10);
    MEM_ADD_ROOM(sockets->items, sockets->count, sockets->room) = found;
}

void torch_sockets_add(struct torch_sockets *sockets, const char *text,
                       const struct torch_peer *store)
{
    const char *line = strchr(text, '\n'); /* behind the titles */
    for (; line != NULL && line[1] != '\0'; line = strchr(line + 1, '\n'))
        add_line(sockets, line + 1, store);
}

const struct torch_socket *torch_sockets_find(const struct torch_sockets *sockets, uint64_t inode)
{
    for (size_t i = 0; i < sockets->count; i++) {
        if (sockets->items[i].inode == inode)
            return &sockets->items[i];
    }
    return NULL;
}

/* Ranks */

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
