/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/crew_apps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/room_test.h"
#include "base/mem.h"
#include "base/status.h"
#include "io/child.h"
#include "model/env/scrub.h"
#include "node/mpi_detect.h"
#include "node/mpi_python.h"
#include "node/python_files.h"

/* What the user can do about a program that cannot be executed. */

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

/* The interpreter of a script: of "#!/bin/sh -e", "#!/usr/bin/env python3" or "train.py". The
 * caller's; NULL: it is no script. */
static char *interpreter(const char *path)
{
    AUTO_STRV struct strv words = STRV_INIT;
    script_words(path, &words);
    if (words.count == 0)
        return ends_with(path, ".py") ? mem_strdup("python3") : NULL;
    bool env = words.count > 1 && ends_with(words.items[0], "/env") && words.items[1][0] != '-';
    return mem_strdup(words.items[env ? 1 : 0]);
}

void program_advice(const char *program, const char *wdir, struct error *err)
{
    struct stat info;
    bool inside = program[0] != '/' && wdir != NULL;
    char *path AUTO_FREE = mem_printf("%s%s%s", inside ? wdir : "", inside ? "/" : "", program);
    if (err == NULL || err->errnum != EACCES || strchr(program, '/') == NULL ||
        stat(path, &info) < 0 || !S_ISREG(info.st_mode) || (info.st_mode & 0111) != 0)
        return;
    char *front AUTO_FREE = interpreter(path);
    char *text AUTO_FREE = mem_strdup(err->text);
    struct error why = *err;
    error_set(err, "%s; chmod +x makes it executable%s%s%s", text,
              front == NULL ? "" : ", or write ", front == NULL ? "" : front,
              front == NULL ? "" : " in front of it");
    err->status = why.status;
    err->errnum = why.errnum;
}

/* Limits of execve(), see its manual. */
#define EXEC_BYTES_LEAST ((size_t)128 << 10)
#define EXEC_PAGES_MAX 32 /* of one argument */

struct filling {
    struct crew_apps *apps;
    const Hvdrun__Prepare *prepare;
    const struct log *log;
    bool offers_mpi;
};

/* On another machine than the driver's, names like HOME are this host's own. */
static void copy_base_env(struct crew_apps *apps, const Hvdrun__Prepare *prepare)
{
    AUTO_STRV struct strv passed = STRV_INIT;
    for (size_t i = 0; i < prepare->n_base_env; i++)
        strv_add(&passed, prepare->base_env[i]);
    if (prepare->remote)
        env_scrub_for_host(strv_items(&passed), environ, &apps->base_env);
    else
        strv_copy(&apps->base_env, strv_items(&passed));
    if (prepare->keep_scheduler_env)
        env_scrub_own_scheduler(environ, &apps->base_env);
}

const char *crew_apps_getenv(const struct crew_apps *apps, size_t app, const char *name)
{
    const char *value = strv_env_get(&apps->items[app].env, name);
    return value != NULL ? value : strv_env_get(&apps->base_env, name);
}

struct app_view {
    const struct crew_apps *apps;
    size_t index;
};

static const char *get_variable(const void *context, const char *name)
{
    const struct app_view *view = context;
    return crew_apps_getenv(view->apps, view->index, name);
}

/* The worker loads its MPI while it runs, as libhvd does, and the user says that it will. Without
 * PMIx, each worker would be a world of its own. */
static bool loads_mpi(const Hvdrun__Prepare *prepare, const struct mpi_finding *found)
{
    return prepare->mpi_controller && !found->linked && !found->launcher;
}

/* Offering a kind by force, or by looking at the program. It may be on other nodes only (`here` is
 * false); then its ranks there may meet others that are spawned here. */
