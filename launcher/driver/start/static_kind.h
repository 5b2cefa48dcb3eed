/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The static kind of job: its hosts and ranks are planned before anything starts, and its first bad
 * exit ends it (model/exit/policy.h). A seat is a rank.
 */
#pragma once

#include "driver/job/job_kind.h"

extern const struct job_kind static_kind;
