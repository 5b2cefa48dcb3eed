/* SPDX-License-Identifier: Apache-2.0 */
#include "api/stall.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/request.h"
#include "include/hvd.h"

#define NS_PER_S 1000000000

static bool is_missing(const struct stall *stall, int rank)
{
    for (size_t i = 0; i < stall->missing_count; i++) {
        if (stall->missing[i] == rank)
            return true;
    }
    return false;
}

/* hvd_process_set_ranks() gives them in ascending order. */
static void divide(const int32_t *ranks, int count, const struct stall *stall,
                   struct line_packet *packet)
{
    for (int i = 0; i < count; i++)
        line_ranks_add(is_missing(stall, ranks[i]) ? &packet->missing : &packet->waiting,
                       (uint32_t)ranks[i]);
}

/* The packet is a line of text: a name may have any bytes. */
static void copy_plain(const char *from, char *to, size_t size)
{
    snprintf(to, size, "%s", from);
    for (char *at = to; *at != '\0'; at++)
        *at = (unsigned char)*at < 0x20 || *at == 0x7f ? '?' : *at;
}

bool stall_packet(int32_t set, const struct stall *stall, struct line_packet *packet)
{
    int count = hvd_process_set_size(set);
    if (count <= 0)
        return false;
    int32_t *ranks AUTO_FREE = mem_array((size_t)count, sizeof(*ranks));
    if (hvd_process_set_ranks(set, ranks, count) != count)
        return false;
    *packet = (struct line_packet){.type = LINE_STALLED, .set = (uint32_t)set};
    packet->seconds = stall->age_ns > 0 ? (uint32_t)(stall->age_ns / NS_PER_S) : 0;
    copy_plain(kind_text(stall->kind), packet->operation, sizeof(packet->operation));
    copy_plain(stall->name, packet->name, sizeof(packet->name));
    divide(ranks, count, stall, packet);
    return true;
}
