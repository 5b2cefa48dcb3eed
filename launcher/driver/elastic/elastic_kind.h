/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The elastic kind of job: it goes on when workers or hosts are lost and takes in new ones
 * (docs/elastic.md). The decisions are those of a pure core (model/elastic/elastic.h); the parts of
 * this folder find out what happens and carry them out (parts.h).
 */
#pragma once

#include "driver/job/job_kind.h"

extern const struct job_kind elastic_kind;
