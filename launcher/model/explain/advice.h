/* SPDX-License-Identifier: Apache-2.0 */
/* What to do about a failure, by a table of rules, the most specific one first. Pure. */
#pragma once

#include "model/explain/facts.h"

/* `rank`: that the story is about; NULL: none. Each text is borrowed; there is at least one. */
void explain_advice(const struct explain_facts *facts, const struct explain_rank *rank,
                    void (*each)(void *context, const char *text), void *context);
