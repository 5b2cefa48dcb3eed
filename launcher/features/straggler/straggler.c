/* SPDX-License-Identifier: Apache-2.0 */
#include "features/straggler/straggler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/usage/outliers.h"

#define GAP_PERIODS 3
#define WINDOWS_BEFORE 3

enum reason { SLOW, QUIET, SILENT, REASONS }; /* by its percent, by its output, by their lack */

struct straggler_rank {
    bool runs;
    double percent;
    uint64_t output, output_then; /* output_then: at the start of the window */
    int64_t behind_ms;            /* by its percent, since then; -1: it is not */
    int usual;                    /* windows in a row in which it has written as much as others */
    int64_t silent_ms;            /* it lacks what most others have, since then; -1: it does not */
    bool marked[REASONS];
};

struct stragglers {
    int64_t window_ms, last_ms, window_begun_ms;
    struct straggler_rank *ranks;
    int count;
};

struct stragglers *stragglers_create(int64_t window_ms)
{
    return MEM_NEW((struct stragglers){.window_ms = window_ms});
}

void stragglers_destroy(struct stragglers *stragglers)
{
    if (stragglers != NULL)
        free(stragglers->ranks);
    free(stragglers);
}

int64_t stragglers_period_ms(const struct stragglers *stragglers)
{
    int64_t period = stragglers->window_ms / STRAGGLER_SAMPLES;
    return period > 0 ? period : 1;
}

static void begin_again(struct stragglers *stragglers, int64_t now_ms)
{
    stragglers->window_begun_ms = now_ms;
    for (int i = 0; i < stragglers->count; i++) {
        struct straggler_rank *rank = &stragglers->ranks[i];
        rank->output_then = rank->output;
        rank->behind_ms = rank->silent_ms = -1;
        rank->usual = 0;
    }
}

void stragglers_seat(struct stragglers *stragglers, int seat, bool runs)
{
    if (seat >= stragglers->count && !runs)
        return;
    if (seat >= stragglers->count) {
        stragglers->ranks =
            mem_resize_array(stragglers->ranks, (size_t)seat + 1, sizeof(*stragglers->ranks));
        for (int i = stragglers->count; i <= seat; i++)
            stragglers->ranks[i] = (struct straggler_rank){
                .runs = false, .percent = -1, .behind_ms = -1, .silent_ms = -1};
        stragglers->count = seat + 1;
    }
    struct straggler_rank *rank = &stragglers->ranks[seat];
    if (rank->runs == runs)
        return;
    rank->runs = runs; /* the next tick takes the marks back */
    rank->percent = -1;
    rank->output = 0;
    begin_again(stragglers, stragglers->last_ms);
}

void stragglers_sample(struct stragglers *stragglers, int seat, double percent, uint64_t output)
{
    if (seat < 0 || seat >= stragglers->count || !stragglers->ranks[seat].runs)
        return;
    bool is_other = output < stragglers->ranks[seat].output; /* another worker has the seat */
    stragglers->ranks[seat].percent = percent;
    stragglers->ranks[seat].output = output;
    if (is_other)
        begin_again(stragglers, stragglers->last_ms);
}

struct check {
    struct stragglers *stragglers;
    straggler_each *each;
    void *context;
    int64_t now_ms;
    double *values; /* of the ranks; NAN: none */
    int running;
};

static bool is_one(const struct straggler_rank *rank, enum straggler_kind kind)
{
    return kind == STRAGGLER_SILENT ? rank->marked[SILENT]
                                    : rank->marked[SLOW] || rank->marked[QUIET];
}

/* `text`: why; NULL: not any more. */
static void mark(const struct check *check, int seat, enum reason reason, const char *text)
{
    enum straggler_kind kind = reason == SILENT ? STRAGGLER_SILENT : STRAGGLER_BEHIND;
    struct straggler_rank *rank = &check->stragglers->ranks[seat];
    bool before = is_one(rank, kind);
    rank->marked[reason] = text != NULL;
    if (is_one(rank, kind) != before)
        check->each(check->context, seat, kind, text);
}

static double spread_of(const struct check *check, double median)
{
    size_t count = (size_t)check->stragglers->count;
    double *distances AUTO_FREE = mem_array(count + 1, sizeof(*distances));
    for (size_t i = 0; i < count; i++)
        distances[i] = fabs(check->values[i] - median);
    return outliers_median(distances, count);
}

