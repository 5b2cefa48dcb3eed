/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about the topic "pulse": what the workers of this node have used so far, so that the
 * driver sees whether they work. */
#pragma once

#include "agent/ask.h"
#include "agent/closer_look.h"
#include "agent/crews.h"

/* Where it comes from. `lines` (may be NULL) say how far each worker has come. `look` (may be NULL)
 * adds what it knows. `held`: nobody reads the output of the workers. */
struct pulse_sources {
    const struct crews *crews;
    const struct worker_lines *lines;
    struct closer_look *look;
    bool held;
};

void pulse_ask(const struct pulse_sources *sources, const struct asked *asked); /* at once */
