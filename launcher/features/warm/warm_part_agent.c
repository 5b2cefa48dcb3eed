/* SPDX-License-Identifier: Apache-2.0 */
/* --warm on a host: the spawner of its crews, and the mothers that fork the ranks. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_state.h"
#include "agent/worker.h"
#include "base/clock.h"
#include "base/mem.h"
#include "features/warm/warm_agent.h"

#define STRANGERS_MAX 64

struct warm {
    struct agent *agent;
    struct spawner spawner;
    struct mother_config config;
    struct strv modules;
    char *list;                               /* of the modules, with commas; NULL: not known yet */
    const char *told;                         /* why ranks are not warm: said once */
    struct mother *mothers[WARM_MOTHERS_MAX]; /* that of the newest rank is the last one */
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

/* Takes it from the list. NULL: there is none. */
static struct mother *take(struct warm *warm, size_t i)
{
    if (i >= warm->count)
        return NULL;
    struct mother *mother = warm->mothers[i];
    warm->count--;
    memmove(warm->mothers + i, warm->mothers + i + 1, (warm->count - i) * sizeof(mother));
    return mother;
}

static struct mother *take_same(struct warm *warm, const struct child_spec *spec,
                                const struct warm_command *command)
{
    size_t i = 0;
    while (i < warm->count && !warm_kind_is(mother_kind(warm->mothers[i]), spec, command))
        i++;
    if (i < warm->count && mother_rests(warm->mothers[i]) &&
        !warm_kind_knows(mother_kind(warm->mothers[i]), spec)) {
        mother_destroy(take(warm, i));
        return NULL;
    }
    return take(warm, i);
}

/* For another kind. False: no mother is idle. */
static bool make_room(struct warm *warm)
{
    size_t i = 0;
    while (i < warm->count && !mother_is_idle(warm->mothers[i]))
        i++;
    if (warm->count == WARM_MOTHERS_MAX)
        mother_destroy(take(warm, i));
    return warm->count < WARM_MOTHERS_MAX;
}

/* NULL, and `problem`, if there is none. */
static struct mother *get_mother(struct warm *warm, const struct child_spec *spec,
                                 const struct warm_command *command, const char **problem)
{
    struct warm_kind kind;
    struct mother *mother = take_same(warm, spec, command);
    if (mother == NULL) {
        *problem = warm_kind_read(spec, command, &kind);
        if (*problem != NULL)
            return NULL;
        if (make_room(warm))
            mother = mother_create(&warm->config, &kind, spec->mask);
        else
            *problem = "the job starts too many different programs at the same time";
        warm_kind_destroy(&kind);
    }
    if (mother != NULL) {
        mother_keep(mother, warm->keep);
        warm->mothers[warm->count++] = mother;
    }
    return mother;
}

/* `python`: as `spec`, but its program is an interpreter, if that is possible. */
static bool add(struct warm *warm, const struct child_spec *spec, const struct child_spec *python,
                void (*done)(void *context, pid_t pid, const struct error *err), void *context)
{
    struct warm_command command;
    struct child_spec like = *python;
    /* The same words can be another folder for the next job. */
    char *real AUTO_FREE = warm->agent->config->holder == NULL
                               ? NULL
                               : realpath(like.wdir == NULL ? "." : like.wdir, NULL);
    if (real != NULL)
        like.wdir = real;
    const char *problem = warm_command_read(python->path, python->argv, &command);
    struct mother *mother = problem == NULL ? get_mother(warm, &like, &command, &problem) : NULL;
    if (mother == NULL)
        return is_cold(warm, problem);
    if (mother_is_cold(mother))
        return false;
    struct warm_rank *rank = warm_rank_create(spec, python->argv, command.rest);
    if (rank == NULL)
        return is_cold(warm, "the limit of open files is too low (ulimit -n)");
    rank->done = done;
    rank->context = context;
    mother_add(mother, rank);
    return true;
}

