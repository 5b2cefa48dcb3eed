/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What follows from what is so: after every event the job goes as far as it can without another.
 */
#pragma once

#include "model/elastic/job.h"

void elastic_steps_settle(struct elastic *e);
