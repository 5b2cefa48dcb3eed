/* SPDX-License-Identifier: Apache-2.0 */
/* How an epoch resumes, how the job ends, and whether that is true. */
#include <string.h>

#include "base/status.h"
#include "sim/world.h"

/* All members of the started epoch have started or have been told their place. */
bool check_all_placed(const struct world *world)
{
    for (int m = 0; m < world->started.size; m++) {
        const struct sim_worker *worker = &world->workers[world->started.uids[m]];
        const bool is_new = world->started.members[m].is_new;
        if (is_new ? !worker->told_started : worker->epoch != world->started.epoch)
            return false;
    }
    return world->started.size > 0;
}

static void check_times(struct world *world, const struct elastic_facts *facts)
{
    const int64_t times[] = {facts->detected_ms, facts->agreed_ms, facts->planned_ms,
                             facts->started_ms, facts->resumed_ms};
    int64_t last = 0;
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        if (times[i] == 0)
            continue;
        if (times[i] < last || times[i] > world->core_last_ms)
            world_problem(world, INV_FACTS,
                          "phase %d of epoch %u was at %lld, the one before at "
                          "%lld, now is %lld",
                          (int)i, facts->epoch, (long long)times[i], (long long)last,
                          (long long)world->core_last_ms);
        last = times[i];
    }
    if (facts->resumed_ms == 0 || facts->started_ms == 0)
        world_problem(world, INV_FACTS, "epoch %u resumed without a time", facts->epoch);
    if (facts->happened_ms > facts->resumed_ms)
        world_problem(world, INV_FACTS, "epoch %u resumed before it was needed", facts->epoch);
}

void check_resumed(struct world *world)
{
    const struct elastic_facts *facts = core_facts(&world->core);
    if (world->resumed || world->started_count == 0)
        world_problem(world, INV_RESUMED, "epoch %u resumes once more", facts->epoch);
    else if (!check_all_placed(world))
        world_problem(world, INV_RESUMED, "epoch %u resumes, but not with all ranks", facts->epoch);
    if (facts->epoch != world->started.epoch || facts->size != world->started.size ||
        facts->host_count != world->started.host_count)
        world_problem(world, INV_FACTS, "resumed with %d workers on %d hosts instead of %d on %d",
                      facts->size, facts->host_count, world->started.size,
                      world->started.host_count);
    check_times(world, facts);
    if (facts->lost_ms < world->lost_ms)
        world_problem(world, INV_FACTS, "the lost time shrinks");
    if ((facts->cause[0] == '\0') != (world->started_count == 1))
        world_problem(world, INV_FACTS, "epoch %u has the cause '%s'", facts->epoch, facts->cause);
}

static void check_success(struct world *world)
{
    if (world->started.size == 0)
        world_problem(world, INV_SUCCESS, "success without a worker");
    for (int m = 0; m < world->started.size; m++) {
        const struct sim_worker *worker = &world->workers[world->started.uids[m]];
        if (!worker->told_exited || worker->code != 0)
            world_problem(world, INV_SUCCESS, "success, but rank %d %s", m,
                          worker->told_exited ? "failed" : "has not exited");
    }
}

static void check_read(struct world *world)
{
    for (int m = 0; m < world->started.size; m++) {
        const struct sim_worker *worker = &world->workers[world->started.uids[m]];
        if (!worker->told_finished)
            world_problem(world, INV_READ, "success, but output of rank %d is missing", m);
    }
}

/* Hosts that could be used for so long that not having used them is a fault. */
static void check_no_hosts(struct world *world)
{
    const struct elastic_config *config = &world->schedule->config;
    if (world->jumped || world->schedule->config.prepare_timeout_ms == 0)
        return;
    if (world->state_before == ELASTIC_WAITING &&
        world->core_last_ms < world->waiting_since_ms + config->elastic_timeout_ms)
        world_problem(world, INV_HASTE, "no hosts after %lld ms of waiting",
                      (long long)(world->core_last_ms - world->waiting_since_ms));
    const int64_t since =
        world->now_ms - config->elastic_timeout_ms - config->reconnect_max_ms - 20000;
    const int need =
        world->started_count == 0 && config->np > config->min_np ? config->np : config->min_np;
    int slots = 0;
    for (int h = 0; h < SCHEDULE_HOSTS; h++) {
        const struct sim_host *host = &world->hosts[h];
        if (host->number < 0 || host->usable_since_ms < 0 || host->usable_since_ms > since)
            continue;
        const struct elastic_host_facts facts = core_host(&world->core, host->number);
        if (facts.blacklisted_until_ms == 0)
            slots += host->told_slots - facts.blacklisted_slots;
    }
    if (slots >= need)
        world_problem(world, INV_HASTE, "no hosts, but there are %d slots", slots);
}

