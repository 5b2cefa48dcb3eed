/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time limits of an elastic job, and what happens when one has passed.
 */
#pragma once

#include "model/elastic/job.h"

int64_t elastic_clock_next(const struct elastic *e); /* INT64_MAX: nothing */
/* Carries out the earliest limit that has passed at e->now_ms. False: none has. */
bool elastic_clock_fire(struct elastic *e);
