/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's frames about workers that run or are to run, on their way to the crews. What belongs
 * to one worker or one start goes to the crew of the header's epoch, and is dropped as stale when
 * there is none; signals, window sizes and questions are for all crews, whatever their epoch.
 */
#pragma once

#include "agent/crews.h"

/* `post` is the agent's, for answers. A type that is no order, and what cannot be read, is ignored.
 */
void orders_frame(struct crews *crews, const struct post *post, const struct frame_header *header,
                  const uint8_t *body);
