/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/hosts/hosts.h"

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
    to->user = mem_strdup(from->user);
    to->address = mem_strdup(from->address);
    to->identity = mem_strdup(from->identity);
    to->port = from->port;
    to->transport = from->transport;
    to->gpus = from->gpus;
    to->wdir = mem_strdup(from->wdir);
    for (size_t i = 0; i < from->env.count; i++)
        strv_add(&to->env, from->env.items[i]);
}

static bool same_text(const char *one, const char *other)
{
    return one == NULL || other == NULL ? one == other : strcmp(one, other) == 0;
}

bool host_traits_equal(const struct host_traits *one, const struct host_traits *other)
{
    bool same = same_text(one->user, other->user) && same_text(one->address, other->address) &&
                same_text(one->identity, other->identity) && same_text(one->wdir, other->wdir) &&
                one->port == other->port && one->transport == other->transport &&
                one->gpus == other->gpus && one->env.count == other->env.count;
    for (size_t i = 0; same && i < one->env.count; i++)
        same = strcmp(one->env.items[i], other->env.items[i]) == 0;
    return same;
}
