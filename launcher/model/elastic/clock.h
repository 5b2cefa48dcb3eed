/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is due in an elastic job, and what happens then.
 */
#pragma once

#include "model/elastic/job.h"

int64_t elastic_clock_next(const struct elastic *e); /* INT64_MAX: nothing */
/* Does the earliest of what is due at e->now_ms. False: nothing was. */
bool elastic_clock_fire(struct elastic *e);
