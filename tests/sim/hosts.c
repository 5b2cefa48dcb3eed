/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts of the simulated world: their power, agents and links, and the discovery that lists them.
 */
#include <stdio.h>
#include <string.h>

#include "sim/world.h"

void hosts_reset(struct world *world)
{
    for (int h = 0; h < SCHEDULE_HOSTS; h++) {
        struct sim_host *host = &world->hosts[h];
        snprintf(host->name, sizeof(host->name), "h%d", h);
        host->number = -1;
        host->rng = rng_stream(world->schedule->seed, 100 + (uint64_t)h);
        host->powered = true;
        host->boot = host->told_boot = 1;
        host->told_away_ms = host->usable_since_ms = host->told_deadline_ms = -1;
    }
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t link_delay(struct sim_host *host)
{
    return rng_chance(&host->rng, 90) ? rng_between(&host->rng, 0, 20)
                                      : rng_between(&host->rng, 20, 400);
}

void host_send(struct world *world, int h, int64_t delay_ms, const struct elastic_event *event)
{
    struct sim_host *host = &world->hosts[h];
    if (host->link == 0 || !host->agent)
        return;
    int64_t at_ms = world->now_ms + delay_ms + link_delay(host);
    at_ms = later(later(at_ms, host->from_ms), later(host->stuck_until_ms, host->silent_until_ms));
    host->from_ms = at_ms;
    world_add(
        world,
        &(struct task){
            .at_ms = at_ms, .kind = TASK_TELL, .host = h, .link = host->link, .event = *event});
}

void host_receive(struct world *world, int h, struct task task)
{
    struct sim_host *host = &world->hosts[h];
    int64_t at_ms = world->now_ms + link_delay(host);
    at_ms = later(later(at_ms, host->to_ms), later(host->stuck_until_ms, host->silent_until_ms));
    host->to_ms = at_ms;
    task.at_ms = at_ms;
    task.host = h;
    task.link = host->link;
    world_add(world, &task);
}

static void close_link(struct sim_host *host)
{
    host->link = 0;
    host->up = host->calling = host->agent = false;
}

/* The machine or its agent is gone, and its workers with it; nobody says so yet. */
static void die(struct world *world, int h)
{
    struct sim_host *host = &world->hosts[h];
    host->agent = false;
    host->slow = true;
    for (int uid = 0; uid < world->worker_count; uid++) {
        if (world->workers[uid].host == h && world->workers[uid].alive)
            worker_end(world, uid, -9);
    }
}

void host_close(struct world *world, int h)
{
    struct sim_host *host = &world->hosts[h];
    die(world, h);
    for (int seat = 0; seat < WORLD_SEATS; seat++) {
        struct sim_worker *worker = world_worker(world, seat);
        if (worker != NULL && worker->host == h) {
            worker->gone = true;
            world->seats[seat] = 0;
        }
    }
    world->prepare.waiting &= ~(1u << h);
    close_link(host);
}

void host_called(struct world *world, int h)
{
    struct sim_host *host = &world->hosts[h];
    host->calling = true;
    host->link = ++world->last_link;
    const bool reachable = host->powered && world->now_ms >= host->silent_until_ms;
    const int64_t takes_ms =
        reachable ? rng_between(&host->rng, 20, 1500) : rng_between(&host->rng, 100, 8000);
    world_add(world, &(struct task){.at_ms = world->now_ms + takes_ms,
                                    .kind = TASK_CALLED,
                                    .host = h,
                                    .link = host->link});
}

static const char *boot_text(int boot)
{
    static const char *const ids[] = {"boot-0", "boot-1", "boot-2", "boot-3",
                                      "boot-4", "boot-5", "boot-6", "boot-7"};
    return ids[boot & 7];
}

static void called(struct world *world, int h)
{
    struct sim_host *host = &world->hosts[h];
    const bool unlucky = !world->benign && rng_chance(&host->rng, 3);
    host->calling = false;
    if (host->powered && world->now_ms >= host->silent_until_ms && !unlucky) {
        host->up = host->agent = true;
        host->slow = world->now_ms < host->stuck_until_ms;
        host->from_ms = host->to_ms = world->now_ms;
        world_tell(world, &(struct elastic_event){.kind = ELASTIC_HOST_CAME,
                                                  .host = host->number,
                                                  .text = boot_text(host->boot)});
    } else {
        host->link = 0;
        world_tell(world, &(struct elastic_event){.kind = ELASTIC_HOST_UNREACHED,
                                                  .host = host->number,
                                                  .text = "no route to host"});
    }
}

static void lost(struct world *world, int h, const char *why, int64_t since_ms)
{
    world_tell(world, &(struct elastic_event){.kind = ELASTIC_HOST_LOST,
                                              .host = world->hosts[h].number,
                                              .text = why,
                                              .since_ms = since_ms});
}

/* Its last words are still on the link, or are lost with it. */
static void broken_link(struct world *world, int h)
{
    struct sim_host *host = &world->hosts[h];
    if (!host->up)
        return;
    const int64_t now_ms = core_now(world);
    const struct elastic_event event = {.kind = ELASTIC_HOST_LOST,
                                        .host = host->number,
                                        .text = "connection closed",
                                        .since_ms = now_ms};
    const bool ordered = rng_chance(&host->rng, 50);
    if (ordered)
        host_send(world, h, 0, &event);
    die(world, h);
    if (!ordered)
        lost(world, h, "connection reset", now_ms);
}

static void silence(struct world *world, int h, int64_t from_ms)
{
    struct sim_host *host = &world->hosts[h];
    host->silent_since_ms = from_ms;
    host->slow = true;
    if (host->link != 0 && host->up)
        world_add(world, &(struct task){.at_ms = from_ms + WORLD_NODE_TIMEOUT_MS,
                                        .kind = TASK_SILENCE,
                                        .host = h,
                                        .link = host->link,
                                        .value = core_now(world)});
}

static void power_off(struct world *world, int h, bool silently)
{
    struct sim_host *host = &world->hosts[h];
    if (!host->powered)
        return;
    host->powered = false;
    if (silently) {
        die(world, h);
        silence(world, h, world->now_ms);
    } else {
        broken_link(world, h);
    }
}

static void drain(struct world *world, int h, int64_t within_ms)
{
    const struct sim_host *host = &world->hosts[h];
    if (host->number < 0)
        return;
    if (within_ms >= 0)
        world_add(world, &(struct task){
                             .at_ms = world->now_ms + within_ms, .kind = TASK_VANISH, .host = h});
    world_tell(world, &(struct elastic_event){
                          .kind = ELASTIC_HOST_DRAIN,
                          .host = host->number,
                          .text = "preempted",
                          .deadline_ms = within_ms < 0 ? -1 : core_now(world) + within_ms});
}

static void list_host(struct world *world, int h, bool listed, int slots)
{
    world->hosts[h].listed = listed;
    world->hosts[h].slots = slots;
    if (world->discovery_told)
        hosts_discover(world, false);
}

static void discovery_fails(struct world *world)
{
    const bool first = !world->discovery_told;
    if (first)
        world->discovery_failed_first = true;
    world_tell(world, &(struct elastic_event){.kind = ELASTIC_DISCOVERY_FAILED,
                                              .first = first,
                                              .text = "the script exited with 1"});
}

/* The agent says so at the end of an epoch. */
static void unkilled(struct world *world, int h)
{
    const struct sim_host *host = &world->hosts[h];
    bool lives = false;
    for (int seat = 0; seat < WORLD_SEATS; seat++) {
        const struct sim_worker *worker = world_worker(world, seat);
        lives |= worker_is_live(worker) && worker->host == h;
    }
    if (host->up && !lives)
        world_tell(world, &(struct elastic_event){.kind = ELASTIC_UNKILLED,
                                                  .host = host->number,
                                                  .text = "not even SIGKILL ends cat"});
}

void hosts_fault(struct world *world, const struct fault *fault)
{
    const int h = fault->host % SCHEDULE_HOSTS;
    struct sim_host *host = &world->hosts[h];
    switch (fault->kind) {
    case FAULT_LIST_HOST: list_host(world, h, true, (int)fault->value); break;
    case FAULT_UNLIST: list_host(world, h, false, 0); break;
    case FAULT_RELIST:
        if (world->discovery_told)
            hosts_discover(world, true);
        break;
    case FAULT_DISCOVERY: discovery_fails(world); break;
    case FAULT_POWER_OFF: power_off(world, h, fault->value != 0); break;
    case FAULT_POWER_ON:
        if (!host->powered && fault->value != 0)
            host->boot++;
        host->powered = true;
        break;
    case FAULT_AGENT_DIES: broken_link(world, h); break;
    case FAULT_STUCK:
        host->stuck_until_ms = world->now_ms + fault->value;
        host->slow = true;
        break;
    case FAULT_SILENT:
        host->silent_until_ms = world->now_ms + fault->value;
        silence(world, h, world->now_ms);
        break;
    case FAULT_DRAIN: drain(world, h, fault->value); break;
    case FAULT_UNDRAIN:
        if (host->number >= 0)
            world_tell(world,
                       &(struct elastic_event){.kind = ELASTIC_HOST_UNDRAIN, .host = host->number});
        break;
    case FAULT_UNKILLED: unkilled(world, h); break;
    case FAULT_PREPARE_FAILS: host->prepare_failures = (int)fault->value; break;
    case FAULT_TRAP:
        if (host->trap_count < 4)
            host->traps[host->trap_count++] = (int)fault->value;
        break;
    default: break;
    }
}

void hosts_task(struct world *world, const struct task *task)
{
    struct sim_host *host = &world->hosts[task->host];
    if (task->kind == TASK_CALLED) {
        called(world, task->host);
    } else if (task->kind == TASK_VANISH) {
        if (rng_chance(&host->rng, 80))
            power_off(world, task->host, rng_chance(&host->rng, 50));
    } else if (world->now_ms < host->silent_until_ms || !host->agent) {
        /* the agent there has ended its workers: it has not heard from us either */
        lost(world, task->host, "no heartbeat", task->value);
    }
}

void hosts_benign(struct world *world)
{
    for (int h = 0; h < SCHEDULE_HOSTS; h++) {
        struct sim_host *host = &world->hosts[h];
        host->trap_count = host->prepare_failures = 0;
        if (!host->powered && rng_chance(&host->rng, 50)) {
            host->powered = true;
            host->boot++;
        }
    }
}

void hosts_discover(struct world *world, bool shuffled)
{
    struct host_list list = {0};
    const int from = shuffled ? rng_below(&world->rng, SCHEDULE_HOSTS) : 0;
    for (int i = 0; i < SCHEDULE_HOSTS; i++) {
        const struct sim_host *host = &world->hosts[(i + from) % SCHEDULE_HOSTS];
        if (host->listed)
            hosts_add(&list, host->name, host->slots, true);
    }
    world_tell(world, &(struct elastic_event){.kind = ELASTIC_HOSTS, .hosts = &list});
    hosts_destroy(&list);
}

void hosts_watch(struct world *world)
{
    for (int h = 0; h < SCHEDULE_HOSTS; h++) {
        struct sim_host *host = &world->hosts[h];
        const bool usable = host->told_listed && host->powered && !host->told_draining &&
                            world->now_ms >= host->silent_until_ms &&
                            world->now_ms >= host->stuck_until_ms && !host->slow;
        if (!usable)
            host->usable_since_ms = -1;
        else if (host->usable_since_ms < 0 || host->usable_slots != host->told_slots)
            host->usable_since_ms = world->now_ms;
        host->usable_slots = host->told_slots;
    }
}
