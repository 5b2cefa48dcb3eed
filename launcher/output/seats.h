/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seats of the job: the worker that has each one at the moment, and which of its streams are
 * shown.
 * Pure.
 *
 * In a static job there is one seat per rank from the start. Other seats are made when their number
 * comes. They keep their address in memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/copies.h"
#include "output/lines.h"
#include "output/types.h"

struct seat_stream {
    struct seat *seat;
    int index; /* OUTPUT_STDOUT or OUTPUT_STDERR */
    struct lines lines;
    char *label; /* cached; NULL until the first line, and always when it contains the time */
    size_t label_length;
    int64_t wall_ns; /* of the last bytes */
    struct copy_end copy;
    bool begun; /* has written something, or has a file */
    bool ended;
    bool shown;
    bool expected; /* the collapse waits for its lines */
};

struct seat {
    int number;
    int rank, local_rank;
    int world, world_rank;
    char *host; /* or NULL */
    struct seat_stream streams[2];
};

struct seats {
    struct seat **all;
    int count, room;
    char *ranks_shown; /* model/settings/shown.h */
    bool runs;         /* lines.h */
};

/* An all-zero struct is empty; `runs` is set by its owner. Fills in the ranks of the configuration;
 * -1 and `err` when its list of ranks is wrong. */
int seats_init(struct seats *seats, const struct output_config *config, struct error *err);
void seats_destroy(struct seats *seats);

/* The highest number of ranks that the configuration allows, 0 when it is unknown. */
int seats_most_ranks(const struct output_config *config);

/* Makes seats up to this number; a new seat has the rank of its number. */
struct seat *seats_reach(struct seats *seats, int number);

/* Gives the seat to another worker and forgets the one before. The streams must be empty. */
void seat_take(const struct seats *seats, struct seat *seat, const struct output_seat *who);
