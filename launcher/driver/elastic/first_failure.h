/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first failure of each epoch: --dump-on-failure and --evidence take a last look at the workers
 * then. An agent looks at its workers before it takes the next order, which may be to end them.
 */
#pragma once

#include "driver/job/job.h"

struct first_failure {
    uint32_t epoch; /* the last one in which something had failed; 0: none */
};

/* `rank` is -1 if a host was lost. Takes `text` over: what has failed. */
void first_failure_take(struct first_failure *failure, struct job *job, int rank, char *text);
