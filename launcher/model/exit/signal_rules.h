/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the settings make of a signal that the launcher gets: --warn-signal, --map-signal,
 * --slurm-requeue. Pure.
 *
 * The warning signal says that the end is near. In a Slurm job it is USR1 when nothing is said,
 * elsewhere none ("none" turns it off). It ends the job only when the user has asked for that, by
 * naming it or by --slurm-requeue: to a program USR1 may mean something else.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "model/exit/signal_name.h"
#include "model/settings/settings.h"

struct signal_rules {
    int warn;                        /* 0: none */
    bool warn_ends;                  /* the workers have until the deadline, then they are ended */
    bool requeue;                    /* then the Slurm job goes back into the queue */
    int sent[SIGNAL_NUMBER_MAX + 1]; /* what the workers get instead of a signal; 0: itself */
};

/* `in_slurm`: the job runs in an allocation of Slurm. -1 and STATUS_USAGE: the settings name what
 * cannot be. */
int signal_rules_from(const struct settings *settings, bool in_slurm, struct signal_rules *out,
                      struct error *err);

int signal_rules_sent(const struct signal_rules *rules, int signal);

/* The launcher must watch this one for it, although it does not by itself. */
bool signal_rules_name(const struct signal_rules *rules, int signal);
