/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/json_text.h"

#include <jansson.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/mem.h"

json_t *json_text(const char *text)
{
    json_t *value = json_string(text);
    return value != NULL ? value : json_string("(not UTF-8)");
}

json_t *json_wall_time(const struct job *job, int64_t mono_ns)
{
    if (mono_ns == 0)
        return json_null();
    int64_t wall = job->times.wall_begun_ns + (mono_ns - job->request->begun_ns);
    return json_real((double)(wall / 1000) / 1e6);
}

void json_add_world(json_t *object, const struct rank_record *record)
{
    if (record->world == 0)
        return;
    json_object_set_new(object, "world", json_integer(record->world));
    json_object_set_new(object, "world_rank", json_integer(record->world_rank));
}

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