static bool spawn(void *own, const struct child_spec *spec,
                  void (*done)(void *context, pid_t pid, const struct error *err), void *context)
{
    struct warm_script script;
    struct child_spec python = *spec;
    if (!warm_script_read(spec, &script))
        return add(own, spec, &python, done, context);
    python.path = script.path;
    python.argv = strv_items(&script.argv);
    bool added = add(own, spec, &python, done, context);
    warm_script_destroy(&script);
    return added;
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
    struct reaper_exit exit = {
        .pid = pid, .wait_status = SIGKILL, .when_ns = clock_mono_ns()}; /* if it is not known */
    if (reaper_has(pid))
        return;
    for (size_t i = 0; i < warm->stranger_count && i < STRANGERS_MAX; i++) {
        size_t newest = (warm->stranger_count - 1 - i) % STRANGERS_MAX;
        if (warm->strangers[newest].pid != pid)
            continue;
        exit = warm->strangers[newest];
        break;
    }
    crews_exited(warm->agent->crews, &exit);
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

/* Interpreters of earlier jobs. Those that have imported other modules stay with the holder. */
static void take_over(struct warm *warm, struct warm_holder *holder)
{
    size_t i = 0;
    while (i < holder->count) {
        const struct warm_kept *there = &holder->list[i];
        if (warm->count == WARM_MOTHERS_MAX || strcmp(there->modules, warm->list) != 0) {
            i++;
            continue;
        }
        helpers_forget(warm->agent->helpers, there->pid);
        struct warm_kept kept = warm_holder_take(holder, i);
        warm->mothers[warm->count++] =
            mother_adopt(&warm->config, &kept, warm->agent->config->mask);
    }
}

static void hand_back(struct warm *warm, struct warm_holder *holder)
{
    for (size_t i = 0; i < holder->count; i++)
        helpers_forget(warm->agent->helpers, holder->list[i].pid);
    for (size_t i = 0; i < warm->count; i++) {
        struct warm_kept kept;
        if (!mother_release(warm->mothers[i], &kept))
            continue;
        kept.modules = mem_strdup(warm->list);
        warm_holder_add(holder, &kept);
    }
    warm->count = 0;
}

static struct warm *create(struct agent *agent)
{
    struct warm *warm = mem_alloc(sizeof(*warm));
    *warm = (struct warm){.agent = agent, .spawner = {warm, spawn, cancel}};
    agent->own[AGENT_PART_warm] = warm;
    return warm;
}

/* A job may end before it is known what it needs. */
static void open_part(struct agent *agent)
{
    const struct warm_holder *holder = agent->config->holder;
    for (size_t i = 0; holder != NULL && i < holder->count; i++)
        helpers_adopt(agent->helpers, holder->list[i].pid);
    if (holder != NULL)
        create(agent);
}

static void set_up(struct warm *warm, const Hvdrun__Prepare *prepare)
{
    struct agent *agent = warm->agent;
    for (size_t i = 0; i < prepare->n_warm_modules; i++)
        strv_add(&warm->modules, prepare->warm_modules[i]);
    warm->config =
        (struct mother_config){.loop = agent->loop,
                               .helpers = agent->helpers,
                               .log = &agent->post.log,
                               .modules = (const char *const *)strv_items(&warm->modules),
                               .forked = forked,
                               .context = warm};
    warm->list = strv_join(warm->modules.items, warm->modules.count, ",");
    if (agent->config->holder != NULL)
        take_over(warm, agent->config->holder);
}

static void crew(struct agent *agent, struct crew_config *config, const Hvdrun__Prepare *prepare,
                 bool joins)
{
    (void)joins;
    if (!prepare->warm)
        return;
    struct warm *warm = agent_own(agent, warm);
    if (warm == NULL)
        warm = create(agent);
    if (warm->list == NULL)
        set_up(warm, prepare);
    warm->keep = agent->config->holder != NULL || prepare->elastic ||
                 prepare->restart_count < prepare->max_restarts;
    for (size_t i = 0; i < warm->count; i++)
        mother_keep(warm->mothers[i], warm->keep);
    config->spawner = &warm->spawner;
}

static void close_part(struct agent *agent)
{
    struct warm *warm = agent_own(agent, warm);
    if (agent->config->holder != NULL)
        hand_back(warm, agent->config->holder);
    for (size_t i = 0; i < warm->count; i++)
        mother_destroy(warm->mothers[i]);
    strv_destroy(&warm->modules);
    free(warm->list);
    free(warm);
}

const struct agent_part warm_agent_part = {
    .name = "warm", .open = open_part, .crew = crew, .close = close_part, .stranger = stranger};
