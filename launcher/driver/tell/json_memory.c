/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/json_memory.h"

#include <jansson.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/mem.h"

/* jansson writes all of it. */
static void *allocate(size_t size)
{
    return mem_resize(NULL, size);
}

void json_memory_init(void)
{
    size_t seed = 0;
    json_set_alloc_funcs(allocate, free);
    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == (ssize_t)sizeof(seed) && seed != 0)
        json_object_seed(seed); /* jansson would open /dev/urandom for it */
}
