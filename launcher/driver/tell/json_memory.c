/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/json_memory.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/mem.h"

void json_memory_init(void)
{
    json_set_alloc_funcs(mem_alloc, free);
}
