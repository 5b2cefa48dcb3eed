/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/stall_lines.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/plain.h"

#define DIGITS_MAX 7

static bool contains(const char *line, size_t length, const char *text)
{
    return memmem(line, length, text, strlen(text)) != NULL;
}

static bool begins_with(const char *line, size_t length, const char *text)
{
    return length >= strlen(text) && memcmp(line, text, strlen(text)) == 0;
}

static void keep_name(struct stall_text *text, const char *from, size_t length)
{
    size_t kept = length < STALL_TEXT_NAME ? length : STALL_TEXT_NAME;
    const char *end = memchr(from, ',', kept);
    end = end != NULL ? end : memchr(from, ']', kept);
    kept = end != NULL ? (size_t)(end - from) : kept;
    memcpy(text->name, from, kept);
    text->name[kept] = '\0';
}

/* "2: [grad.1, grad.2]", in ascending order. */
static bool take_rank(struct stall_text *text, const char *line, size_t length)
{
    int rank = 0;
    size_t digits = 0;
    for (; digits < length && digits < DIGITS_MAX && line[digits] >= '0' && line[digits] <= '9';
         digits++)
        rank = rank * 10 + (line[digits] - '0');
    if (digits == 0 || !begins_with(line + digits, length - digits, ": ["))
        return false;
    if (text->count == 0)
        keep_name(text, line + digits + 3, length - digits - 3);
    bool follows = text->count == 0 || text->missing[text->count - 1] < rank;
    if (follows && text->count < STALL_TEXT_RANKS)
        text->missing[text->count++] = rank;
    return true;
}

bool stall_text_line(struct stall_text *text, const char *line, size_t length)
{
    if (length == 0)
        return text->inside; /* the second byte of "\r\n" */
    if (contains(line, length, "tensors were submitted to be reduced, gathered or broadcasted")) {
        *text = (struct stall_text){.inside = true,
                                    .listing = contains(line, length, "Missing ranks:")};
    } else if (text->inside && contains(line, length, "Missing ranks:")) {
        text->listing = true;
    } else if (!text->listing || !take_rank(text, line, length)) {
        text->listing = false;
        text->inside = begins_with(line, length, "libhvd: warning: rank") &&
                       contains(line, length, " for rank");
    }
    return text->inside;
}

struct seat_lines {
    uint64_t seen, hidden; /* bytes of its stderr */
    struct stall_text *text;
    int64_t when_ns; /* of its last warning */
};

struct stall_lines {
    struct seat_lines *seats;
    size_t count;
};

struct stall_lines *stall_lines_create(void)
{
    return mem_alloc(sizeof(struct stall_lines));
}

void stall_lines_destroy(struct stall_lines *lines)
{
    if (lines == NULL)
        return;
    for (size_t i = 0; i < lines->count; i++)
        free(lines->seats[i].text);
    free(lines->seats);
    free(lines);
}

/* The lines that have come since the last time. */
static void search(struct seat_lines *seat, const struct tail *tail, int64_t now_ns)
{
    struct tail_walk walk;
    struct tail_line line;
    if (seat->text == NULL)
        seat->text = mem_alloc(sizeof(*seat->text));
    tail_walk_begin(&walk, tail);
    uint64_t first = tail->total - walk.length;
    for (size_t from = 0; tail_walk_next(&walk, &line); from = walk.at) {
        bool whole = walk.at > from + line.length;
        if (line.elsewhere || first + from < seat->seen || !whole ||
            !stall_text_line(seat->text, line.text, line.length))
            continue;
        seat->hidden += walk.at - from;
        seat->when_ns = now_ns;
    }
    tail_walk_end(&walk);
    plain_text(seat->text->name);
}

uint64_t stall_lines_take(struct stall_lines *lines, int seat, const struct tail *tail, bool quiet,
                          int64_t now_ns)
{
    lines->seats = mem_reach(lines->seats, &lines->count, (size_t)seat + 1, sizeof(*lines->seats));
    struct seat_lines *its = &lines->seats[seat];
    if (tail->total < its->seen) { /* another worker has the seat */
        free(its->text);
        *its = (struct seat_lines){.seen = 0};
    }
    if (quiet && tail->total > its->seen && tail->total - its->seen <= TAIL_KEPT)
        search(its, tail, now_ns);
    its->seen = tail->total;
    return its->hidden;
}

const struct stall_text *stall_lines_find(const struct stall_lines *lines, int64_t now_ns)
{
    const struct seat_lines *newest = NULL;
    for (size_t i = 0; i < lines->count; i++) {
        const struct seat_lines *seat = &lines->seats[i];
        bool fresh = seat->text != NULL && seat->text->count > 0 &&
                     now_ns - seat->when_ns < STALL_LINES_FRESH_NS;
        if (fresh && (newest == NULL || seat->when_ns > newest->when_ns))
            newest = seat;
    }
    return newest != NULL ? newest->text : NULL;
}

/* ---- PyTorch's watchdog ---------------------------------------------------------------------- */

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

/* rank->count: it is not there. */
static size_t find(const struct watchdog_rank *rank, int64_t group)
{
    size_t i = 0;
    while (i < rank->count && rank->groups[i].group != group)
        i++;
    return i;
}

void watchdog_rank_add(struct watchdog_rank *rank, const struct watchdog_state *state)
{
    size_t place = find(rank, state->group);
    if (place == WATCHDOG_GROUPS)
        return;
    rank->count += place == rank->count;
    rank->groups[place] = *state;
}

static int64_t enqueued_of(const struct watchdog_rank *rank, int64_t group)
{
    size_t place = find(rank, group);
    return place < rank->count ? rank->groups[place].enqueued : -1;
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