static void check_percents(struct check *check)
{
    struct stragglers *all = check->stragglers;
    int known = 0;
    for (int i = 0; i < all->count; i++) {
        const struct straggler_rank *rank = &all->ranks[i];
        check->values[i] = rank->runs && rank->percent >= 0 ? rank->percent : NAN;
        known += !isnan(check->values[i]);
    }
    bool enough = known >= STRAGGLERS_LEAST && 2 * known > check->running;
    double median = outliers_median(check->values, (size_t)all->count);
    double limit = enough ? outliers_larger(outliers_larger(1, median / 10),
                                            OUTLIER_SPREADS * spread_of(check, median))
                          : INFINITY;
    for (int i = 0; i < all->count; i++) {
        struct straggler_rank *rank = &all->ranks[i];
        char text[100];
        bool behind = median - check->values[i] > limit; /* false for NAN */
        snprintf(text, sizeof(text), "it has done %.1f %%, and the others %.1f %%",
                 check->values[i], median);
        if (!behind)
            rank->behind_ms = -1;
        else if (rank->behind_ms < 0)
            rank->behind_ms = check->now_ms;
        bool near = !(median - check->values[i] > limit / 2);
        if (behind && check->now_ms - rank->behind_ms >= all->window_ms)
            mark(check, i, SLOW, text);
        else if (!enough || near)
            mark(check, i, SLOW, NULL);
    }
}

static void check_outputs(struct check *check)
{
    struct stragglers *all = check->stragglers;
    if (check->now_ms - all->window_begun_ms < all->window_ms)
        return;
    for (int i = 0; i < all->count; i++) {
        struct straggler_rank *rank = &all->ranks[i];
        check->values[i] = rank->runs ? (double)(rank->output - rank->output_then) : NAN;
        rank->output_then = rank->output;
    }
    all->window_begun_ms = check->now_ms;
    double median = outliers_median(check->values, (size_t)all->count);
    bool counts = check->running >= STRAGGLERS_LEAST && median >= STRAGGLER_BYTES;
    for (int i = 0; counts && i < all->count; i++) {
        struct straggler_rank *rank = &all->ranks[i];
        char text[120];
        if (isnan(check->values[i]))
            continue;
        snprintf(text, sizeof(text), "it has written %.0f bytes in %.1f min, and the others %.0f",
                 check->values[i], (double)all->window_ms / 60000, median);
        if (check->values[i] >= median / 2) {
            rank->usual++;
            mark(check, i, QUIET, NULL);
        } else if (check->values[i] < median / 4 && rank->usual >= WINDOWS_BEFORE) {
            mark(check, i, QUIET, text);
        } else if (!rank->marked[QUIET]) {
            rank->usual = 0;
        }
    }
}

static void check_silence(struct check *check)
{
    struct stragglers *all = check->stragglers;
    int written = 0, reporting = 0;
    for (int i = 0; i < all->count; i++) {
        const struct straggler_rank *rank = &all->ranks[i];
        written += rank->runs && rank->output > 0;
        reporting += rank->runs && rank->percent >= 0;
    }
    bool enough = check->running >= STRAGGLERS_LEAST;
    bool most_write = enough && 2 * written > check->running;
    bool most_report = enough && 2 * reporting > check->running;
    for (int i = 0; i < all->count; i++) {
        struct straggler_rank *rank = &all->ranks[i];
        char text[100];
        bool no_output = most_write && rank->output == 0;
        bool lacks = rank->runs && (no_output || (most_report && rank->percent < 0));
        snprintf(text, sizeof(text), "it has not %s yet, and %d of %d ranks have",
                 no_output ? "written anything" : "reported any progress",
                 no_output ? written : reporting, check->running);
        if (!lacks)
            rank->silent_ms = -1;
        else if (rank->silent_ms < 0)
            rank->silent_ms = check->now_ms;
        if (!lacks || check->now_ms - rank->silent_ms >= all->window_ms)
            mark(check, i, SILENT, lacks ? text : NULL);
    }
}

/* A rank that has ended is not behind. */
static void forget_ended(const struct check *check)
{
    for (int i = 0; i < check->stragglers->count; i++) {
        for (int reason = 0; reason < REASONS && !check->stragglers->ranks[i].runs; reason++)
            mark(check, i, (enum reason)reason, NULL);
    }
}

void stragglers_tick(struct stragglers *stragglers, int64_t now_ms, straggler_each *each,
                     void *context)
{
    double *values AUTO_FREE = mem_array((size_t)stragglers->count + 1, sizeof(*values));
    struct check check = {.stragglers = stragglers,
                          .each = each,
                          .context = context,
                          .now_ms = now_ms,
                          .values = values};
    int64_t gap_ms = now_ms - stragglers->last_ms;
    if (gap_ms > GAP_PERIODS * stragglers_period_ms(stragglers))
        begin_again(stragglers, now_ms);
    stragglers->last_ms = now_ms;
    for (int i = 0; i < stragglers->count; i++)
        check.running += stragglers->ranks[i].runs;
    forget_ended(&check);
    check_silence(&check);
    check_percents(&check);
    check_outputs(&check);
}
