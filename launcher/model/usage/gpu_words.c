/* SPDX-License-Identifier: Apache-2.0 */
#include "model/usage/gpu_words.h"

#include <stddef.h>
#include <string.h>

static const struct reason {
    uint64_t bit;
    const char *name;
    bool alarm;
} reasons[] = {
#define REASON_ROW(bit, name, alarm) {bit, name, alarm},
    CLOCK_REASON_LIST(REASON_ROW)
#undef REASON_ROW
};

#define COUNT ((int)(sizeof(reasons) / sizeof(reasons[0])))

const char *clock_reason_name(int number)
{
    return number >= 0 && number < COUNT ? reasons[number].name : NULL;
}

uint64_t clock_reason_bit(int number)
{
    return number >= 0 && number < COUNT ? reasons[number].bit : 0;
}

bool clock_reason_is_alarm(const char *name)
{
    for (int i = 0; i < COUNT; i++) {
        if (reasons[i].alarm && strcmp(reasons[i].name, name) == 0)
            return true;
    }
    return false;
}

const char *gpu_trouble_text(int result)
{
    return result == 15 ? "is lost" : result == 16 ? "needs a reset" : NULL;
}
