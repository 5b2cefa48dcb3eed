/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A suspended job (Ctrl-Z): the workers stop, then the launcher stops too. All time limits stop
 * meanwhile (D5). They also stop while a debugger may hold a rank: then workers and launcher go on.
 */
#pragma once

#include "driver/job/job.h"

struct suspension;

/* The user suspends the job. Returns at once; the launcher stops when all agents have answered. */
void suspension_begin(struct suspension *suspension);
void suspension_end(struct suspension *suspension);

/* A debugger holds a rank, or may at any time; or none does any more. */
void suspension_debugged(struct suspension *suspension, bool debugged);
