/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_stacks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/control_show.h"
#include "model/plan/rank_list.h"

#define RANKS_MAX 1000000

/* Where the main threads of each rank are: {"RANK": text}. */
static json_t *places_of(const json_t *answer)
{
    json_t *places = json_object();
    const json_t *stacks = json_object_get(answer, "stacks");
    for (size_t i = 0; i < json_array_size(stacks); i++) {
        const json_t *leaf = json_array_get(stacks, i), *ranks = json_object_get(leaf, "ranks");
        char *frames AUTO_FREE = json_dumps(json_object_get(leaf, "frames"), JSON_COMPACT);
        bool is_main = strcmp(control_text_of(leaf, "thread", ""), "main") == 0;
        for (size_t j = 0; is_main && j < json_array_size(ranks); j++) {
            char *rank AUTO_FREE =
                mem_printf("%lld", (long long)json_integer_value(json_array_get(ranks, j)));
            const char *before = control_text_of(places, rank, "");
            char *text AUTO_FREE = mem_printf("%s%s", before, frames == NULL ? "" : frames);
            json_object_set_new(places, rank, json_string(text));
        }
    }
    return places;
}

static int by_number(const void *a, const void *b)
{
    const int *first = a, *second = b;
    return *first < *second ? -1 : *first > *second;
}

/* The ranks of both, in ascending order, that are at the same place or not. */
static json_t *ranks_that(const json_t *before, json_t *after, bool moved)
{
    int *ranks AUTO_FREE = mem_array(json_object_size(after) + 1, sizeof(*ranks));
    size_t count = 0;
    const char *rank;
    json_t *place, *list = json_array();
    json_object_foreach(after, rank, place)
    {
        const json_t *old = json_object_get(before, rank);
        if (old != NULL && (json_equal(old, place) == 0) == moved)
            ranks[count++] = (int)strtol(rank, NULL, 10);
    }
    if (count > 1)
        qsort(ranks, count, sizeof(*ranks), by_number);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_integer(ranks[i]));
    return list;
}

json_t *control_stacks_compare(const json_t *first, const json_t *second, double seconds)
{
    json_t *before = places_of(first), *after = places_of(second), *result = json_object();
    json_object_set_new(result, "seconds", json_real(seconds));
    json_object_set_new(result, "moved", ranks_that(before, after, true));
    json_object_set_new(result, "still", ranks_that(before, after, false));
    json_object_set_new(result, "first", json_deep_copy(first));
    json_object_set_new(result, "second", json_deep_copy(second));
    json_decref(before);
    json_decref(after);
    return result;
}

/* "moved within 5 s: ranks 0-3" */
static void put_ranks(const json_t *compared, const char *key, const char *words, struct buf *out)
{
    const json_t *list = json_object_get(compared, key);
    size_t count = json_array_size(list);
    int *ranks AUTO_FREE = mem_array(count + 1, sizeof(*ranks));
    for (size_t i = 0; i < count; i++)
        ranks[i] = (int)json_integer_value(json_array_get(list, i));
    buf_printf(out, "%s ", words);
    control_show_duration(json_number_value(json_object_get(compared, "seconds")), out);
    buf_puts(out, ": ");
    if (count > 0 && count < RANKS_MAX)
        rank_ranges(ranks, (int)count, out);
    else
        buf_puts(out, "no rank");
    buf_putc(out, '\n');
}

void control_stacks_text(const json_t *answer, const json_t *compared, struct buf *out)
{
    const char *text = control_text_of(answer, "text", "");
    const char *remarks = control_text_of(answer, "remarks", "");
    const char *odd = control_text_of(answer, "odd", "");
    const char *missing = control_text_of(answer, "missing", "");
    control_show_lines(text, "", out);
    if (text[0] == '\0')
        buf_puts(out, "no stacks\n");
    if (odd[0] != '\0') {
        control_show_text(odd, out);
        buf_putc(out, '\n');
    }
    if (missing[0] != '\0') {
        buf_puts(out, "no answer about the ranks on ");
        control_show_text(missing, out);
        buf_putc(out, '\n');
    }
    if (remarks[0] != '\0') {
        buf_puts(out, "native frames are missing:\n");
        control_show_lines(remarks, "    ", out);
    }
    if (compared == NULL)
        return;
    put_ranks(compared, "moved", "in another place after", out);
    put_ranks(compared, "still", "in the same place after", out);
}
