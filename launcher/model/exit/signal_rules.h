/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the launcher does with a signal, by its settings: --warn-signal, --map-signal,
 * --slurm-requeue. Pure.
 *
 * The warning signal announces the end of the job. Its default is USR1 in a Slurm job and none
 * elsewhere ("none" turns it off). It ends the job only if the user asked for that, by naming it or
 * by --slurm-requeue: USR1 may mean something else to a program.
 */
#pragma once

#include <stdbool.h>

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
