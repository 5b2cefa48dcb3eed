/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policy: node_env.h has what is equal for the whole node, and a rank formats only the rest.
 */
#include "model/env/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/env/flight_recorder.h"
#include "model/env/table.h"

/* The kernel takes no single variable of 128 KiB (MAX_ARG_STRLEN); one that would be longer, such
 * as all arguments in one, is omitted. */
#define VALUE_MAX ((size_t)120 << 10)

struct worker_vars {
    char **items;
    size_t count, room;
    struct strv owned; /* what belongs to this rank besides `text` */
    char *text;        /* one block with the rank variables */
};

char *worker_env_error_file(const struct node_env_job *job, int rank)
{
    if (job->runtime_dir == NULL)
        return NULL;
    return mem_printf("%s/error.%d.%d.json", job->runtime_dir, job->epoch, rank);
}

/* Puts a pair into the rank's array: in the place of its name, or behind. */
static void put(struct worker_vars *vars, const struct node_env *env, char *pair)
{
    size_t length = env_name_length(pair);
    if (length == 0 || pair[length] != '=')
        return;
    size_t at = env_table_find(&env->table, pair);
    if (at == ENV_TABLE_NONE) {
        at = env->table.count;
        while (at < vars->count && strncmp(vars->items[at], pair, length + 1) != 0)
            at++;
    }
    if (at == vars->count) {
        if (vars->count + 2 > vars->room) {
            vars->room *= 2;
            vars->items = mem_resize_array(vars->items, vars->room, sizeof(*vars->items));
        }
        vars->count++;
    }
    vars->items[at] = pair;
}

static void put_take(struct worker_vars *vars, const struct node_env *env, char *pair)
{
    strv_add_take(&vars->owned, pair);
    put(vars, env, pair);
}

/* `pair` is what the user gives with -x. */
static void put_user_python_path(struct worker_vars *vars, const struct node_env *env,
                                 const char *pair)
{
    const char *value = strchr(pair, '=');
    char *both = env_list_path("PYTHONPATH", value == NULL ? NULL : value + 1, env->package_folder);
    strv_add_take(&vars->owned, both);
    vars->items[env->python_path] = both;
}

static void put_user(struct worker_vars *vars, const struct node_env *env, const struct strv *user)
{
    bool tcp = false;
    for (size_t i = 0; user != NULL && i < user->count; i++) {
        size_t slot = env_table_find(&env->table, user->items[i]);
        if (slot != ENV_TABLE_NONE && env->reserved[slot])
            continue;
        bool has_tcp = slot == env->tcp_include || slot == env->tcp_exclude;
        if (has_tcp && env->own_tcp && !tcp) {
            vars->items[env->tcp_include] = vars->items[env->tcp_exclude] = NULL;
            tcp = true;
        }
        put(vars, env, user->items[i]);
        if (slot == env->python_path && env->package_folder != NULL)
            put_user_python_path(vars, env, user->items[i]);
    }
    no_proxy_user(&env->no_proxy, &env->table, user, vars->items, &vars->owned);
    /* the MPI controller with Gloo's CPU operations crashes Horovod */
    char *operations = vars->items[env->cpu_operations];
    if (env->job.mpi_controller && operations != NULL && strstr(operations, "=gloo") != NULL)
        vars->items[env->cpu_operations] = NULL;
}

/* Returns the place behind it. */
static char *put_pair(char *at, const char *name, const char *value)
{
    size_t length = strlen(name), value_size = strlen(value) + 1;
    memcpy(at, name, length);
    at[length] = '=';
    memcpy(at + length + 1, value, value_size);
    return at + length + 1 + value_size;
}

/* The user's -x replaces it. */
static bool is_given(const struct worker_vars *vars, const struct node_env *env, size_t i)
{
    return rank_variables[i].when == YIELDS && vars->items[env->slot[i]] != NULL;
}

