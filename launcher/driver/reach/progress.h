/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The progress line of the start: "connecting 37/64 hosts, slowest: c12 (auth)". It appears only on
 * a terminal (output/ decides) and only if the start takes noticeably long.
 */
#pragma once

#include "driver/job/job.h"

struct progress;

struct progress *progress_create(struct job *job);
void progress_begin(struct progress *progress);
void progress_end(struct progress *progress); /* removes the line */
void progress_destroy(struct progress *progress);
