/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/hang_culprit.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "driver/tell/stalls.h"
#include "model/exit/tail.h"
#include "model/hang/culprit.h"
#include "model/hang/watchdog.h"
#include "node/file_wait.h"

#define STALL_TEXT_MAX 8192
#define WHERE_MAX 1024

/* By seat. */
struct places {
    const struct job *job;
    uint64_t *place;
    char **where;
};

static char *where_of(const struct stack *stack)
{
    const struct stack_frame *last = &stack->frames[stack->count - 1];
    const char *slash = strrchr(last->file, '/');
    const char *system = strstr(stack->doing, FILE_WAIT_ON);
    struct buf where AUTO_BUF = BUF_INIT(WHERE_MAX);
    if (last->file[0] != '\0')
        buf_printf(&where, "%s:%d ", slash != NULL ? slash + 1 : last->file, last->line);
    buf_puts(&where, last->function);
    if (system != NULL)
        buf_printf(&where, " (%s)", system + strlen(FILE_WAIT_ON));
    char *text = mem_strdup(buf_text(&where));
    log_make_plain(text);
    return text;
}

static void take_place(void *context, int seat, const struct look_stack *stack)
{
    const struct places *places = context;
    if (stack->stack->role != STACK_MAIN || stack->stack->count == 0 ||
        seat >= places->job->ranks.size || places->where[seat] != NULL)
        return;
    places->place[seat] = look_place(stack->stack);
    places->where[seat] = where_of(stack->stack);
}

/* What PyTorch's watchdog has written. */
static void read_watchdog(const struct tail *tail, struct watchdog_rank *out)
{
    struct tail_walk walk;
    struct tail_line line;
    struct watchdog_state state;
    tail_walk_begin(&walk, tail);
    while (tail_walk_next(&walk, &line)) {
        if (!line.elsewhere && watchdog_read(line.text, line.length, &state))
            watchdog_rank_add(out, &state);
    }
    tail_walk_end(&walk);
}

static int by_rank(const void *a, const void *b)
{
    const struct culprit_rank *first = a, *second = b;
    return first->rank < second->rank ? -1 : first->rank > second->rank;
}

/* `of` has what NCCL says of each rank. */
static void add_launched(const struct ras_rank *of, struct culprit_rank *ranks, int count)
{
    struct ras_finding finding = {.operation = NULL};
    int64_t *launched AUTO_FREE = mem_array((size_t)count + 1, sizeof(*launched));
    bool found = ras_find(of, (size_t)count, &finding, launched);
    for (int i = 0; i < count; i++) {
        ranks[i].launched = found ? launched[i] : -1;
        ranks[i].operation = finding.operation;
    }
}

static void add_enqueued(const struct watchdog_rank *of, struct culprit_rank *ranks, int count)
{
    int64_t *enqueued AUTO_FREE = mem_array((size_t)count + 1, sizeof(*enqueued));
    (void)watchdog_compare(of, (size_t)count, enqueued);
    for (int i = 0; i < count; i++)
        ranks[i].enqueued = enqueued[i];
}

static int collect_ranks(const struct job *job, const struct hang *hang,
                         const struct ras_facts *ras, const struct places *places,
                         struct culprit_rank *ranks)
{
    size_t size = (size_t)job->ranks.size + 1;
    struct ras_rank *of AUTO_FREE = mem_array(size, sizeof(*of));
    struct watchdog_rank *watchdogs AUTO_FREE = mem_array(size, sizeof(*watchdogs));
    int count = 0;
    for (int seat = 0; seat < job->ranks.size; seat++) {
        const struct rank_record *record = &job->ranks.records[seat];
        if (record->state != RANK_RUNNING)
            continue;
        of[count] = ras_facts_of(ras, seat);
        read_watchdog(&record->tail, &watchdogs[count]);
        ranks[count++] = (struct culprit_rank){.rank = job_seat_rank(job, seat),
                                               .host = job->nodes[record->node]->host,
                                               .place = places->place[seat],
                                               .where = places->where[seat],
                                               .way = hang_way(hang, seat),
                                               .last_ns = record->output_ns};
    }
    add_launched(of, ranks, count);
    add_enqueued(watchdogs, ranks, count);
    if (count > 1)
        qsort(ranks, (size_t)count, sizeof(*ranks), by_rank);
    return count;
}

/* The oldest that lasts and names the ranks that are missing. */
static const struct stall *find_stall(const struct job *job)
{
    for (int i = 0;; i++) {
        const struct stall *stall = stall_list_at(job->stalls, i);
        if (stall == NULL || (stall_lasts(stall, clock_mono_ns()) && stall->missing.count > 0))
            return stall;
    }
}

struct culprit hang_culprit(const struct job *job, const struct hang *hang,
                            const struct ras_facts *ras, const struct look *look, struct buf *out)
{
    size_t size = (size_t)job->ranks.size + 1;
    struct culprit_rank *ranks AUTO_FREE = mem_array(size, sizeof(*ranks));
    uint64_t *place AUTO_FREE = mem_array(size, sizeof(*place));
    char **where AUTO_FREE = mem_array(size, sizeof(*where));
    struct places places = {job, place, where};
    struct buf text AUTO_BUF = BUF_INIT(STALL_TEXT_MAX);
    const struct stall *found = find_stall(job);
    struct culprit_stall stall = {.count = 0};
    look_walk(look, take_place, &places);
    if (found != NULL) {
        stall_text(found, &text);
        stall = (struct culprit_stall){buf_text(&text), found->missing.list, found->missing.count};
    }
    int count = collect_ranks(job, hang, ras, &places, ranks);
    struct culprit culprit = culprit_find(ranks, count, found != NULL ? &stall : NULL, out);
    for (size_t i = 0; i < size; i++)
        free(where[i]);
    return culprit;
}
