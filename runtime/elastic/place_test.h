/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of place need, and nobody else. */
#pragma once

#include "elastic/place.h"

/* Pure. The milliseconds from `now_ns` (since 1970) until the deadline in `text`, at least 0.
 * `reason` receives the reason. -1: the text has another form. */
int64_t deadline_parse(const char *text, int64_t now_ns, char reason[DEADLINE_REASON_MAX]);
