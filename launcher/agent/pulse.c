/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pulse.h"

#include <stdlib.h>

#include "base/mem.h"
#include "node/activity.h"
#include "wire/control.pb-c.h"

struct pulse {
    const struct worker_lines *lines;
    struct closer_look *look;
    Hvdrun__Pulse message;
};

static void add_rank(void *context, uint32_t seat, pid_t pid)
{
    struct pulse *pulse = context;
    Hvdrun__Pulse *message = &pulse->message;
    struct activity activity;
    uint64_t operations = 0;
    if (!activity_read(pid, &activity))
        return;
    if (pulse->lines != NULL && !worker_lines_progress(pulse->lines, seat, &operations))
        operations = 0;
    Hvdrun__RankPulse *rank = mem_alloc(sizeof(*rank));
    hvdrun__rank_pulse__init(rank);
    rank->seat = seat;
    rank->cpu_us = activity.cpu_us;
    rank->io_bytes = activity.io_bytes;
    rank->faults = activity.faults;
    rank->waits = activity.waits;
    rank->debugged = activity.debugged;
    rank->operations = operations;
    if (pulse->look != NULL)
        closer_look_fill(pulse->look, rank);
    message->ranks =
        mem_resize_array(message->ranks, message->n_ranks + 1, sizeof(Hvdrun__RankPulse *));
    message->ranks[message->n_ranks++] = rank;
}

void pulse_report(const struct crews *crews, const struct worker_lines *lines,
                  struct closer_look *look, const struct post *post)
{
    struct pulse pulse = {.lines = lines, .look = look, .message = HVDRUN__PULSE__INIT};
    crews_walk_live(crews, add_rank, &pulse);
    post_message(post, FRAME_PULSE, &pulse.message.base);
    for (size_t i = 0; i < pulse.message.n_ranks; i++)
        free(pulse.message.ranks[i]);
    free(pulse.message.ranks);
}
