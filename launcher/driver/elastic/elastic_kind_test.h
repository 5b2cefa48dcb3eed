/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of elastic_kind need, and nobody else. */
#pragma once

#include "driver/elastic/elastic_kind.h"
#include "driver/job/job.h"
#include "model/elastic/elastic.h"

void elastic_config_from(const struct job *job, struct elastic_config *out);
