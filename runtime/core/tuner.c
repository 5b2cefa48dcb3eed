/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tuner.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- The search ------------------------------------------------------------------------------ */

enum { DIRECTIONS = 2 * SEARCH_AXES };
static const double clearly = 1.02;

void search_init(struct search *search, const struct search_axis axes[SEARCH_AXES],
                 const int start[SEARCH_AXES], int points)
{
    *search = (struct search){.points_left = points};
    memcpy(search->axes, axes, sizeof search->axes);
    memcpy(search->at, start, sizeof search->at);
    memcpy(search->best, start, sizeof search->best);
    search->tried[start[0]][start[1]] = true;
}

/* Halves the distances. False: they are 1 already. */
static bool come_closer(struct search *search)
{
    bool closer = false;
    for (int i = 0; i < SEARCH_AXES; i++)
        if (search->axes[i].distance > 1) {
            search->axes[i].distance /= 2;
            closer = true;
        }
    return closer;
}

/* The neighbour of the best point in the present direction. False: there is none that is new. */
static bool find_neighbour(const struct search *search, int neighbour[SEARCH_AXES])
{
    int axis = search->direction / 2, sign = search->direction % 2 == 0 ? 1 : -1;
    const struct search_axis *along = &search->axes[axis];
    memcpy(neighbour, search->best, sizeof search->best);
    neighbour[axis] += sign * along->distance;
    return along->distance > 0 && neighbour[axis] >= 0 && neighbour[axis] < along->end &&
           !search->tried[neighbour[0]][neighbour[1]];
}

/* There is nothing better in this direction. */
static void fail(struct search *search)
{
    search->failures++;
    search->direction = (search->direction + 1) % DIRECTIONS;
}

static void end(struct search *search)
{
    search->ended = true;
    memcpy(search->at, search->best, sizeof search->at);
}

/* The next neighbour of the best point that was not tried. */
static void choose(struct search *search)
{
    int next[SEARCH_AXES];
    while (search->failures == DIRECTIONS || !find_neighbour(search, next)) {
        if (search->failures < DIRECTIONS) {
            fail(search);
        } else if (come_closer(search)) {
            search->failures = 0;
        } else {
            end(search);
            return;
        }
    }
    memcpy(search->at, next, sizeof search->at);
    search->tried[next[0]][next[1]] = true;
}

void search_score(struct search *search, double score)
{
    if (search->ended)
        return;
    if (!search->has_score || score > search->best_score * clearly) {
        memcpy(search->best, search->at, sizeof search->best);
        search->best_score = score;
        search->failures = 0;
    } else {
        fail(search);
    }
    search->has_score = true;
    if (--search->points_left > 0)
        choose(search);
    else
        end(search);
}

/* ---- The tuner ------------------------------------------------------------------------------- */

/* Threshold: 64 KiB to 128 MiB. Cycle time: 1/8 ms to 64 ms. */
enum { THRESHOLDS = 12, CYCLES = 10, THRESHOLD_DISTANCE = 4, CYCLE_DISTANCE = 2 };
enum { NAMES_MAX = 1 << 16 };
#define THRESHOLD_MIN ((size_t)1 << 16)
#define CYCLE_MIN_NS ((int64_t)125000)
#define NS_PER_US 1000

/* The place of the largest value that is not above `value`. */
static int place(int64_t value, int64_t least, int end)
{
    int at = 0;
    while (at + 1 < end && least << (at + 1) <= value)
        at++;
    return at;
}

void tuner_init(struct tuner *tuner, const struct tuner_setup *setup,
                const struct tune_point *start)
{
    *tuner = (struct tuner){.setup = *setup, .now = *start, .since_ns = INT64_MAX};
    const struct search_axis axes[SEARCH_AXES] = {
        {THRESHOLDS, setup->threshold_fixed ? 0 : THRESHOLD_DISTANCE},
        {CYCLES, setup->cycle_fixed ? 0 : CYCLE_DISTANCE}};
    int64_t threshold = start->threshold > INT64_MAX ? INT64_MAX : (int64_t)start->threshold;
    const int at[SEARCH_AXES] = {place(threshold, (int64_t)THRESHOLD_MIN, THRESHOLDS),
                                 place(start->cycle_ns, CYCLE_MIN_NS, CYCLES)};
    search_init(&tuner->search, axes, at, setup->points);
}

static void forget_counts(struct tuner *tuner)
{
    for (size_t i = 0; i < tuner->counts.room; i++)
        free((char *)tuner->counts.slots[i].key.bytes);
    map_clear(&tuner->counts, NULL);
    tuner->most = 0;
    tuner->bytes = 0;
}

void tuner_destroy(struct tuner *tuner)
{
    forget_counts(tuner);
}

/* A program that never repeats a name does not have steps: it is not tuned, and costs no memory. */
void tuner_count(struct tuner *tuner, const char *key, size_t bytes)
{
    if (!tuner->setup.on || tuner->search.ended || tuner->since_ns == INT64_MAX)
        return;
    if (tuner->counts.count == NAMES_MAX)
        forget_counts(tuner);
    struct map_slot *slot = map_find(&tuner->counts, map_text(key));
    uintptr_t count = slot == NULL ? 1 : (uintptr_t)slot->value + 1;
    if (slot == NULL)
        map_put(&tuner->counts, map_text(mem_strdup(key)), (void *)count);
    else
        slot->value = (void *)count;
    tuner->most = count > tuner->most ? count : tuner->most;
    tuner->bytes += bytes;
}

static int compare_scores(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(struct tuner *tuner)
{
    qsort(tuner->samples, TUNER_SAMPLES, sizeof *tuner->samples, compare_scores);
    return tuner->samples[TUNER_SAMPLES / 2];
}

static void finish_round(struct tuner *tuner, struct tuning *tuning)
{
    struct search *search = &tuner->search;
    double score = median(tuner);
    search_score(search, score);
    struct tune_point next = tuner->now;
    if (!tuner->setup.threshold_fixed)
        next.threshold = THRESHOLD_MIN << search->at[0];
    if (!tuner->setup.cycle_fixed)
        next.cycle_ns = CYCLE_MIN_NS << search->at[1];
    *tuning = (struct tuning){tuner->now, next, score, search->best_score, search->ended};
    tuner->now = next;
}

bool tuner_turn(struct tuner *tuner, int64_t now_ns, struct tuning *tuning)
{
    if (!tuner->setup.on || tuner->search.ended)
        return false;
    if (tuner->since_ns == INT64_MAX)
        tuner->since_ns = now_ns;
    if (tuner->most < (uintptr_t)tuner->setup.steps || now_ns <= tuner->since_ns)
        return false;
    tuner->samples[tuner->sample_count++] =
        (double)tuner->bytes * NS_PER_US / (double)(now_ns - tuner->since_ns);
    tuner->since_ns = now_ns;
    forget_counts(tuner);
    if (tuner->sample_count < TUNER_SAMPLES)
        return false;
    tuner->sample_count = 0;
    if (tuner->rounds++ < tuner->setup.warm_up)
        return false;
    finish_round(tuner, tuning);
    return true;
}
