/* SPDX-License-Identifier: Apache-2.0 */
/* The facts about a failure (features/evidence/evidence.h) from what hvdrun has written: the record
 * of a job, or the files of a folder of evidence. What is missing or of a wrong type is not known.
 */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "driver/control/record.h"
#include "features/evidence/evidence.h"

struct explain_case {
    struct explain_facts facts;
    struct explain_rank *ranks;
    struct explain_host *hosts;
    struct explain_gpu *gpus; /* of all hosts */
    struct buf said, printed; /* by the rank that the story is about, to stderr and stdout */
    json_t *record, *evidence, *report; /* what the facts borrow from */
};

/* Takes the three values, of which each may be NULL: the record, facts.json and report.json.
 * `state` is that of the record; `lines`: lines.txt, or NULL. */
void explain_json_take(json_t *record, enum job_record_state state, json_t *evidence,
                       json_t *report, const char *lines, struct explain_case *out);
void explain_case_destroy(struct explain_case *explained);