static void check_crash(struct world *world, const struct elastic_verdict *verdict)
{
    /* about nobody when somebody asked to rejoin, and no restart was left for that */
    const bool asked = verdict->end == ELASTIC_END_CRASH && verdict->seat < 0 &&
                       verdict->code == 1 && !verdict->signaled && world->ask_told;
    /* a clock that went back makes ends seem older than our signal */
    if (!world->crash_told && !asked && !world->jumped)
        world_problem(world, INV_VERDICT, "'%s', but nobody crashed",
                      elastic_end_name(verdict->end));
    if (verdict->seat < 0 && !asked)
        world_problem(world, INV_VERDICT, "a crash of nobody");
    const struct elastic_config *config = &world->schedule->config;
    if (verdict->end == ELASTIC_END_FAULT && config->mode == ELASTIC_RESTART &&
        config->max_restarts >= 0)
        world_problem(world, INV_VERDICT, "program fault, but restarts are counted");
    bool found = verdict->seat < 0;
    for (int uid = 0; uid < world->worker_count; uid++) {
        const struct sim_worker *worker = &world->workers[uid];
        const int code = worker->signaled ? -worker->code : worker->code;
        /* one that ended with 0 too early has failed all the same */
        const bool same = worker->code == 0
                              ? verdict->code == 1 && !verdict->signaled
                              : code == verdict->code && worker->signaled == verdict->signaled;
        found |= worker->seat == verdict->seat && worker->told_exited && same &&
                 (verdict->host < 0 || world->hosts[worker->host].number == verdict->host);
    }
    if (!found)
        world_problem(world, INV_VERDICT, "nobody on seat %d has ended with %d", verdict->seat,
                      verdict->code);
}

static void check_limits(struct world *world, const struct elastic_verdict *verdict)
{
    const struct elastic_config *config = &world->schedule->config;
    if (verdict->end == ELASTIC_END_RESET_LIMIT &&
        (config->reset_limit < 0 || world->started_count - 1 < config->reset_limit))
        world_problem(world, INV_VERDICT, "reset limit after %d epochs", world->started_count);
    if (verdict->end == ELASTIC_END_HUNG && (!world->hung_told || verdict->code != STATUS_HANG))
        world_problem(world, INV_VERDICT, "hung with code %d, but nobody said so", verdict->code);
    if (verdict->end == ELASTIC_END_HOST_LOST && !world->loss_told && !world->drain_told)
        world_problem(world, INV_VERDICT, "host lost, but none was");
    if (verdict->end == ELASTIC_END_PREPARE && !world->prepare_failure_told &&
        !world->prepare_expired && !world->prepare.active)
        world_problem(world, INV_VERDICT, "prepare, but nothing was to be prepared");
}

void check_verdict(struct world *world)
{
    const struct elastic_verdict *verdict = core_verdict(&world->core);
    const bool success = verdict->end == ELASTIC_END_SUCCESS;
    if (world->verdict)
        world_problem(world, INV_VERDICT, "a second verdict");
    if (success != (verdict->text[0] == '\0') || strchr(verdict->text, '\n') != NULL)
        world_problem(world, INV_VERDICT, "'%s' with the text '%s'", elastic_end_name(verdict->end),
                      verdict->text);
    switch (verdict->end) {
    case ELASTIC_END_NONE: world_problem(world, INV_VERDICT, "a verdict without an end"); break;
    case ELASTIC_END_SUCCESS: check_success(world); break;
    case ELASTIC_END_CRASH:
    case ELASTIC_END_FAULT: check_crash(world, verdict); break;
    case ELASTIC_END_NO_HOSTS: check_no_hosts(world); break;
    case ELASTIC_END_DISCOVERY:
        if (!world->discovery_failed_first)
            world_problem(world, INV_VERDICT, "discovery, but it has not failed at first");
        break;
    case ELASTIC_END_DRIVER:
        if (!world->end_told)
            world_problem(world, INV_VERDICT, "driver, but it has not said so");
        break;
    default: check_limits(world, verdict); break;
    }
}

void check_end(struct world *world)
{
    const struct elastic_verdict *verdict = core_verdict(&world->core);
    if (verdict->end == ELASTIC_END_NONE)
        world_problem(world, INV_VERDICT, "the job is over without a verdict");
    if (verdict->end == ELASTIC_END_SUCCESS)
        check_read(world);
    for (int r = 0; r < world->request_count; r++) {
        const struct sim_request *request = &world->requests[r];
        if (request->uid >= 0 && !request->answered && request->told && !request->dropped &&
            !world->workers[request->uid].gone)
            world_problem(world, INV_ANSWER_NEVER, "request %d was never answered", r + 1);
    }
    for (int uid = 0; uid < world->worker_count; uid++) {
        if (world->workers[uid].alive)
            world_problem(world, INV_REAPED, "worker %d lives on", uid);
    }
}
