/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of crew_progress need, and nobody else. */
#pragma once

#include "agent/crew_progress.h"
#include "agent/progress_desk.h"

struct progress_files;

/* `seats` (copied) are those of the crew. What the files say goes to the desk. */
struct progress_files *progress_files_create(struct loop *loop, struct progress_desk *desk,
                                             const char *folder, uint32_t epoch,
                                             const uint32_t *seats, size_t count);
void progress_files_destroy(struct progress_files *files); /* accepts NULL */

/* The worker has ended: what it wrote last is taken now. */
void progress_files_ended(struct progress_files *files, uint32_t seat);
