/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The progress line of the start: "connecting 37/64 hosts, slowest: c12 (auth)". Only on a
 * terminal (output/ knows), only when the start takes long enough to be noticed.
 */
#pragma once

#include "driver/job/job.h"

struct progress;

struct progress *progress_create(struct job *job);
void progress_begin(struct progress *progress);
void progress_end(struct progress *progress); /* takes the line away */
void progress_destroy(struct progress *progress);
