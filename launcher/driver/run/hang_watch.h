/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices a job that hangs: asks all agents for the pulse of their ranks, and lets model/hang
 * judge.
 * --hang-warning, --hang-timeout, --expect and --on-hang say what follows.
 */
#pragma once

#include "driver/job/job.h"

struct hang_watch;

/* Sets job->hang_watch, to NULL if nobody wants to know. -1: --expect is wrong. */
int hang_watch_open(struct job *job, struct error *err);
void hang_watch_destroy(struct hang_watch *watch); /* accepts NULL */

/* Output of the worker on a seat; `stream` is 0 or 1. Accepts NULL, and so does the next one. */
void hang_watch_bytes(struct hang_watch *watch, int seat, int stream, const void *bytes,
                      size_t length);
/* The job ends: names each --expect that no line has ever matched. */
void hang_watch_ending(const struct hang_watch *watch);
