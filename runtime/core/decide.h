/* SPDX-License-Identifier: Apache-2.0 */
/* What the decisions of the root do to a member, and which actions follow. */
#pragma once

#include "core/member.h"

/* A decision of the root. -1: the root breaks the rules; the error says how. */
int decide_apply(struct member *member, const void *bytes, size_t length, int64_t now_ns,
                 struct actions *actions, struct error *err);

/* All that is pending fails, and all that comes later too. */
void decide_end(struct member *member, enum hvd_status status, const char *text,
                struct actions *actions);
