/* SPDX-License-Identifier: Apache-2.0 */
/* What the hosts send after a failure: one EVIDENCE each, and as many EVIDENCE_FILE as it says. */
#pragma once

#include "driver/job/job.h"
#include "driver/tell/evidence_json.h"

#define EVIDENCE_FILE_MAX ((size_t)4 << 20)
#define EVIDENCE_DUMPS_MAX ((size_t)256 << 20) /* of the files of all hosts together */

struct evidence_answers {
    struct evidence_host *hosts; /* by the node's index */
    int host_count;
    struct evidence_file *files;
    size_t file_count, file_bytes;
};

void evidence_answers_init(struct evidence_answers *answers, int hosts);
void evidence_answers_destroy(struct evidence_answers *answers); /* leaves it empty */

/* A second answer of a host is dropped. */
void evidence_answers_take(struct evidence_answers *answers, const struct node_link *node,
                           Hvdrun__Evidence *message_take);

/* Where in the folder the data belongs, borrowed; NULL: nowhere. */
const char *evidence_answers_file(struct evidence_answers *answers, const struct job *job,
                                  const struct node_link *node,
                                  const Hvdrun__EvidenceFile *message);

/* No host that is alive has promised a file that did not come. */
bool evidence_answers_complete(const struct evidence_answers *answers, const struct job *job);