/* Rank variables whose value is the rank's own: "NAME=value" side by side in one block. */
static void put_rank(struct worker_vars *vars, const struct node_env *env,
                     const struct worker_env_rank *rank)
{
    char numbers[5][16];
    const int values[5] = {rank->rank, rank->local_rank, rank->cross_rank, rank->cross_size,
                           rank->slot};
    for (size_t i = 0; i < 5; i++)
        snprintf(numbers[i], sizeof(numbers[i]), "%d", values[i]);
    char *error_file AUTO_FREE = worker_env_error_file(&env->job, rank->rank);
    const char *text[RANK_VALUES] = {
        [RANK] = numbers[0],       [LOCAL_RANK] = numbers[1],
        [CROSS_RANK] = numbers[2], [CROSS_SIZE] = numbers[3],
        [SLOT] = numbers[4],       [ERROR_FILE] = error_file,
        [COMMAND] = rank->command, [ARGUMENTS] = rank->arguments,
        [WDIR] = rank->wdir,       [PROGRESS_FILE] = rank->progress_file};
    size_t size[RANK_VARIABLES] = {0}, total = 0;
    for (size_t i = 0; i < RANK_VARIABLES; i++) {
        const char *value =
            rank_variables[i].value < RANK_VALUES ? text[rank_variables[i].value] : NULL;
        bool fits = value != NULL && strlen(value) < VALUE_MAX && !is_given(vars, env, i);
        if (fits && env->wanted[i] && rank_variable_applies(&rank_variables[i], rank->mpi))
            size[i] = strlen(rank_variables[i].name) + strlen(value) + 2;
        total += size[i];
    }
    vars->text = mem_alloc(total);
    char *at = vars->text;
    for (size_t i = 0; i < RANK_VARIABLES; i++) {
        if (size[i] > 0) {
            vars->items[env->slot[i]] = at;
            at = put_pair(at, rank_variables[i].name, text[rank_variables[i].value]);
        } else if (env->fixed[i] != NULL && !is_given(vars, env, i) &&
                   rank_variable_applies(&rank_variables[i], rank->mpi)) {
            vars->items[env->slot[i]] = (char *)env->fixed[i];
        }
    }
}

static void put_hints(struct worker_vars *vars, const struct node_env *env, char *const *hints)
{
    for (; hints != NULL && *hints != NULL; hints++) {
        size_t slot = env_table_find(&env->table, *hints);
        if (slot == ENV_TABLE_NONE || vars->items[slot] == NULL)
            put_take(vars, env, mem_strdup(*hints));
    }
}

/* Of the user's -x and the like: node_env has looked at the names that the table has. */
static bool has_status(const struct worker_vars *vars, const struct node_env *env)
{
    for (size_t i = env->table.count; i < vars->count; i++) {
        const char *pair = vars->items[i];
        if (pair != NULL && (strncmp(pair, STATUS_URL, strlen(STATUS_URL)) == 0 ||
                             strncmp(pair, STATUS_TOKEN, strlen(STATUS_TOKEN)) == 0 ||
                             strncmp(pair, STATUS_CA_CERT, strlen(STATUS_CA_CERT)) == 0))
            return true;
    }
    return env->has_status;
}

/* A client needs all of its variables from one source. Someone else's may lack the certificate or
 * switch the client off. */
static void put_status(struct worker_vars *vars, const struct node_env *env,
                       const struct worker_env_rank *rank)
{
    if (rank->status_url == NULL || rank->status_token == NULL || has_status(vars, env))
        return;
    put_take(vars, env, mem_printf(STATUS_URL "%s", rank->status_url));
    put_take(vars, env, mem_printf(STATUS_TOKEN "%s", rank->status_token));
}

static void put_recorder(struct worker_vars *vars, const struct node_env *env)
{
    size_t first = vars->owned.count;
    if (!env->job.records || env->job.runtime_dir == NULL)
        return;
    flight_recorder_arm(vars->items, vars->count, env->job.runtime_dir, &vars->owned);
    for (size_t i = first; i < vars->owned.count; i++)
        put(vars, env, vars->owned.items[i]);
}

/* Programs that read the folder from this name get the one that they are started in. */
static void put_folder(struct worker_vars *vars, const struct node_env *env, const char *wdir)
{
    if (wdir != NULL && wdir[0] == '/')
        put_take(vars, env, mem_printf("PWD=%s", wdir));
}

struct worker_vars *worker_env_rank(const struct node_env *env, const struct worker_env_rank *rank)
{
    struct worker_vars *vars = mem_alloc(sizeof(*vars));
    vars->count = env->table.count;
    vars->room = vars->count + 32;
    vars->items = mem_array(vars->room, sizeof(*vars->items));
    memcpy(vars->items, env->table.vars, vars->count * sizeof(*vars->items));
    put_hints(vars, env, rank->hints);
    put_folder(vars, env, rank->wdir);
    put_user(vars, env, rank->app_env);
    put_status(vars, env, rank);
    put_recorder(vars, env);
    put_rank(vars, env, rank);
    for (char *const *pair = rank->extra; pair != NULL && *pair != NULL; pair++)
        put(vars, env, *pair);
    size_t kept = 0;
    for (size_t i = 0; i < vars->count; i++) {
        if (vars->items[i] != NULL)
            vars->items[kept++] = vars->items[i];
    }
    vars->count = kept;
    vars->items[kept] = NULL;
    return vars;
}

char *const *worker_vars_items(const struct worker_vars *vars)
{
    return vars->items;
}

void worker_vars_destroy(struct worker_vars *vars)
{
    if (vars == NULL)
        return;
    free(vars->items);
    free(vars->text);
    strv_destroy(&vars->owned);
    free(vars);
}
