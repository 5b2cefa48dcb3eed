/* SPDX-License-Identifier: Apache-2.0 */
/* `hvdrun explain`, as its tests need it. */
#pragma once

#include "base/buf.h"
#include "features/evidence/explain_json_cli.h"

/* At most EXPLAIN_LINES lines, or a JSON object. Nothing in it steers the terminal. */
void explain_json_show(const struct explain_case *explained, bool json, struct buf *out);
