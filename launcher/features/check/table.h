/* SPDX-License-Identifier: Apache-2.0 */
/* One line for each host, for people; and the words in it that the JSON has too. */
#pragma once

#include "base/buf.h"
#include "features/check/result.h"

void check_table(const struct check_result *result, const struct check_findings *findings,
                 struct buf *out);

/* "ok", "warning", or the stage at which the host failed; borrowed. */
const char *check_state_word(const struct check_result *result,
                             const struct check_findings *findings, int host);

/* Name of the interface that has the host's address; "" when it is not known. */
void check_host_interface(const struct check_host *host, char *text, size_t room);
