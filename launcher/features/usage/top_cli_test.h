/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of control_top alone. */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "features/usage/top_cli.h"

/* Text for a terminal. usage_marks_set() comes first (features/usage/usage_marks.h). */
void control_usage_text(const json_t *usage, struct buf *out);

/* The orders that a user can choose, one after the other, and then the first one again. */
const char *control_usage_order_name(size_t order);
void control_usage_sort(json_t *usage, size_t order);
