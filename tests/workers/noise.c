/* SPDX-License-Identifier: Apache-2.0 */
/*
 * noise [--rank R|all] [--bytes N] [--never BYTE]
 * Writes N bytes that look random, all values among them, in writes of odd sizes. Then writes their
 * CRC-32 to stderr, as "noise r=RANK bytes=N crc=XXXXXXXX". --never leaves one value out: with 10,
 * the bytes are one line. The other ranks write numbered lines as `spew` does.
 */
#include "spew_line.h"

static uint32_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32);
}

static void write_lines(long lines)
{
    char line[100];
    for (long n = 0; n < lines; n++) {
        spew_line(line, sizeof line, my_rank(), 1, n);
        write_all(1, line, sizeof line);
    }
}

int main(int argc, char **argv)
{
    if (!is_me(argc, argv)) {
        write_lines(1000);
        return 0;
    }
    const long bytes = to_number(option(argc, argv, "--bytes", "1000000"));
    const long never = to_number(option(argc, argv, "--never", "-1"));
    uint64_t state = 88172645463325252u + (uint64_t)my_rank();
    uint32_t crc = 0;
    char chunk[40000];
    for (long left = bytes; left > 0;) {
        long length = 1 + (long)(next(&state) % sizeof chunk);
        length = length < left ? length : left;
        for (long i = 0; i < length; i++) {
            const unsigned char byte = (unsigned char)next(&state);
            chunk[i] = (char)(byte == never ? byte + 1 : byte);
        }
        write_all(1, chunk, (size_t)length);
        crc = crc32_add(crc, chunk, (size_t)length);
        left -= length;
    }
    dprintf(2, "noise r=%d bytes=%ld crc=%08x\n", my_rank(), bytes, crc);
    return 0;
}
