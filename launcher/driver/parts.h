/* SPDX-License-Identifier: Apache-2.0 */
/* The composing page of the driver: all parts of a job (driver/job/part.h) and all kinds of job. */
#pragma once

#include "driver/job/part.h"

extern const struct driver_part *const driver_parts[PART_COUNT];

const struct job_kind *driver_kind(const struct job_request *request);
