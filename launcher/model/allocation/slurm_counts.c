/* SPDX-License-Identifier: Apache-2.0 */
#include "model/allocation/slurm_counts.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/status.h"
#include "model/hosts/entry.h"

/* Digits at `*at`, which ends up behind them. -1: none, or more than SLURM_COUNT_MAX. */
static int64_t read_count(const char **at)
{
    int64_t value = 0;
    const char *start = *at;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        value = value * 10 + (**at - '0');
        if (value > SLURM_COUNT_MAX)
            return -1;
    }
    return *at == start ? -1 : value;
}

/* `2` or `2(x3)` at `*at`. false: it is neither. */
static bool read_item(const char **at, int *count, int64_t *times)
{
    int64_t value = read_count(at);
    *times = 1;
    if (value < 1)
        return false;
    *count = (int)value;
    if (strncmp(*at, "(x", 2) != 0)
        return true;
    *at += 2;
    *times = read_count(at);
    if (*times < 1 || **at != ')')
        return false;
    (*at)++;
    return true;
}

int slurm_counts_parse(const char *text, int *out, size_t nodes, struct error *err)
{
    size_t filled = 0;
    const char *at = text;
    for (;;) {
        int count = 0;
        int64_t times = 0;
        if (!read_item(&at, &count, &times) || (*at != ',' && *at != '\0'))
            return error_status(err, STATUS_USAGE,
                                "'%s' is not a list of counts; expected numbers as in 2(x3),1",
                                text_show(text, strlen(text)).text);
        if ((uint64_t)times > nodes - filled)
            return error_status(err, STATUS_USAGE, "'%s' counts more than the %zu nodes of the job",
                                text_show(text, strlen(text)).text, nodes);
        for (; times > 0; times--)
            out[filled++] = count;
        if (*at == '\0')
            break;
        at++;
    }
    if (filled == nodes)
        return 0;
    return error_status(err, STATUS_USAGE, "'%s' counts %zu of the %zu nodes of the job",
                        text_show(text, strlen(text)).text, filled, nodes);
}
