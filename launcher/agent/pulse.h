/* SPDX-License-Identifier: Apache-2.0 */
/* PULSE: what the workers of this node have used so far, so that the driver sees whether they work.
 */
#pragma once

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

/* One frame. */
void pulse_report(const struct pulse_sources *sources, const struct post *post);
