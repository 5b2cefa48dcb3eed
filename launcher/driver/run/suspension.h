/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A suspended job (Ctrl-Z): the workers stop, then the launcher stops too. All time limits stop
 * meanwhile (D5).
 */
#pragma once

#include "driver/job/job.h"

struct suspension;

struct suspension *suspension_create(struct job *job);
void suspension_destroy(struct suspension *suspension); /* accepts NULL */

/* The user suspends the job. Returns at once; the launcher stops when all agents have answered. */
void suspension_begin(struct suspension *suspension);
void suspension_end(struct suspension *suspension);
