/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of `hvdrun check` for people: a table with one line for each host, the facts that all
 * hosts share, the network, and the findings.
 */
#pragma once

#include "base/buf.h"
#include "driver/check/findings.h"
#include "driver/check/result.h"

/* `brief` (--quiet): only the findings. */
void check_text(const struct check_result *result, const struct check_findings *findings,
                bool brief, struct buf *out);

/* The parts of check_text(). */
void check_text_table(const struct check_result *result, const struct check_findings *findings,
                      struct buf *out);
void check_text_facts(const struct check_result *result, struct buf *out);
void check_text_network(const struct check_result *result, struct buf *out);

/* "ok", "warning", or the stage at which the host failed; borrowed. */
const char *check_state_word(const struct check_result *result,
                             const struct check_findings *findings, int host);

/* Name of the interface that has the host's address; "" when it is not known. */
void check_host_interface(const struct check_host *host, char *text, size_t room);
