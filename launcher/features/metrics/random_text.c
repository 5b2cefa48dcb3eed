/* SPDX-License-Identifier: Apache-2.0 */
#include "features/metrics/random_text.h"

#include <stdint.h>
#include <sys/random.h>
#include <sys/types.h>

#define RANDOM_BYTES (RANDOM_TEXT_ROOM / 2)

int random_text(char out[RANDOM_TEXT_ROOM])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t bytes[RANDOM_BYTES];
    if (getrandom(bytes, sizeof(bytes), GRND_NONBLOCK) != (ssize_t)sizeof(bytes))
        return -1;
    for (int i = 0; i < RANDOM_BYTES; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * RANDOM_BYTES] = '\0';
    return 0;
}
