/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/start/start.h"

#include "base/mem.h"

struct machine machine_of(const Hvdrun__AgentHello *hello)
{
    if (hello == NULL)
        return (struct machine){.boot_id = "", .hostname = ""};
    return (struct machine){.boot_id = hello->boot_id,
                            .hostname = hello->hostname,
                            .interfaces = hello->interfaces,
                            .interface_count = hello->n_interfaces,
                            .cpus_allowed = hello->cpus_allowed,
                            .cpus_online = hello->cpus_online};
}

static struct machine *machines_of(const struct prepare_epoch *epoch)
{
    int count = epoch->plan->node_count;
    struct machine *machines = mem_array((size_t)count, sizeof(*machines));
    for (int i = 0; i < count; i++)
        machines[i] = machine_of(epoch->places[i]->hello);
    return machines;
}

int *machines_count_ranks(const struct job *job, const struct prepare_epoch *epoch)
{
    size_t count = (size_t)epoch->plan->node_count;
    struct machine *machines AUTO_FREE = machines_of(epoch);
    int *ranks AUTO_FREE = mem_array(count, sizeof(*ranks));
    int *totals = mem_array(count, sizeof(*totals));
    for (size_t i = 0; i < count; i++)
        ranks[i] = epoch->plan->nodes[i].local_size;
    for (int seat = 0; epoch->world != NULL && seat < job->plan->size; seat++)
        ranks[job->plan->ranks[seat].node] += job->ranks.records[seat].state < RANK_EXITED;
    machine_count_ranks(machines, ranks, (int)count, totals);
    return totals;
}

/* All names that are the machine of this place, but its own. */
static void warn_of(const struct job *job, const struct prepare_epoch *epoch, const int *first,
                    int place)
{
    const char *name = NULL;
    int others = 0;
    for (int i = place + 1; i < epoch->plan->node_count; i++) {
        struct node_link *node = epoch->places[i];
        if (first[i] != place || node->twin_told)
            continue;
        node->twin_told = true;
        others += name != NULL;
        name = name == NULL ? node->host : name;
    }
    if (name == NULL)
        return;
    char *who AUTO_FREE =
        others == 0 ? mem_printf("%s is", name)
                    : mem_printf("%s and %d other host%s are", name, others, others > 1 ? "s" : "");
    log_warning(&job->log,
                "%s the same machine as %s: the job uses its CPUs and GPUs more than once; %s", who,
                epoch->places[place]->host,
                job->settings->transport == SET_TRANSPORT_DIAL
                    ? "start one agent there (or one copy of the line), with all its ranks"
                    : "name it once");
}

void machines_warn(const struct job *job, const struct prepare_epoch *epoch)
{
    int count = epoch->plan->node_count;
    if (job->settings->transport == SET_TRANSPORT_LOCAL)
        return;
    struct machine *machines AUTO_FREE = machines_of(epoch);
    int *first AUTO_FREE = mem_array((size_t)count, sizeof(*first));
    bool *has_twin AUTO_FREE = mem_array((size_t)count, sizeof(*has_twin));
    machine_find_first(machines, count, first);
    for (int i = 0; i < count; i++)
        has_twin[first[i]] = has_twin[first[i]] || first[i] != i;
    for (int i = 0; i < count; i++) {
        if (has_twin[i])
            warn_of(job, epoch, first, i);
    }
}
