/* SPDX-License-Identifier: Apache-2.0 */
/* --warm: tells the agents. */
#include <string.h>

#include "driver/job/part.h"

const char warm_feature[] = "ranks of Python that are forked, not started (--warm)";

static void prepare(const struct job *job, Hvdrun__Prepare *message)
{
    const struct strv *modules = &job->settings->warm;
    message->warm = modules->count > 0;
    message->n_warm_modules = modules->count;
    message->warm_modules = modules->items;
    if (modules->count == 1 && strcmp(modules->items[0], "auto") == 0)
        message->n_warm_modules = 0; /* those that the script imports */
}

const struct driver_part warm_part = {.name = "warm", .prepare = prepare};
