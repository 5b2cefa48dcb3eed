/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The elastic kind of job: it survives the loss of workers and hosts, and takes in new ones
 * (docs/elastic.md). A pure core makes the decisions (model/elastic/elastic.h). The parts in this
 * folder report events to it and carry out its decisions (parts.h).
 */
#pragma once

#include "driver/job/job_kind.h"

extern const struct job_kind elastic_kind;
