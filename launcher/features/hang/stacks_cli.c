/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/stacks_cli.h"

#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "cli/control_client.h"
#include "cli/control_show.h"
#include "cli/features.h"
#include "features/hang/expect.h"
#include "model/plan/rank_list.h"

/* Checks --expect and --on-hang before anything starts. */
int hang_check(const struct settings *settings, struct error *err)
{
    struct expects *expects = NULL;
    if (settings->on_hang == SET_ON_HANG_RESTART && !settings_is_elastic(settings))
        return error_usage(err,
                           "%s: only an elastic job can restart its workers; give --min-np, or "
                           "use --on-hang kill",
                           settings_place(settings, OPT_on_hang));
    int result =
        expects_create(&settings->expect, settings_place(settings, OPT_expect), &expects, err);
    expects_destroy(expects);
    return result;
}

#define RANKS_MAX 1000000
#define PAUSE_MAX_MS 60000

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

static void pause_ms(int64_t milliseconds)
{
    int64_t until = clock_mono_ms() + milliseconds, left = milliseconds;
    while (left > 0) {
        poll(NULL, 0, left < PAUSE_MAX_MS ? (int)left : PAUSE_MAX_MS);
        left = until - clock_mono_ms();
    }
}

/* The answer is the caller's. */
static json_t *look(const struct job_list *list, const struct control_words *words,
                    struct error *err)
{
    int fd AUTO_FD = control_client_dial(list, words->job, err);
    json_t *request = json_pack("{s:s, s:s*}", "do", "stacks", "ranks", words->ranks);
    if (words->native)
        json_object_set_new(request, "native", json_true());
    return control_client_ask(fd, request, err);
}

int control_stacks(const struct job_list *list, const struct control_words *words, struct buf *out,
                   struct error *err)
{
    json_t *first = look(list, words, err), *second = NULL, *both = NULL;
    if (first != NULL && words->has_time) {
        pause_ms(words->time_ms);
        second = look(list, words, err);
    }
    bool done = words->has_time ? second != NULL : first != NULL;
    if (done && words->has_time)
        both = control_stacks_compare(first, second, (double)words->time_ms / 1000);
    if (done && words->json)
        control_show_json(both != NULL ? both : first, out);
    else if (done)
        control_stacks_text(both != NULL ? second : first, both, out);
    json_decref(first);
    json_decref(second);
    json_decref(both);
    return done ? 0 : -1;
}
