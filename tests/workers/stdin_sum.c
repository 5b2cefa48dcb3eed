/* SPDX-License-Identifier: Apache-2.0 */
/* stdin_sum: reads stdin to its end and prints "stdin COUNT CRC32". */
#include "worker.h"

int main(void)
{
    static char bytes[1 << 16];
    unsigned long long count = 0;
    uint32_t crc = 0;
    for (;;) {
        const ssize_t n = read(0, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            printf("stdin error %s\n", strerror(errno));
            return 1;
        }
        if (n == 0)
            break;
        crc = crc32_add(crc, bytes, (size_t)n);
        count += (unsigned long long)n;
    }
    printf("stdin %llu %08x\n", count, crc);
    return 0;
}
