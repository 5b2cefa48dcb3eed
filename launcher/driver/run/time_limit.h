/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --timeout: how long the workers may run. After that time the driver looks at what they do
 * (look.h) and prints it, and the job ends.
 */
#pragma once

#include "driver/job/job.h"

struct time_limit;

void time_limit_begin(struct time_limit *limit); /* the job runs */
void time_limit_pause(struct time_limit *limit, bool paused);
