/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines that `spew` writes and `lines_verify` reads:
 *   spew r=RANK s=STREAM n=NUMBER FILL c=CRC
 * FILL brings the line, newline included, to the wanted length. CRC covers all bytes before " c=".
 * Numbers count up from 0 in each stream of each rank.
 */
#pragma once

#include "worker.h"

enum { SPEW_SHORTEST = 72 };

/* Writes one line of `length` bytes, the newline included. */
__attribute__((unused)) static void spew_line(char *line, size_t length, int rank, int stream,
                                              long number)
{
    const size_t tail = sizeof " c=01234567\n" - 1;
    const int head = snprintf(line, length, "spew r=%d s=%d n=%ld ", rank, stream, number);
    for (size_t i = (size_t)head; i < length - tail; i++)
        line[i] = (char)('a' + (number + (long)i) % 26);
    const uint32_t crc = crc32_add(0, line, length - tail);
    char end[16];
    snprintf(end, sizeof end, " c=%08x\n", crc);
    memcpy(line + length - tail, end, tail);
}
