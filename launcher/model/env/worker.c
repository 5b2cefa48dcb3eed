/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policy: each rank variable is one line of worker_vars.def; this file knows the values. Values
 * that are equal for the whole node are formatted once, with their names; a rank formats only the
 * rest.
 */
#include "model/env/worker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "model/env/horovod.h"
#include "model/env/list.h"
#include "model/env/table.h"

enum worker_value {
    /* of a rank */
    RANK,
    LOCAL_RANK,
    CROSS_RANK,
    CROSS_SIZE,
    SLOT,
    ERROR_FILE,
    COMMAND,
    ARGUMENTS,
    WDIR,
    PROGRESS_FILE,
    RANK_VALUES, /* from here on: of the node and the job */
    SIZE = RANK_VALUES,
    LOCAL_SIZE,
    NODE,
    NODES,
    EPOCH,
    RESTARTS,
    MAX_RESTARTS,
    APPS,
    HOST,
    JOB_ID,
    ROLE,
    ONE,
    MACHINE,
    RUNTIME_DIR,
    CONTROLLER,
    ELASTIC,
    DEADLINE_FILE,
    LINE_ADDRESS,
    RENDEZVOUS_ADDR,
    RENDEZVOUS_PORT,
    APP_SIZES,
    APP_FIRST_RANKS,
    NODE_RANKS,
    NODE_NAMES,
    TASKS_PER_NODE,
    VALUES
};

enum when { ALWAYS, PMIX, PMI1, INHERITED };

static const struct rank_variable {
    const char *name;
    enum worker_value value;
    enum when when;
} variables[] = {
#define WORKER_VAR(name, value, when) {name, value, when},
#include "model/env/worker_vars.def"
#undef WORKER_VAR
};

#define VARIABLES (sizeof(variables) / sizeof(variables[0]))

/* The kernel takes no single variable of 128 KiB (MAX_ARG_STRLEN); one that would be longer, such
 * as all arguments in one, is omitted. */
#define VALUE_MAX ((size_t)120 << 10)

struct worker_env {
    struct worker_env_job job;
    struct env_table table;
    struct strv owned;             /* strings made here that the table borrows */
    char *text[VALUES];            /* values of the node; NULL: the variable is omitted */
    const char *fixed[VARIABLES];  /* "NAME=value" where it is equal for all ranks */
    size_t slot[VARIABLES];        /* its place in the table */
    bool *reserved;                /* by slot: a rank variable */
    bool wanted[VARIABLES];        /* INHERITED ones: was it inherited? */
    size_t no_proxy, no_proxy_big; /* slots */
    bool has_proxy;                /* without one, no_proxy is omitted: JAX warns of it */
    size_t cpu_operations;
    size_t tcp_include, tcp_exclude; /* slots */
    bool own_tcp;                    /* one of them is ours */
    const char *package_folder;      /* of hvdrun's Python package; NULL: not in PYTHONPATH */
    size_t python_path;              /* a slot */
};

struct worker_vars {
    char **items;
    size_t count, room;
    struct strv owned; /* what belongs to this rank besides `text` */
    char *text;        /* one block with the rank variables */
};

const char *worker_env_name(size_t i, bool *inherited)
{
    if (i >= VARIABLES)
        return NULL;
    if (inherited != NULL)
        *inherited = variables[i].when == INHERITED;
    return variables[i].name;
}

bool worker_env_is_rank_variable(const char *name, size_t length, bool *inherited)
{
    for (size_t i = 0; i < VARIABLES; i++) {
        const char *known = variables[i].name;
        if (known[0] != name[0] || strncmp(known, name, length) != 0 || known[length] != '\0')
            continue;
        if (inherited != NULL)
            *inherited = variables[i].when == INHERITED;
        return true;
    }
    return false;
}

char *worker_env_error_file(const struct worker_env_job *job, int rank)
{
    if (job->runtime_dir == NULL)
        return NULL;
    return mem_printf("%s/error.%d.%d.json", job->runtime_dir, job->epoch, rank);
}

static char *number(int value)
{
    return mem_printf("%d", value);
}

