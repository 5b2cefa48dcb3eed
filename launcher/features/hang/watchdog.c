/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/watchdog.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 1024
#define NUMBER_MAX (INT64_C(1) << 53) /* some versions print a number that they never set */

/* The number behind the first of the words that has one; -1: none has. */
static int64_t number_behind(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = strstr(text, words[i]);
        if (at == NULL || !isdigit((unsigned char)at[strlen(words[i])]))
            continue;
        long long value = strtoll(at + strlen(words[i]), NULL, 10);
        return value < NUMBER_MAX ? value : -1;
    }
    return -1;
}
#define NUMBER_BEHIND(text, words) number_behind(text, words, sizeof(words) / sizeof(words[0]))

bool watchdog_read(const char *line, size_t length, struct watchdog_state *out)
{
    static const char *const enqueued[] = {"ast enqueued work: ", "ast enqueued NCCL work: "};
    static const char *const completed[] = {"ast completed work: ", "ast completed NCCL work: "};
    static const char *const group[] = {"[PG ID ", "[PG "};
    char text[LINE_MAX_BYTES];
    size_t kept = length < sizeof(text) - 1 ? length : sizeof(text) - 1;
    memcpy(text, line, kept);
    text[kept] = '\0';
    int64_t of = NUMBER_BEHIND(text, group);
    *out = (struct watchdog_state){.group = of >= 0 ? of : 0,
                                   .enqueued = NUMBER_BEHIND(text, enqueued),
                                   .completed = NUMBER_BEHIND(text, completed)};
    if (out->completed > out->enqueued)
        out->completed = -1;
    return out->enqueued >= 0;
}

static struct watchdog_state *find(struct watchdog_rank *rank, int64_t group)
{
    for (size_t i = 0; i < rank->count; i++) {
        if (rank->groups[i].group == group)
            return &rank->groups[i];
    }
    return NULL;
}

void watchdog_rank_add(struct watchdog_rank *rank, const struct watchdog_state *state)
{
    struct watchdog_state *place = find(rank, state->group);
    if (place == NULL && rank->count < WATCHDOG_GROUPS)
        place = &rank->groups[rank->count++];
    if (place != NULL)
        *place = *state;
}

static int64_t enqueued_of(const struct watchdog_rank *rank, int64_t group)
{
    for (size_t i = 0; i < rank->count; i++) {
        if (rank->groups[i].group == group)
            return rank->groups[i].enqueued;
    }
    return -1;
}

/* How many ranks have written of the group; 0: all of them the same. */
static size_t differing(const struct watchdog_rank *ranks, size_t count, int64_t group)
{
    size_t written = 0;
    int64_t first = -1;
    bool differ = false;
    for (size_t i = 0; i < count; i++) {
        int64_t its = enqueued_of(&ranks[i], group);
        if (its < 0)
            continue;
        differ = differ || (first >= 0 && its != first);
        first = its;
        written++;
    }
    return differ ? written : 0;
}

bool watchdog_compare(const struct watchdog_rank *ranks, size_t count, int64_t *enqueued)
{
    size_t most = 0;
    int64_t chosen = -1;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < ranks[i].count; j++) {
            size_t written = differing(ranks, count, ranks[i].groups[j].group);
            chosen = written > most ? ranks[i].groups[j].group : chosen;
            most = written > most ? written : most;
        }
    }
    for (size_t i = 0; i < count; i++)
        enqueued[i] = most > 0 ? enqueued_of(&ranks[i], chosen) : -1;
    return most > 0;
}
