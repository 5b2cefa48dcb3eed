/* SPDX-License-Identifier: Apache-2.0 */
#include "output/seats.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/settings/shown.h"

#define RANKS_MOST 1000000 /* when the maximum is unknown */

int seats_most_ranks(const struct output_config *config)
{
    return config->ranks_max > config->ranks ? config->ranks_max : config->ranks;
}

int seats_init(struct seats *seats, const struct output_config *config, struct error *err)
{
    int most = seats_most_ranks(config);
    if (config->ranks_shown != NULL &&
        shown_check(config->ranks_shown, (most > 0 ? most : RANKS_MOST) - 1, err) < 0)
        return error_wrap(err, "--ranks");
    seats->ranks_shown = mem_strdup(config->ranks_shown);
    for (int rank = 0; rank < config->ranks; rank++) {
        const struct output_seat who = {
            .rank = rank,
            .local_rank = config->local_ranks != NULL ? config->local_ranks[rank] : rank,
            .host = config->hosts != NULL ? config->hosts[rank] : NULL,
        };
        seat_take(seats, seats_reach(seats, rank), &who);
    }
    return 0;
}

static void clear_stream(struct seat_stream *stream)
{
    lines_clear(&stream->lines);
    lines_clear(&stream->copy.lines);
    free(stream->label);
    stream->label = NULL;
}

void seats_destroy(struct seats *seats)
{
    for (int i = 0; i < seats->count; i++) {
        clear_stream(&seats->all[i]->streams[0]);
        clear_stream(&seats->all[i]->streams[1]);
        free(seats->all[i]->host);
        free(seats->all[i]);
    }
    free(seats->all);
    free(seats->ranks_shown);
    *seats = (struct seats){0};
}

static struct seat *make(struct seats *seats, int number)
{
    struct seat *seat = mem_alloc(sizeof(*seat));
    seat->number = number;
    const struct output_seat who = {.rank = number, .local_rank = number};
    seat_take(seats, seat, &who);
    return seat;
}

struct seat *seats_reach(struct seats *seats, int number)
{
    while (seats->count <= number) {
        if (seats->count == seats->room) {
            seats->room = seats->room > 0 ? seats->room * 2 : 16;
            seats->all = mem_resize_array(seats->all, (size_t)seats->room, sizeof(struct seat *));
        }
        seats->all[seats->count] = make(seats, seats->count);
        seats->count++;
    }
    return seats->all[number];
}

void seat_take(const struct seats *seats, struct seat *seat, const struct output_seat *who)
{
    free(seat->host);
    seat->rank = who->rank;
    seat->local_rank = who->local_rank;
    seat->world = who->world;
    seat->world_rank = who->world_rank;
    seat->host = mem_strdup(who->host);
    for (int i = 0; i < 2; i++) {
        clear_stream(&seat->streams[i]);
        seat->streams[i] = (struct seat_stream){.seat = seat, .index = i};
        seat->streams[i].lines.runs = seats->runs;
        seat->streams[i].shown = shown_has(seats->ranks_shown, who->rank, who->local_rank, i);
    }
}