static void fill_values(struct worker_env *env)
{
    const struct worker_env_job *job = &env->job;
    bool rendezvous = job->rendezvous_port > 0 && job->rendezvous_addr != NULL;
    bool gloo = !job->mpi_controller;
    env->text[SIZE] = number(job->size);
    env->text[LOCAL_SIZE] = number(job->local_size);
    env->text[NODE] = number(job->node_index);
    env->text[NODES] = number(job->node_count);
    env->text[EPOCH] = number(job->epoch);
    env->text[RESTARTS] = number(job->restart_count);
    env->text[MAX_RESTARTS] = number(job->max_restarts);
    env->text[APPS] = number(job->app_count);
    env->text[HOST] = mem_strdup(job->hostname);
    env->text[JOB_ID] = mem_strdup(job->job_id);
    env->text[ROLE] = mem_strdup("default");
    env->text[ONE] = mem_strdup("1");
    env->text[MACHINE] = mem_strdup(job->machine);
    env->text[RUNTIME_DIR] = mem_strdup(job->runtime_dir);
    env->text[CONTROLLER] = mem_strdup(gloo ? "gloo" : "mpi");
    env->text[ELASTIC] = mem_strdup(job->elastic ? "1" : NULL);
    env->text[DEADLINE_FILE] = mem_strdup(job->deadline_file);
    env->text[LINE_ADDRESS] = mem_strdup(job->line_address);
    env->text[RENDEZVOUS_ADDR] = mem_strdup(rendezvous && gloo ? job->rendezvous_addr : NULL);
    env->text[RENDEZVOUS_PORT] = rendezvous && gloo ? number(job->rendezvous_port) : NULL;
    env->text[APP_SIZES] = env_list_numbers(job->app_np, job->app_count);
    env->text[APP_FIRST_RANKS] = env_list_sums(job->app_np, job->app_count);
    env->text[NODE_RANKS] = env_list_commas(job->node_ranks, job->local_size);
    env->text[NODE_NAMES] = mem_strdup(job->node_names);
    env->text[TASKS_PER_NODE] = env_list_sizes(job->node_sizes, job->node_count);
}

/* Keeps the string for the life of the environment. */
__attribute__((format(printf, 2, 3))) static const char *keep(struct worker_env *env,
                                                              const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = mem_strdup("");
    va_end(args);
    strv_add_take(&env->owned, text);
    return text;
}

/* hvdrun's own Python package is behind everything that the user has in PYTHONPATH. */
static void put_python_path(struct worker_env *env)
{
    static const char name[] = "PYTHONPATH";
    if (env->job.knobs != NULL)
        env->package_folder = strv_env_get(env->job.knobs, HOROVOD_PATH_VARIABLE);
    if (env->package_folder != NULL) {
        const char *value = env_table_value(&env->table, name);
        char *pair = env_list_path(name, value, env->package_folder);
        strv_add_take(&env->owned, pair);
        env_table_put(&env->table, pair);
    }
    env->python_path = env_table_slot(&env->table, name);
}

/* What must not go through a proxy: the rendezvous (Python's HTTP client obeys proxies) and the
 * coordinator (so does JAX's gRPC). */
static char *no_proxy_pair(const struct worker_env_job *job, const char *name, const char *value)
{
    const char *words[3] = {NULL};
    size_t count = 0;
    if (job->rendezvous_addr != NULL)
        words[count++] = job->rendezvous_addr;
    if (job->master_addr != NULL)
        words[count++] = job->master_addr;
    return env_list_with(name, value, words);
}

