/* SPDX-License-Identifier: Apache-2.0 */
/* The output of `hvdrun check --json`; docs/check.md describes the format. */
#pragma once

#include "base/buf.h"
#include "features/check/result.h"

/* -1: it does not fit into `out`. */
int check_json(const struct check_result *result, const struct check_findings *findings, int status,
               struct buf *out);
