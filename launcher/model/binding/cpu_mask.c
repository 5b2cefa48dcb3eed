/* SPDX-License-Identifier: Apache-2.0 */
#include "model/binding/cpu_mask.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define WORD_BITS (CHAR_BIT * sizeof(unsigned long))

void cpu_mask_clear(struct cpu_mask *mask)
{
    free(mask->words);
    *mask = (struct cpu_mask){0};
}

void cpu_mask_set(struct cpu_mask *mask, int cpu)
{
    if (cpu < 0 || cpu > CPU_NUMBER_MAX)
        return;
    size_t word = (size_t)cpu / WORD_BITS, have = mask->bytes / sizeof(*mask->words);
    if (word >= have) {
        mask->words = mem_resize_array(mask->words, word + 1, sizeof(*mask->words));
        memset(mask->words + have, 0, (word + 1 - have) * sizeof(*mask->words));
        mask->bytes = (word + 1) * sizeof(*mask->words);
    }
    mask->words[word] |= 1ul << ((size_t)cpu % WORD_BITS);
}

bool cpu_mask_has(const struct cpu_mask *mask, int cpu)
{
    size_t at = (size_t)cpu;
    if (cpu < 0 || at / CHAR_BIT >= mask->bytes)
        return false;
    return (mask->words[at / WORD_BITS] >> (at % WORD_BITS) & 1) != 0;
}

int cpu_mask_count(const struct cpu_mask *mask)
{
    int count = 0;
    for (size_t i = 0; i < mask->bytes / sizeof(*mask->words); i++)
        count += __builtin_popcountl(mask->words[i]);
    return count;
}

void cpu_mask_set_list(struct cpu_mask *mask, const char *list)
{
    while (isdigit((unsigned char)*list)) {
        char *end = NULL;
        long first = strtol(list, &end, 10), last = first;
        if (*end == '-' && isdigit((unsigned char)end[1]))
            last = strtol(end + 1, &end, 10);
        for (long cpu = first; cpu <= last && cpu <= CPU_NUMBER_MAX; cpu++)
            cpu_mask_set(mask, (int)cpu);
        list = *end == ',' ? end + 1 : end;
    }
}

int cpu_mask_list(const struct cpu_mask *mask, struct buf *out)
{
    int failed = 0, end = (int)(mask->bytes * CHAR_BIT);
    bool any = false;
    for (int first = 0; first < end; first++) {
        if (!cpu_mask_has(mask, first))
            continue;
        int last = first;
        while (cpu_mask_has(mask, last + 1))
            last++;
        failed |= buf_printf(out, last > first ? "%s%d-%d" : "%s%d", any ? "," : "", first, last);
        any = true;
        first = last;
    }
    return failed;
}
