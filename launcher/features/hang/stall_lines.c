/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/stall_lines.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/plain.h"

struct seat_lines {
    uint64_t seen, hidden; /* bytes of its stderr */
    struct stall_text *text;
    int64_t when_ns; /* of its last warning */
};

struct stall_lines {
    struct seat_lines *seats;
    int count;
};

struct stall_lines *stall_lines_create(void)
{
    return mem_alloc(sizeof(struct stall_lines));
}

void stall_lines_destroy(struct stall_lines *lines)
{
    if (lines == NULL)
        return;
    for (int i = 0; i < lines->count; i++)
        free(lines->seats[i].text);
    free(lines->seats);
    free(lines);
}

static struct seat_lines *seat_at(struct stall_lines *lines, int seat)
{
    if (seat >= lines->count) {
        lines->seats = mem_resize_array(lines->seats, (size_t)seat + 1, sizeof(*lines->seats));
        for (int i = lines->count; i <= seat; i++)
            lines->seats[i] = (struct seat_lines){.seen = 0};
        lines->count = seat + 1;
    }
    return &lines->seats[seat];
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
    struct seat_lines *its = seat_at(lines, seat);
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
    for (int i = 0; i < lines->count; i++) {
        const struct seat_lines *seat = &lines->seats[i];
        bool fresh = seat->text != NULL && seat->text->count > 0 &&
                     now_ns - seat->when_ns < STALL_LINES_FRESH_NS;
        if (fresh && (newest == NULL || seat->when_ns > newest->when_ns))
            newest = seat;
    }
    return newest != NULL ? newest->text : NULL;
}
