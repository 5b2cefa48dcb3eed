/* SPDX-License-Identifier: Apache-2.0 */
/* For tests. */
#pragma once

#include "agent/ending.h"
#include "base/buf.h"

/* What gone() gets after SIGKILL; nothing: there is none. */
void ending_describe_held(const struct ending *ending, struct buf *out);
