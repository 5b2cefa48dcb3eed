/* SPDX-License-Identifier: Apache-2.0 */
/* What jansson allocates ends the process when there is no memory, as all else (base/mem.h): a
 * report or a stream of events is whole, or the job says why not. To be called before any of it. */
#pragma once

void json_memory_init(void);
