/* SPDX-License-Identifier: Apache-2.0 */
/* Makes jansson end the process when there is no memory, like all other allocations
 * (base/mem.h). So a report or a stream of events is complete, or the job says why it is not.
 * Call it before any use of jansson. */
#pragma once

void json_memory_init(void);
