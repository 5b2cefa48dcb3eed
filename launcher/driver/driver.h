/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver runs one job, from the HELLO of its agents to the verdict. It composes the parts of
 * this room; docs/design.md describes the course of a job.
 */
#pragma once

#include "driver/job/job.h"

/* The exit status of the job. -1: the job could not start; the agents see their links close. */
int driver_run(const struct job_request *request, struct error *err);
