/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a job as its elastic core takes them. */
#pragma once

#include "driver/job/job.h"
#include "model/elastic/elastic.h"

void elastic_config_from(const struct job *job, struct elastic_config *out);
