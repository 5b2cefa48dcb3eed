/* SPDX-License-Identifier: Apache-2.0 */
/* --warm on a host: the spawner of its crews, and the mothers that fork the ranks. */
#include <stdlib.h>
#include <string.h>

#include "agent/agent_state.h"
#include "agent/crew_config.h"
#include "base/mem.h"
#include "features/warm/mother_agent.h"

#define MOTHERS_MAX 4 /* kinds of ranks on one host */
#define STRANGERS_MAX 64

struct warm {
    struct agent *agent;
    struct spawner spawner;
    struct mother_config config;
    struct strv modules;
    const char *told; /* why ranks are not warm: said once */
    struct mother *mothers[MOTHERS_MAX];
    size_t count;
    bool keep;
    struct reaper_exit strangers[STRANGERS_MAX]; /* the newest, while pids are not known */
    size_t stranger_count;
};

/* False, so that a caller can return it. */
static bool is_cold(struct warm *warm, const char *why)
{
    if (warm->told == NULL || strcmp(warm->told, why) != 0)
        log_notice(&warm->agent->post.log, "ranks here are not warm: %s", why);
    warm->told = why;
    return false;
}

static struct mother *find(const struct warm *warm, const struct warm_kind *kind)
{
    for (size_t i = 0; i < warm->count; i++) {
        if (warm_kind_is(mother_kind(warm->mothers[i]), kind))
            return warm->mothers[i];
    }
    return NULL;
}

/* NULL: there are too many. Takes `kind` otherwise. */
static struct mother *get_mother(struct warm *warm, struct warm_kind *kind, const sigset_t *mask)
{
    struct mother *mother = find(warm, kind);
    if (mother == NULL && warm->count < MOTHERS_MAX) {
        mother = mother_create(&warm->config, kind, mask);
        mother_keep(mother, warm->keep);
        warm->mothers[warm->count++] = mother;
    }
    return mother;
}

static bool spawn(void *own, const struct child_spec *spec,
                  void (*done)(void *context, pid_t pid, const struct error *err), void *context)
{
    struct warm *warm = own;
    struct warm_command command;
    struct warm_kind kind;
    const char *problem = warm_command_read(spec->path, spec->argv, &command);
    if (problem == NULL)
        problem = warm_kind_read(spec, &command, &kind);
    if (problem != NULL)
        return is_cold(warm, problem);
    struct mother *mother = get_mother(warm, &kind, spec->mask);
    warm_kind_destroy(&kind);
    if (mother == NULL)
        return is_cold(warm, "the job has too many different programs");
    if (mother_is_cold(mother))
        return false;
    struct warm_rank *rank = warm_rank_create(spec, command.rest);
    if (rank == NULL)
        return is_cold(warm, "the limit of open files is too low (ulimit -n)");
    rank->done = done;
    rank->context = context;
    mother_add(mother, rank);
    return true;
}

static void cancel(void *own, const void *context)
{
    struct warm *warm = own;
    for (size_t i = 0; i < warm->count; i++)
        mother_cancel(warm->mothers[i], context);
}

/* Somebody may have killed it before the agent heard of it. */
static void forked(void *context, pid_t pid)
{
    struct warm *warm = context;
    for (size_t i = 0; i < warm->stranger_count && i < STRANGERS_MAX; i++) {
        if (warm->strangers[i].pid != pid)
            continue;
        struct reaper_exit exit = warm->strangers[i];
        warm->strangers[i].pid = 0;
        crews_exited(warm->agent->crews, &exit);
        return;
    }
}

static void stranger(struct agent *agent, const struct reaper_exit *exit)
{
    struct warm *warm = agent_own(agent, warm);
    bool forks = false;
    for (size_t i = 0; i < warm->count; i++)
        forks = forks || mother_forks(warm->mothers[i]);
    if (!forks)
        warm->stranger_count = 0;
    else
        warm->strangers[warm->stranger_count++ % STRANGERS_MAX] = *exit;
}

static struct warm *create(struct agent *agent, const Hvdrun__Prepare *prepare)
{
    struct warm *warm = mem_alloc(sizeof(*warm));
    *warm = (struct warm){.agent = agent, .spawner = {warm, spawn, cancel}};
    for (size_t i = 0; i < prepare->n_warm_modules; i++)
        strv_add(&warm->modules, prepare->warm_modules[i]);
    warm->config =
        (struct mother_config){.loop = agent->loop,
                               .helpers = agent->helpers,
                               .log = &agent->post.log,
                               .modules = (const char *const *)strv_items(&warm->modules),
                               .forked = forked,
                               .context = warm};
    return warm;
}

static void crew(struct agent *agent, struct crew_config *config, const Hvdrun__Prepare *prepare,
                 bool joins)
{
    (void)joins;
    if (!prepare->warm)
        return;
    if (agent_own(agent, warm) == NULL)
        agent->own[AGENT_PART_warm] = create(agent, prepare);
    struct warm *warm = agent_own(agent, warm);
    warm->keep = prepare->elastic || prepare->restart_count < prepare->max_restarts;
    for (size_t i = 0; i < warm->count; i++)
        mother_keep(warm->mothers[i], warm->keep);
    config->spawner = &warm->spawner;
}

static void close_part(struct agent *agent)
{
    struct warm *warm = agent_own(agent, warm);
    for (size_t i = 0; i < warm->count; i++)
        mother_destroy(warm->mothers[i]);
    strv_destroy(&warm->modules);
    free(warm);
}

const struct agent_part warm_agent_part = {
    .name = "warm", .crew = crew, .close = close_part, .stranger = stranger};
