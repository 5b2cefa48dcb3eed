/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evidence of a failure, while there still is some: two looks at all ranks, the last lines of each,
 * and what each host knows. It goes into a folder of its own:
 *
 *   facts.json    what happened, the ranks, the hosts, variables that differ between hosts
 *   stacks.txt    the two looks
 *   lines.txt     the last lines of the ranks
 *   flight_recorder/rank_N   the dump of PyTorch's flight recorder of a rank
 *   ras_N.json    what NCCL says on the Nth host
 *   report.json   the report of the whole job, once it has ended
 *
 * The folder is below --evidence. Without this option there is one after a hang and with
 * --dump-on-failure, beside the records of jobs. The output room writes the files, so a slow or
 * full disk does not hold the job up.
 */
#pragma once

#include "driver/job/ask.h"
#include "driver/job/job.h"
#include "driver/tell/evidence_json.h"

#define EVIDENCE_FOLDERS_MAX 8  /* of a job */
#define EVIDENCE_PAUSE_MS 1000  /* between the two looks */
#define EVIDENCE_DUMPS_MS 12000 /* for these files, after the looks */

bool evidence_folder_wants(const struct job *job, enum incident_kind kind);

/* Begins, and calls `done` when the ranks are not needed any more. The call comes from the loop, or
 * at once if nothing is wanted, a collection is under way, or the job has EVIDENCE_FOLDERS_MAX
 * folders. `first` is a look that has just been taken; NULL: this takes one. */
void evidence_folder_collect(struct job *job, const struct incident *incident,
                             const struct ask *first, void (*done)(void *context), void *context);
