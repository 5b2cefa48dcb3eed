/* SPDX-License-Identifier: Apache-2.0 */
/* Why the link to an agent has ended, as text for the user. Pure. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "wire/control.pb-c.h"

/* By the wait status of its process, from waitpid(2). Appends nothing after an exit with 0.
 */
void node_end_of_exit(int wait_status, struct buf *out);

/* By the agent's last frame. `stall_ms`: how long the driver stood still just before; 0: it did
 * not.
 */
void node_end_of_farewell(const Hvdrun__Farewell *message, int64_t stall_ms, struct buf *out);
