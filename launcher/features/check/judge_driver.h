/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges what `hvdrun check` found: facts in, findings out. Pure.
 *
 * A finding is fatal if a job on these hosts would fail: a host that cannot be used, no runtime
 * folder, no network, or a connection between two hosts that cannot be set up. Everything else is a
 * warning: some jobs run anyway, others are slower or fail late.
 */
#pragma once

#include "features/check/result.h"

/* Appends the findings, fatal ones first, otherwise in the order of the hosts. */
void check_judge(const struct check_result *result, struct check_findings *out);
