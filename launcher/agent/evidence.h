/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to EVIDENCE_REQUEST: what this host knows after a failure (node/evidence.h), and the
 * environment of one of its workers, without secrets. */
#pragma once

#include "agent/crews.h"
#include "agent/post.h"

void evidence_report(const struct crews *crews, uint32_t round, const struct post *post);
