/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver: runs one job whose agents have been started, from their HELLO to the verdict. It
 * composes the parts of this room; docs/design.md tells the way of a job.
 */
#pragma once

#include "driver/job/job.h"

/* The job's exit status. -1: it could not even be begun; the agents see the end of their links. */
int driver_run(const struct job_request *request, struct error *err);