static int choose_kind(struct filling *filling, size_t index, bool here, struct error *err)
{
    struct crew_apps *apps = filling->apps;
    const Hvdrun__App *message = filling->prepare->apps[index];
    struct crew_app *app = &apps->items[index];
    const struct mpi_finding elsewhere = {.kind = MPI_PMIX, .what = "does not run on this host"};
    struct mpi_finding found = elsewhere;
    if (!filling->offers_mpi) {
        apps->kinds[index] = MPI_NONE;
        strv_add(&apps->reasons, "joins others");
        strv_printf(&apps->notes, "%s: MPI none (it joins others)", app->path);
        return 0;
    }
    bool automatic = strcmp(message->mpi, mpi_kind_name(MPI_AUTO)) == 0;
    const struct app_view view = {apps, index};
    const struct mpi_program program = {.path = app->path,
                                        .argv = strv_items(&app->argv),
                                        .wdir = app->wdir,
                                        .get = get_variable,
                                        .context = &view};
    if (here && mpi_detect_program(&program, &found, automatic ? err : NULL) < 0 && automatic) {
        if (filling->prepare->n_workers > 0)
            return -1;
        found = elsewhere;
    }
    app->links_mpi = found.linked;
    bool loads = automatic && loads_mpi(filling->prepare, &found);
    enum mpi_kind kind = loads ? MPI_PMIX : found.kind;
    for (enum mpi_kind k = MPI_NONE; !automatic && k <= MPI_PMI1; k++)
        kind = strcmp(message->mpi, mpi_kind_name(k)) == 0 ? k : kind;
    app->requires_mpi = kind != MPI_NONE && (found.linked || loads || !automatic);
    apps->needs_mpi |= app->requires_mpi;
    bool foreign = !automatic && found.linked && kind != found.kind;
    if (foreign && filling->prepare->parent_epoch != 0 && filling->prepare->n_workers > 0)
        return error_status(err, STATUS_NOT_EXECUTABLE,
                            "%s %s, and the rank that spawns it has another MPI", app->path,
                            found.what);
    if (foreign)
        log_warning(filling->log,
                    "%s %s, which --mpi=%s does not serve: each process will be a world of its "
                    "own; use --mpi=%s",
                    app->path, found.what, mpi_kind_name(kind), mpi_kind_name(found.kind));
    apps->kinds[index] = kind;
    const char *reason = !automatic ? "as --mpi says"
                         : loads    ? "as --controller mpi says"
                                    : found.what;
    strv_add(&apps->reasons, reason);
    strv_printf(&apps->notes, "%s: MPI %s (%s)", app->path, mpi_kind_name(kind), reason);
    return 0;
}

/* The worker changes its folder before it executes a path that was found from ours. */
static void make_absolute(char **path)
{
    char *here AUTO_FREE = getcwd(NULL, 0);
    if ((*path)[0] == '/' || here == NULL)
        return;
    char *relative AUTO_FREE = *path;
    *path = mem_printf("%s/%s", here, relative);
}

/* How many bytes of arguments Linux passes to a program, with the workers' limit of the stack. */
static size_t arguments_max(const Hvdrun__Prepare *prepare)
{
    size_t most = (size_t)6 << 20;
    for (size_t i = 0; i < prepare->n_limits; i++) {
        const Hvdrun__Limit *limit = prepare->limits[i];
        if (limit->resource == RLIMIT_STACK && limit->soft / 4 < most)
            most = (size_t)limit->soft / 4;
    }
    return most > EXEC_BYTES_LEAST ? most : EXEC_BYTES_LEAST;
}

/* Workers that are spawned should be refused while their parents can go on, not end the job. */
static int check_arguments(const Hvdrun__Prepare *prepare, const struct crew_app *app,
                           struct error *err)
{
    size_t most = arguments_max(prepare), bytes = 0, longest = 0;
    for (size_t i = 0; i < app->argv.count; i++) {
        size_t length = strlen(app->argv.items[i]) + 1;
        longest = length > longest ? length : longest;
        bytes += length + sizeof(char *);
    }
    if (bytes <= most && longest <= EXEC_PAGES_MAX * (size_t)sysconf(_SC_PAGESIZE))
        return 0;
    return error_status(err, STATUS_NOT_EXECUTABLE,
                        "cannot execute %s: it has %zu KiB of arguments, which Linux refuses",
                        app->path, bytes >> 10);
}

static int find_program(const struct filling *filling, size_t index, struct error *err)
{
    struct crew_app *app = &filling->apps->items[index];
    const char *program = filling->prepare->apps[index]->argv[0];
    if (child_check_wdir(app->wdir, err) < 0)
        return -1;
    app->path = child_find(program, crew_apps_getenv(filling->apps, index, "PATH"), app->wdir, err);
    if (app->path == NULL) {
        program_advice(program, app->wdir, err);
        return -1;
    }
    if (interpreter_check_env(app->path, err) < 0)
        return -1;
    return check_arguments(filling->prepare, app, err);
}

