/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scheduler sends a signal to every process of a job, so the launcher and each agent get it
 * within seconds. That counts once. Pure: the time is a parameter.
 *
 *   the first of a kind                                        news
 *   from a node, within SIGNAL_ROUND_MS of the first           the same signal
 *   the first one to the launcher itself, within that time     the same signal
 *   everything else (the user's second Ctrl-C)                 news
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/exit/signal_name.h"

#define SIGNAL_ROUND_MS 5000

struct signal_rounds { /* all zero: no signal yet */
    struct {
        int64_t begun_ms; /* 0: never */
        bool ours;        /* the launcher itself has received it */
    } of[SIGNAL_NUMBER_MAX + 1];
};

/* `now_ms` is greater than 0. */
bool signal_rounds_is_news(struct signal_rounds *rounds, int signal, bool from_node,
                           int64_t now_ms);
