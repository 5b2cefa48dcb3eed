/* SPDX-License-Identifier: Apache-2.0 */
#include "core/search.h"

#include <string.h>

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
