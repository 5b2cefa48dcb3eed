/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of worker need, and nobody else. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/worker.h"
#include "io/loop.h"

struct worker_end *worker_end_create(struct loop *loop, bool paused); /* of a planned worker */
void worker_end_destroy(struct worker_end *end); /* leaves alone what still runs */

/* May be called again: the later signal and grace (ms; 0: KILL at once) hold. A worker that has not
 * started gets the signal from worker_end_started(). */
void worker_end_begin(struct worker_end *end, int signal, int64_t grace_ms);
void worker_end_exited(struct worker_end *end); /* it has been waited for */
void worker_end_failed(struct worker_end *end); /* it never started, and will not */
