/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of `hvdrun check` for people: a table with one line for each host, the facts that all
 * hosts share, the network, the GPUs, and the findings.
 */
#pragma once

#include "base/buf.h"
#include "features/check/result.h"

/* `brief` (--quiet): only the findings. */
void check_text(const struct check_result *result, const struct check_findings *findings,
                bool brief, struct buf *out);

/* Parts of check_text(). */
void check_text_facts(const struct check_result *result, struct buf *out);
void check_text_network(const struct check_result *result, struct buf *out);
void check_text_gpus(const struct check_result *result, struct buf *out);