/* The job's own variables: stronger than what is passed on and the knobs, weaker than -x. */
static void put_job_variables(struct worker_env *env)
{
    const struct worker_env_job *job = &env->job;
    struct env_table *table = &env->table;
    if (job->master_addr != NULL) {
        bool six = strchr(job->master_addr, ':') != NULL;
        env_table_put(table, keep(env, "MASTER_ADDR=%s", job->master_addr));
        if (job->jax_port > 0)
            env_table_put(
                table,
                keep(env, six ? "JAX_COORDINATOR_ADDRESS=[%s]:%d" : "JAX_COORDINATOR_ADDRESS=%s:%d",
                     job->master_addr, job->jax_port));
    }
    if (job->master_port > 0)
        env_table_put(table, keep(env, "MASTER_PORT=%d", job->master_port));
    if (job->iface != NULL) {
        env_table_put(table, keep(env, "HOROVOD_GLOO_IFACE=%s", job->iface));
        env_table_default(table, keep(env, "GLOO_SOCKET_IFNAME=%s", job->iface));
    }
    if (job->ifaces != NULL && job->ifaces_from_flag)
        env_table_put(table, keep(env, "NCCL_SOCKET_IFNAME=%s", job->ifaces));
    else if (job->ifaces != NULL)
        env_table_default(table, keep(env, "NCCL_SOCKET_IFNAME=%s", job->ifaces));
    if (!job->mpi_controller)
        env_table_put(table, "HOROVOD_CPU_OPERATIONS=gloo");
}

/* Which networks MPI's TCP uses. Open MPI refuses both of its settings together, so ours is given
 * only when neither is there. Settings that choose between faster fabrics (UCX) stay as they are.
 */
static void put_networks(struct worker_env *env)
{
    const struct worker_env_job *job = &env->job;
    struct env_table *table = &env->table;
    static const char include[] = "OMPI_MCA_btl_tcp_if_include";
    static const char exclude[] = "OMPI_MCA_btl_tcp_if_exclude";
    env->tcp_include = env_table_slot(table, include);
    env->tcp_exclude = env_table_slot(table, exclude);
    bool given = env_table_value(table, include) != NULL || env_table_value(table, exclude) != NULL;
    env->own_tcp = !given && (job->subnets != NULL || job->unfit_subnets != NULL);
    if (env->own_tcp && job->subnets != NULL)
        env_table_put(table, keep(env, "%s=%s", include, job->subnets));
    else if (env->own_tcp)
        /* the first two are Open MPI's own default, which this replaces */
        env_table_put(table, keep(env, "%s=127.0.0.0/8,sppp,%s", exclude, job->unfit_subnets));
    if (job->ifaces_from_flag && job->node_count > 1 && job->iface != NULL) {
        env_table_default(table, keep(env, "FI_TCP_IFACE=%s", job->iface));
        env_table_default(table, keep(env, "MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE=%s", job->iface));
    }
}

static void put_defaults(struct worker_env *env)
{
    const struct worker_env_job *job = &env->job;
    struct env_table *table = &env->table;
    env_table_default(table, "PYTHONFAULTHANDLER=1");
    env_table_default(table, "PYTHONUNBUFFERED=1");
    if (job->ras_port > 0)
        env_table_default(table, keep(env, "NCCL_RAS_ADDR=localhost:%d", job->ras_port));
    env_table_default(table, "TORCH_NCCL_ASYNC_ERROR_HANDLING=1");
    if (job->cpus_allowed > 0 && job->cpu_ranks > 0 && !job->bound) {
        int threads = job->cpus_allowed / job->cpu_ranks;
        env_table_default(table, keep(env, "OMP_NUM_THREADS=%d", threads > 0 ? threads : 1));
    }
    if (job->yield_when_idle)
        env_table_default(table, "OMPI_MCA_mpi_yield_when_idle=1");
}

