/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices a job that hangs: asks all agents for the pulse of their ranks, and lets model/hang
 * judge.
 * --hang-warning, --hang-timeout, --expect and --on-hang say what follows.
 */
#pragma once

#include "driver/job/job.h"

struct hang_watch;