static int fill_app(struct filling *filling, size_t index, struct error *err)
{
    struct crew_apps *apps = filling->apps;
    const Hvdrun__App *message = filling->prepare->apps[index];
    struct crew_app *app = &apps->items[index];
    const char *job_wdir = filling->prepare->wdir[0] == '\0' ? NULL : filling->prepare->wdir;
    app->wdir = message->wdir[0] == '\0' ? job_wdir : message->wdir;
    for (size_t i = 0; i < message->n_argv; i++)
        strv_add(&app->argv, message->argv[i]);
    app->arguments = strv_join(message->argv + 1, message->n_argv - 1, " ");
    for (size_t i = 0; i < filling->prepare->n_host_env; i++)
        strv_env_put(&app->env, filling->prepare->host_env[i]);
    for (size_t i = 0; i < message->n_env; i++)
        strv_env_put(&app->env, message->env[i]);
    apps->np[index] =
        (int)(index < filling->prepare->n_app_sizes ? filling->prepare->app_sizes[index]
                                                    : message->np);
    bool here = find_program(filling, index, err) == 0;
    if (!here && filling->prepare->n_workers > 0)
        return -1;
    if (app->path == NULL)
        app->path = mem_strdup(message->argv[0]);
    else
        make_absolute(&app->path);
    return choose_kind(filling, index, here, err);
}

/* All ranks of the job are one world, so MPI's start-up waits for those of other programs too. */
static void warn_of_others(const struct filling *filling, const struct crew_app *mpi)
{
    const struct crew_apps *apps = filling->apps;
    for (size_t i = 0; i < filling->prepare->n_apps; i++) {
        if (apps->kinds[i] == MPI_NONE)
            log_warning(filling->log,
                        "%s does not use MPI and %s does: the MPI ranks will wait for the others, "
                        "which belong to the same job",
                        apps->items[i].path, mpi->path);
    }
}

/* Programs of two MPI families would wait for each other for ever. */
static int check_one_mpi(const struct filling *filling, struct error *err)
{
    const struct crew_apps *apps = filling->apps;
    const struct crew_app *first = NULL;
    enum mpi_kind kind = MPI_NONE;
    for (size_t i = 0; i < filling->prepare->n_apps; i++) {
        if (!apps->items[i].requires_mpi)
            continue;
        if (first != NULL && apps->kinds[i] != kind && filling->prepare->n_workers > 0)
            return error_set(err,
                             "%s needs MPI through %s and %s through %s: programs of one job must "
                             "use the same MPI",
                             first->path, mpi_kind_name(kind), apps->items[i].path,
                             mpi_kind_name(apps->kinds[i]));
        first = &apps->items[i];
        kind = apps->kinds[i];
    }
    /* One node is enough to say it. */
    if (first != NULL && filling->prepare->node_index == 0)
        warn_of_others(filling, first);
    return 0;
}

int crew_apps_fill(struct crew_apps *apps, const Hvdrun__Prepare *prepare, bool offers_mpi,
                   const struct log *log, struct error *err)
{
    struct filling filling = {apps, prepare, log, offers_mpi};
    size_t count = prepare->n_apps;
    *apps = (struct crew_apps){.count = count, .problem = -1};
    apps->items = mem_array(count, sizeof(*apps->items));
    apps->kinds = mem_array(count, sizeof(*apps->kinds));
    apps->np = mem_array(count, sizeof(*apps->np));
    copy_base_env(apps, prepare);
    for (size_t i = 0; i < count; i++) {
        if (prepare->apps[i]->n_argv == 0)
            return error_set(err, "an app without a program");
        if (fill_app(&filling, i, err) == 0)
            continue;
        apps->problem = (int)i;
        return -1;
    }
    return check_one_mpi(&filling, err);
}

void crew_apps_destroy(struct crew_apps *apps)
{
    for (size_t i = 0; i < apps->count; i++) {
        free(apps->items[i].path);
        free(apps->items[i].arguments);
        strv_destroy(&apps->items[i].argv);
        strv_destroy(&apps->items[i].env);
    }
    free(apps->items);
    free(apps->kinds);
    free(apps->np);
    strv_destroy(&apps->base_env);
    strv_destroy(&apps->notes);
    strv_destroy(&apps->reasons);
    *apps = (struct crew_apps){.problem = -1};
}
