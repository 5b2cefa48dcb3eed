/* SPDX-License-Identifier: Apache-2.0 */
/* The process of one srun: its start, what it says on stderr, and its end. */
#pragma once

#include "base/strv.h"
#include "transport/srun/dial_back.h"
#include "transport/srun/options.h"
#include "transport/srun/settings.h"

struct srun_process_spec { /* borrowed for the call, but for the settings */
    const struct srun_settings *settings;
    const struct srun_options *options;
    const struct strv *arguments; /* of the user; NULL: none */
    const struct dial_back *dial; /* to which its agents connect */
    const struct strv *nodes;     /* where it starts agents */
};

struct srun_process_events { /* from the loop */
    void (*line)(void *context, const char *line);
    void (*silent)(void *context); /* its stderr has ended */
    void (*exited)(void *context, int wait_status);
};

struct srun_process;

/* NULL: it could not be started. */
struct srun_process *srun_process_start(const struct srun_process_spec *spec,
                                        const struct srun_process_events *events, void *context,
                                        struct error *err);
void srun_process_destroy(struct srun_process *process); /* lets it go; accepts NULL */

void srun_process_ask(struct srun_process *process);    /* SIGTERM */
void srun_process_let_go(struct srun_process *process); /* no event comes any more */

/* Closes its stderr. */
void srun_process_ignore(struct srun_process *process);
bool srun_process_is_silent(const struct srun_process *process); /* its stderr is closed */

/* The lines that it has said so far, and the last of them. "": none. */
const char *srun_process_said(const struct srun_process *process);
const char *srun_process_last_line(const struct srun_process *process);

/* "srun was killed by signal 9 (Killed)". The caller's. */
char *srun_process_end(const struct srun_process *process);
