/* SPDX-License-Identifier: Apache-2.0 */
/* Results of a check as tests want them: hosts that are well, of which each test spoils some. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "features/check/check.h"
#include "features/check/check_steps_driver.h"

#define FIXTURE_HOSTS 16
#define GIB ((uint64_t)1 << 30)

struct check_world {
    struct check_result result;
    Hvdrun__AgentHello hellos[FIXTURE_HOSTS];
    char names[FIXTURE_HOSTS][16], addresses[FIXTURE_HOSTS][32], lines[FIXTURE_HOSTS][64];
    char boots[FIXTURE_HOSTS][40];
    char *line_lists[FIXTURE_HOSTS][2];
};

/* As if it had come from an agent: owned by the message. */
static inline Hvdrun__CheckFolder *world_folder(const char *what, const char *path, uint64_t total)
{
    Hvdrun__CheckFolder *folder = malloc(sizeof(*folder));
    hvdrun__check_folder__init(folder);
    folder->what = mem_strdup(what);
    folder->path = mem_strdup(path);
    folder->total_bytes = total;
    folder->free_bytes = total / 2;
    return folder;
}

static inline Hvdrun__CheckLimit *world_limit(const char *name, uint32_t resource, uint64_t hard)
{
    Hvdrun__CheckLimit *limit = malloc(sizeof(*limit));
    hvdrun__check_limit__init(limit);
    limit->name = mem_strdup(name);
    limit->resource = resource;
    limit->hard = hard;
    return limit;
}

static inline Hvdrun__Facts *world_facts(void)
{
    Hvdrun__Facts *facts = malloc(sizeof(*facts));
    hvdrun__facts__init(facts);
    facts->kernel = mem_strdup("6.1.0");
    facts->system = mem_strdup("Some Linux 7");
    facts->pmix = mem_strdup("OpenPMIx 4.2.2 (PMIx Standard: 4.2)");
    facts->hwloc = mem_strdup("2.9");
    facts->n_folders = 2;
    facts->folders = malloc(2 * sizeof(*facts->folders));
    facts->folders[0] = world_folder("tmp", "/tmp", 100 * GIB);
    facts->folders[1] = world_folder("shm", "/dev/shm", 8 * GIB);
    facts->n_limits = 3;
    facts->limits = malloc(3 * sizeof(*facts->limits));
    facts->limits[0] = world_limit("nofile", RLIMIT_NOFILE, 1048576);
    facts->limits[1] = world_limit("nproc", RLIMIT_NPROC, UINT64_MAX);
    facts->limits[2] = world_limit("memlock", RLIMIT_MEMLOCK, UINT64_MAX);
    return facts;
}

static inline void world_host(struct check_world *world, int i)
{
    struct check_host *host = &world->result.hosts[i];
    Hvdrun__AgentHello *hello = &world->hellos[i];
    snprintf(world->names[i], sizeof(world->names[i]), "c%d", i);
    snprintf(world->addresses[i], sizeof(world->addresses[i]), "10.0.0.%d", i + 1);
    snprintf(world->lines[i], sizeof(world->lines[i]), "eth0 10.0.0.%d/24", i + 1);
    snprintf(world->boots[i], sizeof(world->boots[i]), "boot-%d", i);
    world->line_lists[i][0] = world->lines[i];
    hvdrun__agent_hello__init(hello);
    hello->version = (char *)"9.9.9";
    hello->hostname = world->names[i];
    hello->boot_id = world->boots[i];
    hello->machine = (char *)"x86_64";
    hello->cpus_allowed = hello->cpus_online = 64;
    hello->memory_bytes = 256 * GIB;
    hello->gpus = 8;
    hello->n_interfaces = 1;
    hello->interfaces = world->line_lists[i];
    *host = (struct check_host){.name = world->names[i],
                                .peer = world->addresses[i],
                                .login = mem_strdup("key A (an agent), host key ED25519 SHA256:x"),
                                .hello = hello,
                                .facts = world_facts(),
                                .clock_known = true,
                                .clock_ns = 200000,
                                .clock_error_ns = 50000,
                                .address = mem_strdup(world->addresses[i])};
}

/* `count` hosts that are well and reach each other. */
static inline void world_make(struct check_world *world, int count)
{
    int rounds;
    memset(world, 0, sizeof(*world));
    world->result =
        (struct check_result){.count = count,
                              .hosts = mem_array((size_t)count, sizeof(struct check_host)),
                              .silence_s = 5,
                              .nofile = 1024,
                              .nproc = UINT64_MAX,
                              .memlock = 8 << 20};
    for (int i = 0; i < count; i++)
        world_host(world, i);
    struct check_route *routes = check_plan(count, &world->result.link_count, &rounds);
    world->result.links = mem_array(world->result.link_count, sizeof(struct check_link));
    for (size_t i = 0; i < world->result.link_count; i++)
        world->result.links[i] = (struct check_link){.from = routes[i].from,
                                                     .to = routes[i].to,
                                                     .tried = true,
                                                     .connect_us = 100 + 10 * (int64_t)i};
    free(routes);
}

static inline void world_close(struct check_world *world)
{
    check_result_clear(&world->result);
}

/* It was never heard of. */
static inline void world_fail(struct check_world *world, int i, const char *stage, const char *why)
{
    struct check_host *host = &world->result.hosts[i];
    hvdrun__facts__free_unpacked(host->facts, NULL);
    free(host->address);
    free(host->login);
    *host = (struct check_host){
        .name = world->names[i], .peer = "", .stage = mem_strdup(stage), .why = mem_strdup(why)};
    for (size_t l = 0; l < world->result.link_count; l++) {
        struct check_link *link = &world->result.links[l];
        link->tried = link->tried && link->from != i && link->to != i;
    }
}

static inline void world_break(struct check_world *world, int from, int to,
                               Hvdrun__ProbeOutcome outcome)
{
    check_result_find(&world->result, from, to)->outcome = outcome;
}

static inline void world_set(char **text, const char *value)
{
    if (*text != protobuf_c_empty_string)
        free(*text);
    *text = mem_strdup(value);
}
