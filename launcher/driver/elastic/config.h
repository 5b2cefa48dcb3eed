/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the settings of a job into the configuration of its elastic core. */
#pragma once

#include "driver/job/job.h"
#include "model/elastic/elastic.h"

void elastic_config_from(const struct job *job, struct elastic_config *out);
