/* SPDX-License-Identifier: Apache-2.0 */
/* What `hvdrun check --json` prints: docs/check.md tells the form. */
#pragma once

#include "base/buf.h"
#include "driver/check/findings.h"
#include "driver/check/result.h"

/* -1: it does not fit into `out`. */
int check_json(const struct check_result *result, const struct check_findings *findings, int status,
               struct buf *out);
