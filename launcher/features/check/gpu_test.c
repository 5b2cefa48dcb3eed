/* SPDX-License-Identifier: Apache-2.0 */
#include "features/check/check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/strv.h"
#include "base/text.h"
#include "node/nvml.h"

#define LINE_MAX_BYTES 256
#define WORDS (2 + SPEEDS)
#define SPEED_LEAST 1e-3
#define SPEED_MOST 1e6 /* of any kind: the rest are errors of the test */

/* The number at a place of the line. */
static bool read_rate(const struct strv *words, size_t at, double *out)
{
    return at < words->count &&
           parse_double(words->items[at], SPEED_LEAST, SPEED_MOST, out, NULL) == 0;
}

static void read_speed(const struct strv *words, struct gpu_test *out)
{
    struct gpu_speed speed;
    if (out->count == GPUS_MAX || words->count != WORDS ||
        strlen(words->items[1]) >= sizeof(speed.uuid) ||
        gpu_test_find(out, words->items[1]) != NULL)
        return;
    memcpy(speed.uuid, words->items[1], strlen(words->items[1]) + 1);
    for (size_t i = 0; i < SPEEDS; i++) {
        if (!read_rate(words, 2 + i, &speed.value[i]))
            return;
    }
    MEM_ADD(out->speeds, out->count) = speed;
}

static void read_reduce(const struct strv *words, struct gpu_test *out)
{
    int64_t gpus;
    double speed;
    if (words->count != 3 || parse_int(words->items[1], 2, GPUS_MAX, &gpus, NULL) < 0 ||
        !read_rate(words, 2, &speed))
        return;
    out->reduce_gpus = (int)gpus;
    out->reduce = speed;
}

static void read_line(const char *line, struct gpu_test *out)
{
    struct strv words AUTO_STRV = STRV_INIT;
    strv_split(&words, line, " ");
    if (text_begins(line, "none "))
        mem_replace(&out->none, line + 5);
    else if (text_begins(line, "torch "))
        mem_replace(&out->torch, line + 6);
    else if (text_begins(line, "nccl "))
        mem_replace(&out->nccl, line + 5);
    else if (text_begins(line, "speed "))
        read_speed(&words, out);
    else if (text_begins(line, "reduce "))
        read_reduce(&words, out);
    else if (text_begins(line, "between ") && words.count == 2)
        (void)read_rate(&words, 1, &out->between);
}

void gpu_test_read(const char *text, size_t length, struct gpu_test *out)
{
    *out = (struct gpu_test){.count = 0};
    const char *end = text + length, *line;
    while (text_next_line(&text, end, &line, &length)) {
        char *copy AUTO_FREE = mem_strndup(line, length);
        if (length < LINE_MAX_BYTES)
            read_line(copy, out);
    }
}

const struct gpu_speed *gpu_test_find(const struct gpu_test *test, const char *uuid)
{
    for (size_t i = 0; i < test->count; i++) {
        if (strcmp(test->speeds[i].uuid, uuid) == 0)
            return &test->speeds[i];
    }
    return NULL;
}

void gpu_test_clear(struct gpu_test *test)
{
    free(test->none);
    free(test->torch);
    free(test->nccl);
    free(test->speeds);
    *test = (struct gpu_test){.count = 0};
}
