/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The progress line of the start: "connecting 37/64 hosts, slowest: c12 (auth)". It appears only on
 * a terminal (output/ decides) and only if the start takes noticeably long.
 */
#pragma once

#include "driver/job/job.h"

void call_progress_begin(const struct job *job);
void call_progress_end(const struct job *job); /* removes the line */
