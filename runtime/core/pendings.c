/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pendings.h"

#include <stdlib.h>

#include "base/mem.h"

void pendings_init(struct pendings *pendings, size_t capacity)
{
    *pendings = (struct pendings){.by_id = mem_array(capacity, sizeof(struct pending *)),
                                  .capacity = capacity};
}

static void free_list(struct pending *pending)
{
    while (pending != NULL) {
        struct pending *next = pending->next;
        request_destroy(&pending->request);
        free(pending);
        pending = next;
    }
}

void pendings_destroy(struct pendings *pendings)
{
    free_list(pendings_take_all(pendings));
    free_list(pendings->spare);
    free(pendings->by_id);
    *pendings = (struct pendings){0};
}

struct pending *pendings_find(const struct pendings *pendings, size_t id, const char *key)
{
    struct pending *pending = id == NO_ID ? NULL : pendings->by_id[id];
    return pending != NULL ? pending : map_get(&pendings->by_key, map_text(key));
}

struct pending *pendings_add(struct pendings *pendings, size_t id, const struct request *request,
                             void *token)
{
    struct pending *pending = pendings->spare;
    if (pending != NULL)
        pendings->spare = pending->next;
    else
        pending = mem_alloc(sizeof *pending);
    *pending = (struct pending){.request = *request, .token = token, .id = id};
    if (id == NO_ID)
        map_put(&pendings->by_key, map_text(pending->request.key), pending);
    else
        pendings->by_id[id] = pending;
    pendings->count++;
    return pending;
}

void pendings_lose_number(struct pendings *pendings, struct pending *pending)
{
    pendings->by_id[pending->id] = NULL;
    pending->id = NO_ID;
    map_put(&pendings->by_key, map_text(pending->request.key), pending);
}

void pendings_remove(struct pendings *pendings, struct pending *pending)
{
    if (pending->id == NO_ID)
        map_remove(&pendings->by_key, map_text(pending->request.key));
    else
        pendings->by_id[pending->id] = NULL;
    pendings->count--;
}

void pendings_recycle(struct pendings *pendings, struct pending *pending)
{
    pending->request = (struct request){0};
    pending->next = pendings->spare;
    pendings->spare = pending;
}

static void push(struct pending **list, struct pending *pending)
{
    pending->next = *list;
    *list = pending;
}

struct pending *pendings_take_all(struct pendings *pendings)
{
    struct pending *list = NULL;
    size_t at = 0;
    for (struct pending *next = map_next(&pendings->by_key, &at); next != NULL;
         next = map_next(&pendings->by_key, &at))
        push(&list, next);
    for (size_t id = 0; id < pendings->capacity; id++) {
        if (pendings->by_id[id] != NULL)
            push(&list, pendings->by_id[id]);
        pendings->by_id[id] = NULL;
    }
    map_clear(&pendings->by_key, NULL);
    pendings->count = 0;
    return list;
}
