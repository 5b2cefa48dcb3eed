/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judgement of `hvdrun check`: facts in, findings out. Pure.
 *
 * Fatal is what a job on these hosts would end with: a host that cannot be used, no folder to work
 * in, no network, a connection between two hosts that does not come up. All else is a warning: some
 * jobs would run all the same, or slower, or fail late.
 */
#pragma once

#include "driver/check/findings.h"
#include "driver/check/result.h"

/* Appends, in the order of the hosts, fatal ones first. */
void check_judge(const struct check_result *result, struct check_findings *out);

/* The halves of it. */
void check_judge_host(const struct check_result *result, int host, struct check_findings *out);
void check_judge_together(const struct check_result *result, struct check_findings *out);
void check_judge_links(const struct check_result *result, struct check_findings *out);
