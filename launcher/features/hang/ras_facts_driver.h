/* SPDX-License-Identifier: Apache-2.0 */
/* What NCCL has last said about each worker, from PULSE. */
#pragma once

#include "driver/job/job.h"
#include "features/hang/ras.h"

struct ras_facts;

struct ras_facts *ras_facts_create(void);
void ras_facts_destroy(struct ras_facts *facts); /* accepts NULL */

/* Nobody asks NCCL for now: the next answer starts anew. */
void ras_facts_forget(struct ras_facts *facts);
/* Takes an answer, if there is one. Returns in how many answers the worker has launched something
 * since the one before. */
uint64_t ras_facts_take(struct ras_facts *facts, int seat, const Hvdrun__RankPulse *pulse);
/* Borrowed until the next answer. */
struct ras_rank ras_facts_of(const struct ras_facts *facts, int seat);
