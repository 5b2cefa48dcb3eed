/* SPDX-License-Identifier: Apache-2.0 */
/* A packet of the line between agent and worker. What can be read can be written, and is the same
 * when it is read again. */
#include "fuzz.h"
#include "line/packet.h"

static void check_text(const char *text, size_t max)
{
    size_t length = strlen(text);
    FUZZ_CHECK(length <= max);
    for (size_t i = 0; i < length; i++)
        FUZZ_CHECK((uint8_t)text[i] >= 0x20 && text[i] != 0x7f);
}

static void check_ranks(const struct line_ranks *ranks)
{
    FUZZ_CHECK(ranks->count <= LINE_RANGES_MAX);
    for (int i = 0; i < ranks->count; i++) {
        FUZZ_CHECK(ranks->ranges[i].first <= ranks->ranges[i].last);
        FUZZ_CHECK(i == 0 || ranks->ranges[i].first > ranks->ranges[i - 1].last);
    }
}

static void check(const struct line_packet *packet)
{
    if (packet->type == LINE_ENDED)
        FUZZ_CHECK(packet->ended_count <= LINE_ENDED_MAX);
    if (packet->type != LINE_STALLED)
        return;
    check_text(packet->operation, LINE_OPERATION_MAX);
    check_text(packet->name, LINE_NAME_MAX);
    check_ranks(&packet->waiting);
    check_ranks(&packet->missing);
}

FUZZ_TARGET
{
    static struct line_packet first, second;
    uint8_t out[LINE_PACKET_MAX], again[LINE_PACKET_MAX];
    struct error err = ERROR_INIT;
    uint8_t *copy AUTO_FREE = mem_alloc(size + 1);
    if (size > 0)
        memcpy(copy, data, size);
    int result = line_packet_get(copy, size, &first, &err);
    fuzz_check_error(result, &err);
    if (result < 0 || first.type == LINE_UNKNOWN)
        return 0;
    check(&first);
    size_t length = line_packet_put(&first, out);
    FUZZ_CHECK(length <= sizeof(out));
    FUZZ_CHECK(line_packet_get(out, length, &second, NULL) == 0);
    FUZZ_CHECK(line_packet_put(&second, again) == length && memcmp(out, again, length) == 0);
    return 0;
}
