/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policy: each rank variable is one line of worker_vars.def; this file knows the values that are
 * equal for the whole node, and formats them once, with their names.
 */
#include "model/env/node_env.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/strv.h"
#include "model/env/horovod.h"
#include "model/env/node_env_test.h"
#include "model/env/table.h"

/*
 * What must not go through a proxy: the rendezvous (Python's HTTP client obeys proxies) and the
 * coordinator (so does JAX's gRPC). Their addresses go into no_proxy and NO_PROXY, behind what the
 * user has there. Pure.
 */

static const char *const spellings[] = {"no_proxy", "NO_PROXY"};

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

void no_proxy_put(struct no_proxy *out, const char *rendezvous, const char *master,
                  struct env_table *table, struct strv *owned)
{
    size_t count = 0;
    *out = (struct no_proxy){.has_proxy = false};
    if (rendezvous != NULL)
        out->addresses[count++] = rendezvous;
    if (master != NULL)
        out->addresses[count++] = master;
    for (size_t i = 0; i < table->count; i++)
        out->has_proxy =
            out->has_proxy || (table->vars[i] != NULL && is_proxy_variable(table->vars[i]));
    const char *values[2];
    char *pairs[2];
    for (size_t i = 0; i < 2; i++)
        values[i] = env_table_value(table, spellings[i]);
    for (size_t i = 0; i < 2; i++) {
        /* a reader of one spelling must still find what the user wrote in the other */
        const char *value = values[i] != NULL ? values[i] : values[1 - i];
        pairs[i] = env_list_with(spellings[i], value, out->addresses);
    }
    for (size_t i = 0; i < 2; i++) {
        if (pairs[i] != NULL) {
            strv_add_take(owned, pairs[i]);
            env_table_put(table, pairs[i]);
        }
        out->slots[i] = env_table_slot(table, spellings[i]);
    }
}

void no_proxy_user(const struct no_proxy *no_proxy, const struct env_table *table,
                   const struct strv *user, char **items, struct strv *owned)
{
    bool given = false, has_proxy = no_proxy->has_proxy;
    for (size_t i = 0; user != NULL && i < user->count; i++) {
        size_t slot = env_table_find(table, user->items[i]);
        given |= slot == no_proxy->slots[0] || slot == no_proxy->slots[1];
        has_proxy = has_proxy || is_proxy_variable(user->items[i]);
    }
    for (size_t i = 0; given && i < 2; i++) {
        const char *value = strv_env_get(user, spellings[i]);
        char *pair = value == NULL ? NULL : env_list_with(spellings[i], value, no_proxy->addresses);
        if (pair == NULL)
            continue;
        strv_add_take(owned, pair);
        items[no_proxy->slots[i]] = pair;
    }
    if (!has_proxy)
        items[no_proxy->slots[0]] = items[no_proxy->slots[1]] = NULL;
}

/* The environment. */

static char *number(int value)
{
    return mem_printf("%d", value);
}

static void fill_values(struct node_env *env)
{
    const struct node_env_job *job = &env->job;
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
    env->text[APP_SIZES] = env_list_numbers(job->app_np, job->app_count, ' ');
    env->text[APP_FIRST_RANKS] = env_list_sums(job->app_np, job->app_count);
    if (job->node_ranks != NULL)
        env->text[NODE_RANKS] = env_list_numbers(job->node_ranks, job->local_size, ',');
    env->text[NODE_NAMES] = mem_strdup(job->node_names);
    env->text[TASKS_PER_NODE] = env_list_sizes(job->node_sizes, job->node_count);
}

/* Keeps the string for the life of the environment. */
__attribute__((format(printf, 2, 3))) static const char *keep(struct node_env *env,
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
static void put_python_path(struct node_env *env)
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

/* The job's own variables: stronger than what is passed on and the knobs, weaker than -x. */
static void put_job_variables(struct node_env *env)
{
    const struct node_env_job *job = &env->job;
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
    for (size_t i = 0; i < job->variable_count; i++)
        env_table_put(table, keep(env, "%s", job->variables[i]));
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
static void put_networks(struct node_env *env)
{
    const struct node_env_job *job = &env->job;
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

static void put_defaults(struct node_env *env)
{
    const struct node_env_job *job = &env->job;
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

/* A scheduler's variable that the user wants as it is. */
static bool is_kept(const struct node_env *env, const struct rank_variable *variable)
{
    return env->job.keep_scheduler_env && variable->when == INHERITED;
}

/* Gives every rank variable its slot and formats those that all ranks share. */
static void reserve_rank_variables(struct node_env *env)
{
    for (size_t i = 0; i < RANK_VARIABLES; i++) {
        const struct rank_variable *variable = &rank_variables[i];
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
    for (size_t i = 0; i < RANK_VARIABLES; i++)
        env->reserved[env->slot[i]] =
            !is_kept(env, &rank_variables[i]) && rank_variables[i].when != YIELDS;
}

struct node_env *node_env_create(const struct node_env_job *job)
{
    struct node_env *env = mem_alloc(sizeof(*env));
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
    no_proxy_put(&env->no_proxy, job->rendezvous_addr, job->master_addr, &env->table, &env->owned);
    reserve_rank_variables(env);
    env->has_status = env_table_value(&env->table, STATUS_URL) != NULL ||
                      env_table_value(&env->table, STATUS_TOKEN) != NULL ||
                      env_table_value(&env->table, STATUS_CA_CERT) != NULL;
    return env;
}

void node_env_destroy(struct node_env *env)
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
