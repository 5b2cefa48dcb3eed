/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the launcher does with a signal, by its settings: --warn-signal, --map-signal,
 * --slurm-requeue. When a signal counts as a new one, and how the time after a warning is divided.
 * Pure; the time is a parameter.
 *
 * The warning signal announces the end of the job. Its default is USR1 in a Slurm job and none
 * elsewhere ("none" turns it off). It ends the job only if the user asked for that, by naming it or
 * by --slurm-requeue: USR1 may mean something else to a program.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/exit/signal_name.h"
#include "model/settings/settings.h"

struct signal_rules {
    int warn;                        /* 0: none */
    bool warn_ends;                  /* the workers have until the deadline, then we end them */
    bool requeue;                    /* then requeues the Slurm job */
    int sent[SIGNAL_NUMBER_MAX + 1]; /* what the workers get instead of a signal; 0: itself */
};

/* `in_slurm`: the job runs in an allocation of Slurm. -1 and STATUS_USAGE: a signal in
 * the settings is wrong. */
int signal_rules_from(const struct settings *settings, bool in_slurm, struct signal_rules *out,
                      struct error *err);

int signal_rules_sent(const struct signal_rules *rules, int signal);

/* Do the rules name this signal, so that the launcher must watch it? */
bool signal_rules_name(const struct signal_rules *rules, int signal);

/*
 * A scheduler sends a signal to every process of a job, so the launcher and each agent get it
 * within seconds. That counts once. Pure: the time is a parameter.
 *
 *   the first of a kind                                        news
 *   from a node, within SIGNAL_ROUND_MS of the first           the same signal
 *   the first one to the launcher itself, within that time     the same signal
 *   everything else (the user's second Ctrl-C)                 news
 */
#define SIGNAL_ROUND_MS 5000

struct signal_rounds { /* all zero: no signal yet */
    struct signal_round {
        int64_t begun_ms; /* 0: never */
        bool ours;        /* the launcher itself has received it */
    } of[SIGNAL_NUMBER_MAX + 1];
};

/* `now_ms` is greater than 0. */
bool signal_rounds_is_news(struct signal_rounds *rounds, int signal, bool from_node,
                           int64_t now_ms);

/*
 * Divides the time between a warning and the end of the scheduler's job. Pure.
 *
 *   now ............... workers .............. | term | rest ........ end
 *
 * The workers get most of it. Then those that still run get TERM, and KILL after `term_ms`. The
 * rest is for the last output, the report and the requeue before the scheduler ends everything.
 * Without a known end there is no rest: the workers have the grace.
 */
struct warning_times {
    int64_t workers_ms, term_ms;
};

/* `left_ms`: until the end; INT64_MAX: it is not known. `grace_ms`: --grace, -1 when not given. */
struct warning_times warning_times_share(int64_t left_ms, int64_t grace_ms);
