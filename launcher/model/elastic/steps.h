/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After every event: takes the job as far as it can go without another event.
 */
#pragma once

#include "model/elastic/job.h"

void elastic_steps_settle(struct elastic *e);
