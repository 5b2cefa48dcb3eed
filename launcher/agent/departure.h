/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The departure of this node from the job. The agent gets SIGTERM, the preemption probe finds a
 * notice, or the driver has decided it. The agent reports the first two to the driver (TERMINATE),
 * which decides what follows. A known deadline reaches the workers at once, in a file.
 */
#pragma once

#include "agent/crews.h"
#include "io/helpers.h"
#include "wire/control.pb-c.h"

struct departure;

/* All are borrowed; `post` is the agent's. */
struct departure *departure_create(struct loop *loop, struct helpers *helpers,
                                   const struct post *post, const struct crews *crews);
void departure_destroy(struct departure *departure);

void departure_welcome(struct departure *departure, const Hvdrun__Welcome *welcome); /* the probe */
/* `grace_ms`: until this host goes; 0: not known. */
void departure_sigterm(struct departure *departure, int64_t grace_ms);
/* The end of an epoch kills all processes below us. So no probe runs then, nor for one period after
 * it. */
void departure_pause(struct departure *departure);
void departure_resume(struct departure *departure);
void departure_deadline(struct departure *departure, const Hvdrun__Deadline *message);

/* Informs a new crew. */
void departure_inform(struct departure *departure, const struct crew *crew);
