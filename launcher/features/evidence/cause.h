/* SPDX-License-Identifier: Apache-2.0 */
/* Why a rank or a job failed, in plain words, and what to do, by the table in cause.def. Pure. */
#pragma once

#include "base/strv.h"
#include "features/evidence/facts.h"

struct explain_finding {
    char *plain;        /* what happened first is this; NULL: nothing to add */
    struct strv advice; /* the most important one first; at least one */
    struct strv quoted; /* of the rank's output */
    const char *stream; /* that they are of; NULL: nothing is quoted */
};

/* `rank`: that the story is about; NULL: none. */
void explain_find(const struct explain_facts *facts, const struct explain_rank *rank,
                  struct explain_finding *out);
void explain_finding_destroy(struct explain_finding *finding);
