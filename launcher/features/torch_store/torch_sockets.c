/* SPDX-License-Identifier: Apache-2.0 */
#include "features/torch_store/torch_sockets.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define ESTABLISHED 1
#define FIELDS 10 /* sl, local, remote, state, queues, timer, retransmits, user, timeout, inode */

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
    sockets->items =
        mem_one_more(sockets->items, sockets->count, &sockets->room, sizeof(*sockets->items));
    sockets->items[sockets->count++] = found;
}

void torch_sockets_add(struct torch_sockets *sockets, const char *text,
                       const struct torch_peer *store)
{
    const char *line = strchr(text, '\n'); /* behind the titles */
    for (; line != NULL && line[1] != '\0'; line = strchr(line + 1, '\n'))
        add_line(sockets, line + 1, store);
}

void torch_sockets_destroy(struct torch_sockets *sockets)
{
    free(sockets->items);
    *sockets = (struct torch_sockets){.count = 0};
}

const struct torch_socket *torch_sockets_find(const struct torch_sockets *sockets, uint64_t inode)
{
    for (size_t i = 0; i < sockets->count; i++) {
        if (sockets->items[i].inode == inode)
            return &sockets->items[i];
    }
    return NULL;
}
