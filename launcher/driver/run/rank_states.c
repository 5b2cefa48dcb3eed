/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/rank_states.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/plan/rank_ranges.h"

struct rank_state {
    int rank;
    char *host, *text;
    char *kind; /* `text` without the pids: the same for ranks that do the same */
    bool told;
};

struct rank_states {
    struct rank_state *items;
    size_t count;
};

struct rank_states *rank_states_create(void)
{
    return mem_alloc(sizeof(struct rank_states));
}

void rank_states_destroy(struct rank_states *states)
{
    if (states == NULL)
        return;
    for (size_t i = 0; i < states->count; i++) {
        free(states->items[i].host);
        free(states->items[i].text);
        free(states->items[i].kind);
    }
    free(states->items);
    free(states);
}

/* "pid 4711 (python3): ..." becomes "pid  (python3): ...". */
static char *without_pids(const char *text)
{
    char *kind = mem_strdup(text), *to = kind;
    for (const char *at = text; *at != '\0';) {
        bool pid = strncmp(at, "pid ", 4) == 0 && (at == text || at[-1] == ' ');
        size_t length = pid ? 4 : 1;
        memcpy(to, at, length);
        to += length;
        at += length;
        while (pid && isdigit((unsigned char)*at))
            at++;
    }
    *to = '\0';
    return kind;
}

void rank_states_add(struct rank_states *states, int rank, const char *host, const char *text)
{
    states->items = mem_resize_array(states->items, states->count + 1, sizeof(*states->items));
    states->items[states->count++] = (struct rank_state){.rank = rank,
                                                         .host = mem_strdup(host),
                                                         .text = mem_strdup(text),
                                                         .kind = without_pids(text)};
}

static int by_rank(const void *a, const void *b)
{
    const struct rank_state *first = a, *second = b;
    return first->rank < second->rank ? -1 : first->rank > second->rank;
}

static int lines_in(const char *text)
{
    int lines = 1;
    for (const char *at = strchr(text, '\n'); at != NULL; at = strchr(at + 1, '\n'))
        lines++;
    return lines;
}

/* Takes all ranks that do what item `first` does. Returns their number. */
static int take_group(struct rank_states *states, size_t first, int *ranks)
{
    int count = 0;
    for (size_t i = first; i < states->count; i++) {
        struct rank_state *item = &states->items[i];
        if (item->told || strcmp(item->kind, states->items[first].kind) != 0)
            continue;
        item->told = true;
        ranks[count++] = item->rank;
    }
    return count;
}

static void tell_group(const struct rank_state *shown, const int *ranks, int count, struct buf *out)
{
    buf_puts(out, "hvdrun: ");
    rank_ranges(ranks, count, out);
    if (count > 1)
        buf_printf(out, " do the same, here rank %d", shown->rank);
    buf_printf(out, " on %s: %s\n", shown->host, shown->text);
}

/* Those that no group has told. */
static void tell_rest(const struct rank_states *states, int *ranks, struct buf *out)
{
    int count = 0;
    for (size_t i = 0; i < states->count; i++) {
        if (!states->items[i].told)
            ranks[count++] = states->items[i].rank;
    }
    if (count == 0)
        return;
    buf_puts(out, "hvdrun: ");
    rank_ranges(ranks, count, out);
    buf_printf(out, "%s not shown, to keep this list short\n", count == 1 ? " is" : " are");
}

void rank_states_text(struct rank_states *states, struct buf *out)
{
    if (states->count == 0)
        return;
    int lines = 0, *ranks AUTO_FREE = mem_array(states->count, sizeof(*ranks));
    qsort(states->items, states->count, sizeof(*states->items), by_rank);
    for (size_t i = 0; i < states->count; i++) {
        struct rank_state *item = &states->items[i];
        int more = lines_in(item->text);
        if (item->told || (lines > 0 && lines + more > RANK_STATES_LINES))
            continue;
        int count = take_group(states, i, ranks);
        tell_group(item, ranks, count, out);
        lines += more;
    }
    tell_rest(states, ranks, out);
}
