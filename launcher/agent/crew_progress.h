/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the workers of one crew can say how far they are: by a file, or at the status endpoint of
 * the node. A crew without a runtime folder has neither.
 */
#pragma once

#include "agent/crew_config.h"

struct crew_progress;

/* `folder` is the runtime folder. The seats are copied. */
struct crew_progress *crew_progress_create(const struct crew_config *config, const char *folder,
                                           const uint32_t *seats, size_t count);
void crew_progress_destroy(struct crew_progress *progress); /* accepts NULL */

/* What the environment of a worker needs, the caller's; NULL: there is none. */
struct crew_progress_places {
    char *file;        /* HVDRUN_PROGRESS_FILE */
    char *url;         /* of the status endpoint; NULL when there is no token */
    const char *token; /* path of its file; borrowed */
};
struct crew_progress_places crew_progress_places(const struct crew_progress *progress,
                                                 uint32_t seat); /* accepts NULL */

void crew_progress_ended(struct crew_progress *progress, uint32_t seat); /* accepts NULL */
