/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Something has gone wrong, and the ranks that still run will be ended. A part may look at them
 * first: it takes the incident (struct driver_part), and says when it is done with the ranks.
 */
#pragma once

#include "driver/job/job.h"

struct ask;

enum incident_kind { INCIDENT_FAILURE, INCIDENT_HANG, INCIDENT_TIMEOUT, INCIDENT_KINDS };

struct incident {
    enum incident_kind kind;
    const char *text;       /* what has gone wrong */
    int rank;               /* -1: none */
    bool once;              /* one look is enough: the ranks are ended meanwhile, or have ended */
    bool by_nccl;           /* NCCL has named the rank */
    const struct ask *look; /* at the ranks, that was just taken; NULL */
};

/* false: no part takes it. Else `done`, if it is not NULL, is called when the ranks are not needed
 * any more: at once, or from the loop, when the job may have ended. */
bool incident_raise(struct job *job, const struct incident *incident, void (*done)(void *context),
                    void *context);

/* "rank 3 on b exited with code 1". The caller frees it. */
char *incident_exit_text(const struct job *job, const struct exit_event *event);
