/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/recruit.h"

#include "base/mem.h"
#include "model/elastic/newcomers.h"

static bool can_stay(const struct elastic *e, const struct elastic_worker *worker)
{
    const struct elastic_host *host = &e->hosts.items[worker->host];
    return worker->state == ELASTIC_WORKER_RUNNING && elastic_hosts_usable(host) > 0 &&
           elastic_hosts_slot_usable(host, worker->slot);
}

bool elastic_recruit_may(const struct elastic *e)
{
    if (elastic_newcomers_any(e) || e->workers.in_state[ELASTIC_WORKER_DISMISSED] > 0)
        return false;
    for (int r = 0; r < e->plan.size; r++)
        if (!can_stay(e, &e->workers.items[e->plan.members[r].seat]))
            return false;
    return true;
}

void elastic_recruit_make(struct elastic *e, const struct elastic_choice *choice)
{
    struct elastic_survivor *members AUTO_FREE = mem_array((size_t)e->plan.size, sizeof(*members));
    for (int r = 0; r < e->plan.size; r++)
        members[r] = (struct elastic_survivor){e->plan.members[r].seat, e->plan.members[r].host,
                                               e->plan.members[r].slot};
    struct elastic_placement placement;
    elastic_choice_place(e, choice, members, e->plan.size, &placement);
    elastic_newcomers_begin(e, &placement);
    elastic_placement_clear(&placement);
}
