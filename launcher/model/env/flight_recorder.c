/* SPDX-License-Identifier: Apache-2.0 */
#include "model/env/flight_recorder.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define OLD_DUMP "/tmp/nccl_trace_rank_" /* PyTorch's own, under the old name */

enum variable { SIZE, DUMP, PIPE, VARIABLES };

/* The first name is the new one, and wins. */
static const char *const names[VARIABLES][2] = {
    [SIZE] = {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"},
    [DUMP] = {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"},
    [PIPE] = {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", NULL}};

/* NULL: the pair has another name. */
static const char *value_of(const char *pair, const char *name)
{
    size_t length = name == NULL ? 0 : strlen(name);
    bool same = length > 0 && pair != NULL && strncmp(pair, name, length) == 0;
    return same && pair[length] == '=' ? pair + length + 1 : NULL;
}

static bool is_set(char *const *items, size_t count, enum variable variable)
{
    for (size_t i = 0; i < count; i++) {
        if (value_of(items[i], names[variable][0]) != NULL ||
            value_of(items[i], names[variable][1]) != NULL)
            return true;
    }
    return false;
}

void flight_recorder_arm(char *const *items, size_t count, const char *folder, struct strv *out)
{
    if (!is_set(items, count, SIZE))
        strv_printf(out, "%s=%d", names[SIZE][0], FLIGHT_RECORDER_ENTRIES);
    if (!is_set(items, count, DUMP))
        strv_printf(out, "%s=%s/flight_", names[DUMP][0], folder);
    if (!is_set(items, count, PIPE))
        strv_printf(out, "%s=%s/flight_", names[PIPE][0], folder);
}

int flight_recorder_places(const char *environ, size_t length, struct flight_places *out)
{
    const char *rank = NULL, *pipe = NULL, *dump[2] = {NULL, NULL};
    *out = (struct flight_places){.pipe = NULL};
    for (const char *pair = environ; pair < environ + length; pair += strlen(pair) + 1) {
        const char *found;
        rank = (found = value_of(pair, "RANK")) != NULL ? found : rank;
        pipe = (found = value_of(pair, names[PIPE][0])) != NULL ? found : pipe;
        for (int i = 0; i < 2; i++)
            dump[i] = (found = value_of(pair, names[DUMP][i])) != NULL ? found : dump[i];
    }
    if (rank == NULL || rank[strspn(rank, "0123456789")] != '\0' || pipe == NULL || *pipe == '\0')
        return -1;
    const char *prefix = dump[0] != NULL ? dump[0] : dump[1] != NULL ? dump[1] : OLD_DUMP;
    out->pipe = mem_printf("%s%s.pipe", pipe, rank);
    out->dump = mem_printf("%s%s", prefix, rank);
    return 0;
}

void flight_places_clear(struct flight_places *places)
{
    free(places->pipe);
    free(places->dump);
    *places = (struct flight_places){.pipe = NULL};
}