/* http_proxy and its kin, and what the user already says about them. */
static bool is_proxy_variable(const char *pair)
{
    static const char *const names[] = {
        "http_proxy=", "https_proxy=", "all_proxy=", "grpc_proxy=", "no_proxy="};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncasecmp(pair, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

static void put_no_proxy(struct worker_env *env)
{
    for (size_t i = 0; i < env->table.count; i++)
        env->has_proxy =
            env->has_proxy || (env->table.vars[i] != NULL && is_proxy_variable(env->table.vars[i]));
    static const char *const names[] = {"no_proxy", "NO_PROXY"};
    const char *values[2];
    char *pairs[2];
    for (size_t i = 0; i < 2; i++)
        values[i] = env_table_value(&env->table, names[i]);
    for (size_t i = 0; i < 2; i++) {
        /* a reader of one spelling must still find what the user wrote in the other */
        pairs[i] = no_proxy_pair(&env->job, names[i], values[i] ? values[i] : values[1 - i]);
    }
    for (size_t i = 0; i < 2; i++) {
        if (pairs[i] == NULL)
            continue;
        strv_add_take(&env->owned, pairs[i]);
        env_table_put(&env->table, pairs[i]);
    }
    env->no_proxy = env_table_slot(&env->table, names[0]);
    env->no_proxy_big = env_table_slot(&env->table, names[1]);
}

/* A scheduler's variable that the user wants as it is. */
static bool is_kept(const struct worker_env *env, const struct rank_variable *variable)
{
    return env->job.keep_scheduler_env && variable->when == INHERITED;
}

/* Gives every rank variable its slot and formats those that all ranks share. */
static void reserve_rank_variables(struct worker_env *env)
{
    for (size_t i = 0; i < VARIABLES; i++) {
        const struct rank_variable *variable = &variables[i];
        env->wanted[i] =
            variable->when != INHERITED || env_table_value(&env->table, variable->name) != NULL;
        env->slot[i] = env_table_slot(&env->table, variable->name);
        if (is_kept(env, variable)) {
            env->wanted[i] = false;
            continue;
        }
        env->table.vars[env->slot[i]] = NULL;
        if (env->wanted[i] && variable->value >= RANK_VALUES && env->text[variable->value] != NULL)
            env->fixed[i] = keep(env, "%s=%s", variable->name, env->text[variable->value]);
    }
    env->cpu_operations = env_table_slot(&env->table, "HOROVOD_CPU_OPERATIONS");
    env->reserved = mem_array(env->table.count, sizeof(*env->reserved));
    for (size_t i = 0; i < VARIABLES; i++)
        env->reserved[env->slot[i]] = !is_kept(env, &variables[i]);
}

struct worker_env *worker_env_create(const struct worker_env_job *job)
{
    struct worker_env *env = mem_alloc(sizeof(*env));
    env->job = *job;
    fill_values(env);
    /* getenv() finds the first of two equal names, so the first one counts here too */
    for (size_t i = 0; job->base != NULL && i < job->base->count; i++)
        env_table_default(&env->table, job->base->items[i]);
    for (size_t i = 0; job->knobs != NULL && i < job->knobs->count; i++)
        env_table_put(&env->table, job->knobs->items[i]);
    put_job_variables(env);
    put_networks(env);
    put_python_path(env);
    put_defaults(env);
    put_no_proxy(env);
    reserve_rank_variables(env);
    return env;
}

void worker_env_destroy(struct worker_env *env)
{
    if (env == NULL)
        return;
    for (size_t i = 0; i < VALUES; i++)
        free(env->text[i]);
    free(env->reserved);
    env_table_destroy(&env->table);
    strv_destroy(&env->owned);
    free(env);
}

/* Puts a pair into the rank's array: in the place of its name, or behind. */
static void put(struct worker_vars *vars, const struct worker_env *env, char *pair)
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

/* `pair` is what the user gives with -x. */
static void put_user_python_path(struct worker_vars *vars, const struct worker_env *env,
                                 const char *pair)
{
    const char *value = strchr(pair, '=');
    char *both = env_list_path("PYTHONPATH", value == NULL ? NULL : value + 1, env->package_folder);
    strv_add_take(&vars->owned, both);
    vars->items[env->python_path] = both;
}

static void put_user(struct worker_vars *vars, const struct worker_env *env,
                     const struct strv *user)
{
    bool proxy = false, has_proxy = env->has_proxy, tcp = false;
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
        proxy |= slot == env->no_proxy || slot == env->no_proxy_big;
        has_proxy = has_proxy || is_proxy_variable(user->items[i]);
    }
    for (size_t i = 0; proxy && i < 2; i++) {
        size_t slot = i == 0 ? env->no_proxy : env->no_proxy_big;
        const char *name = i == 0 ? "no_proxy" : "NO_PROXY";
        const char *value = strv_env_get(user, name);
        char *pair = value == NULL ? NULL : no_proxy_pair(&env->job, name, value);
        if (pair == NULL)
            continue;
        strv_add_take(&vars->owned, pair);
        vars->items[slot] = pair;
    }
    if (!has_proxy)
        vars->items[env->no_proxy] = vars->items[env->no_proxy_big] = NULL;
    /* the MPI controller with Gloo's CPU operations crashes Horovod */
    char *operations = vars->items[env->cpu_operations];
    if (env->job.mpi_controller && operations != NULL && strstr(operations, "=gloo") != NULL)
        vars->items[env->cpu_operations] = NULL;
}

static bool applies(enum when when, enum mpi_kind mpi)
{
    switch (when) {
    case PMIX: return mpi == MPI_PMIX;
    case PMI1: return mpi == MPI_PMI1;
    case ALWAYS:
    case INHERITED: break;
    }
    return true;
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

/* Rank variables whose value is the rank's own: "NAME=value" side by side in one block. */
static void put_rank(struct worker_vars *vars, const struct worker_env *env,
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
    size_t size[VARIABLES] = {0}, total = 0;
    for (size_t i = 0; i < VARIABLES; i++) {
        const char *value = variables[i].value < RANK_VALUES ? text[variables[i].value] : NULL;
        bool fits = value != NULL && strlen(value) < VALUE_MAX;
        if (fits && env->wanted[i] && applies(variables[i].when, rank->mpi))
            size[i] = strlen(variables[i].name) + strlen(value) + 2;
        total += size[i];
    }
    vars->text = mem_alloc(total);
    char *at = vars->text;
    for (size_t i = 0; i < VARIABLES; i++) {
        if (size[i] > 0) {
            vars->items[env->slot[i]] = at;
            at = put_pair(at, variables[i].name, text[variables[i].value]);
        } else if (env->fixed[i] != NULL && applies(variables[i].when, rank->mpi)) {
            vars->items[env->slot[i]] = (char *)env->fixed[i];
        }
    }
}

static void put_hints(struct worker_vars *vars, const struct worker_env *env, char *const *hints)
{
    for (; hints != NULL && *hints != NULL; hints++) {
        size_t slot = env_table_find(&env->table, *hints);
        if (slot != ENV_TABLE_NONE && vars->items[slot] != NULL)
            continue;
        char *pair = mem_strdup(*hints);
        strv_add_take(&vars->owned, pair);
        put(vars, env, pair);
    }
}

/* A client needs all of its variables from one source. Someone else's may lack the certificate or
 * switch the client off. */
static void put_status(struct worker_vars *vars, const struct worker_env *env,
                       const struct worker_env_rank *rank)
{
    static const char *const names[] = {
        "KUBEFLOW_TRAINER_SERVER_URL=", "KUBEFLOW_TRAINER_SERVER_TOKEN=",
        "KUBEFLOW_TRAINER_SERVER_CA_CERT="};
    if (rank->status_url == NULL || rank->status_token == NULL)
        return;
    for (size_t i = 0; i < vars->count; i++) {
        for (size_t name = 0; name < sizeof(names) / sizeof(names[0]); name++) {
            if (vars->items[i] != NULL &&
                strncmp(vars->items[i], names[name], strlen(names[name])) == 0)
                return;
        }
    }
    const char *values[] = {rank->status_url, rank->status_token};
    for (size_t i = 0; i < 2; i++) {
        char *pair = mem_printf("%s%s", names[i], values[i]);
        strv_add_take(&vars->owned, pair);
        put(vars, env, pair);
    }
}

/* Programs that read the folder from this name get the one that they are started in. */
static void put_folder(struct worker_vars *vars, const struct worker_env *env, const char *wdir)
{
    if (wdir == NULL || wdir[0] != '/')
        return;
    char *pair = mem_printf("PWD=%s", wdir);
    strv_add_take(&vars->owned, pair);
    put(vars, env, pair);
}

struct worker_vars *worker_env_rank(const struct worker_env *env,
                                    const struct worker_env_rank *rank)
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
