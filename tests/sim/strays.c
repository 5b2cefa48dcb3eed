/* SPDX-License-Identifier: Apache-2.0 */
/* What reaches the core although it does not fit: late, of nobody, of another epoch. */
#include "sim/world.h"

/* A program that is not of the job asks at the rendezvous of a host: it must not be taken for a
 * worker that could have asked. */
static void stray_ask(struct world *world, int h, int local_rank)
{
    const struct sim_host *host = &world->hosts[h];
    if (!host->up || world->request_count == WORLD_REQUESTS)
        return;
    for (int uid = 0; uid < world->worker_count; uid++) {
        const struct sim_worker *worker = &world->workers[uid];
        if (worker->host == h && !worker->gone && !worker->told_finished &&
            worker->local_rank == local_rank)
            return;
    }
    for (int m = 0; world->prepare.active && m < world->planned.size; m++) {
        const struct elastic_member *member = &world->planned.members[m];
        if (world->by_number[member->host] == h && member->local_rank == local_rank)
            return;
    }
    world->requests[world->request_count] = (struct sim_request){.uid = -1, .host = h};
    const uint64_t request = (uint64_t)++world->request_count;
    world_tell(world, &(struct elastic_event){.kind = ELASTIC_ASKED,
                                              .host = host->number,
                                              .local_rank = local_rank,
                                              .request = request});
    if (world->requests[request - 1].answered)
        return;
    world_add(world, &(struct task){.at_ms = world->now_ms + 600000,
                                    .kind = TASK_TELL,
                                    .event = {.kind = ELASTIC_ASK_DROPPED, .request = request}});
}

/* An event that fits nothing, by its number. */
static struct elastic_event pick(const struct world *world, int64_t value)
{
    const int nobody = WORLD_SEATS - 1;
    const int unknown = world->number_count + 3;
    switch (value % 14) {
    case 0: return (struct elastic_event){.kind = ELASTIC_EXITED, .seat = nobody, .code = 1};
    case 1: return (struct elastic_event){.kind = ELASTIC_STARTED, .seat = nobody};
    case 2: return (struct elastic_event){.kind = ELASTIC_FINISHED, .seat = -1};
    case 3: return (struct elastic_event){.kind = ELASTIC_EXITED, .seat = -7};
    case 4: return (struct elastic_event){.kind = ELASTIC_PREPARED, .epoch = 0};
    case 5: return (struct elastic_event){.kind = ELASTIC_PREPARED, .epoch = 4000000};
    case 6:
        return (struct elastic_event){
            .kind = ELASTIC_PREPARE_FAILED, .epoch = 4000000, .host = 0, .text = "late"};
    case 7: return (struct elastic_event){.kind = ELASTIC_ASK_DROPPED, .request = 999999};
    case 8:
        return (struct elastic_event){.kind = ELASTIC_REGISTERED, .host = unknown, .local_rank = 0};
    case 9:
        return (struct elastic_event){
            .kind = ELASTIC_HOST_LOST, .host = unknown, .text = "late", .since_ms = 1};
    case 10:
        return (struct elastic_event){.kind = ELASTIC_HOST_CAME, .host = unknown, .text = "boot-9"};
    case 11:
        return (struct elastic_event){.kind = ELASTIC_HOST_UNREACHED, .host = -1, .text = "late"};
    case 12:
        return (struct elastic_event){
            .kind = ELASTIC_HOST_DRAIN, .host = unknown, .text = "", .deadline_ms = -1};
    default: return (struct elastic_event){.kind = ELASTIC_HOST_UNDRAIN, .host = unknown};
    }
}

/* Late news of a host that the core has let go, lost, or never called. */
static bool pick_late(const struct world *world, int h, int64_t value, struct elastic_event *out)
{
    const struct sim_host *host = &world->hosts[h];
    if (host->number < 0)
        return false;
    *out = (struct elastic_event){.host = host->number, .text = "boot-1"};
    if (!host->calling && !host->up)
        out->kind = value % 3 == 0   ? ELASTIC_HOST_LOST
                    : value % 3 == 1 ? ELASTIC_HOST_UNREACHED
                                     : ELASTIC_HOST_CAME;
    else if (host->up)
        out->kind = ELASTIC_HOST_UNREACHED;
    else
        return false;
    return true;
}

void stray_fault(struct world *world, const struct fault *fault)
{
    const int h = fault->host % SCHEDULE_HOSTS;
    if (fault->kind == FAULT_STRAY_ASK) {
        stray_ask(world, h, (int)fault->value);
        return;
    }
    /* what is due comes first, so that it is not taken for an effect of the stray */
    const int64_t deadline = core_deadline(&world->core);
    if (deadline != -1 && deadline <= core_now(world))
        world_tell(world, &(struct elastic_event){.kind = ELASTIC_TICK});
    if (world->broken != INV_NONE || world->over)
        return;
    struct elastic_event event;
    if (fault->value % 2 == 0 || !pick_late(world, h, fault->value / 2, &event))
        event = pick(world, fault->value / 2);
    const enum elastic_state state = core_state(&world->core);
    core_event(&world->core, &event, core_now(world));
    if (core_now(world) > world->core_last_ms)
        world->core_last_ms = core_now(world);
    for (size_t i = 0; i < world->core.actions.count; i++)
        world_problem(world, INV_REPEAT, "'%s' of nobody gave '%s'", elastic_event_name(event.kind),
                      elastic_action_name(world->core.actions.items[i].kind));
    if (core_state(&world->core) != state)
        world_problem(world, INV_REPEAT, "'%s' of nobody changed the state",
                      elastic_event_name(event.kind));
}
