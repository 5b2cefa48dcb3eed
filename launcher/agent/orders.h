/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes the driver's frames about workers to the crews. A frame about one worker or one start goes
 * to the crew of the header's epoch, and is dropped as stale when there is none. Signals, window
 * sizes and questions are for all crews, whatever their epoch.
 */
#pragma once

#include "agent/crews.h"

/* `post` is the agent's, for answers. Ignores types that are not orders, and bodies that it cannot
 * read. */
void orders_frame(struct crews *crews, const struct post *post, const struct frame_header *header,
                  const uint8_t *body);
