/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on an elastic job: that of the core, unless something from outside ended the job. */
#pragma once

#include "driver/job/job.h"
#include "model/elastic/elastic.h"

void elastic_verdict_of(const struct job *job, const struct elastic *core, struct verdict *out);

/* The role of the last worker on this seat in the verdict. */
enum exit_role elastic_role_of(const struct job *job, int seat);
