/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hosts/hosts.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

void host_traits_clear(struct host_traits *traits)
{
    free(traits->user);
    free(traits->address);
    free(traits->identity);
    free(traits->wdir);
    strv_destroy(&traits->env);
    *traits = (struct host_traits){.port = 0};
}

void host_traits_copy(struct host_traits *to, const struct host_traits *from)
{
    if (to == from)
        return;
    host_traits_clear(to);
    *to = *from;
    to->user = mem_strdup(from->user);
    to->address = mem_strdup(from->address);
    to->identity = mem_strdup(from->identity);
    to->wdir = mem_strdup(from->wdir);
    to->env = (struct strv)STRV_INIT;
    strv_copy(&to->env, from->env.items);
}

bool host_traits_equal(const struct host_traits *one, const struct host_traits *other)
{
    bool same = text_same(one->user, other->user) && text_same(one->address, other->address) &&
                text_same(one->identity, other->identity) && text_same(one->wdir, other->wdir) &&
                one->port == other->port && one->transport == other->transport &&
                one->gpus == other->gpus && one->came == other->came &&
                one->env.count == other->env.count;
    for (size_t i = 0; same && i < one->env.count; i++)
        same = strcmp(one->env.items[i], other->env.items[i]) == 0;
    return same;
}

static void remember_order(struct host_list *list, size_t position)
{
    MEM_ADD_ROOM(list->sequence, list->said, list->sequence_room) = (uint32_t)position;
}

static struct host *add(struct host_list *list, const struct host *host)
{
    MEM_ADD_ROOM(list->items, list->count, list->room) = *host;
    map_put(&list->by_name, map_text(host->name), (void *)list->count);
    remember_order(list, list->count - 1);
    return &list->items[list->count - 1];
}

struct host *hosts_add(struct host_list *list, const char *name, int slots, bool slots_given)
{
    size_t found = (size_t)map_get(&list->by_name, map_text(name));
    if (found == 0)
        return add(list, &(struct host){
                             .name = mem_strdup(name), .slots = slots, .slots_given = slots_given});
    remember_order(list, found - 1);
    struct host *host = &list->items[found - 1];
    host->slots = slots > INT_MAX - host->slots ? INT_MAX : host->slots + slots;
    host->slots_given = host->slots_given || slots_given;
    return host;
}

void hosts_add_copy(struct host_list *to, const struct host *host)
{
    struct host *copy = hosts_add(to, host->name, host->slots, host->slots_given);
    copy->max_slots = host->max_slots;
    host_traits_copy(&copy->traits, &host->traits);
}

void hosts_keep(struct host_list *list, size_t count)
{
    struct host_list all = *list;
    if (count >= all.count)
        return;
    *list = (struct host_list){.count = 0};
    for (size_t i = 0; i < count; i++)
        hosts_add_copy(list, &all.items[i]);
    hosts_destroy(&all);
}

void hosts_leave_out(struct host_list *list, bool (*bad)(void *context, const char *name),
                     void *context)
{
    struct host_list all = *list;
    uint32_t *places AUTO_FREE = mem_array(all.count + 1, sizeof(*places));
    *list = (struct host_list){.count = 0};
    for (size_t i = 0; i < all.count; i++) {
        if (bad(context, all.items[i].name))
            continue;
        hosts_add_copy(list, &all.items[i]);
        places[i] = (uint32_t)list->count;
    }
    list->said = 0;
    for (size_t i = 0; i < all.said; i++) {
        if (places[all.sequence[i]] > 0)
            remember_order(list, places[all.sequence[i]] - 1);
    }
    hosts_destroy(&all);
}

void hosts_copy(struct host_list *to, const struct host_list *from)
{
    for (size_t i = 0; i < from->count; i++)
        hosts_add_copy(to, &from->items[i]);
    to->said = 0;
    for (size_t i = 0; i < from->said; i++)
        remember_order(to, from->sequence[i]);
}

const struct host *hosts_find(const struct host_list *list, const char *name)
{
    size_t found = (size_t)map_get(&list->by_name, map_text(name));
    return found == 0 ? NULL : &list->items[found - 1];
}

int hosts_slots(const struct host_list *list)
{
    int64_t total = 0;
    for (size_t i = 0; i < list->count; i++)
        total += list->items[i].slots;
    return total > INT_MAX ? INT_MAX : (int)total;
}

void hosts_settle_slots(struct host_list *list)
{
    bool one_by_one = false;
    for (size_t i = 0; i < list->count; i++)
        one_by_one = one_by_one || (!list->items[i].slots_given && list->items[i].slots > 1);
    for (size_t i = 0; one_by_one && i < list->count; i++)
        list->items[i].slots_given = true;
}

void hosts_destroy(struct host_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].name);
        host_traits_clear(&list->items[i].traits);
    }
    free(list->items);
    map_clear(&list->by_name, NULL);
    free(list->sequence);
    *list = (struct host_list){0};
}
