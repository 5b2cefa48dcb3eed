/* SPDX-License-Identifier: Apache-2.0 */
/* lines.txt in a folder of evidence (run/evidence_folder.h): what each rank wrote to its stderr and
 * its stdout last, and the last output of all. */
#pragma once

#include "driver/job/job.h"

/* Each rank has the same room in `out`, which has a limit. The lines of a rank are indented. */
void evidence_lines(const struct job *job, struct buf *out);
