/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/prepare.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "base/status.h"
#include "driver/elastic_part.h"
#include "driver/reach.h"
#include "driver/teardown.h"
#include "model/network.h"
#include "output/terminal.h"

/* The soft limits of the user's shell, which the agent gives to its workers. */
static size_t fill_limits(const struct job *job, Hvdrun__Limit *limits, Hvdrun__Limit **pointers)
{
    static const int resources[] = {RLIMIT_CORE,      RLIMIT_DATA,  RLIMIT_FSIZE, RLIMIT_MEMLOCK,
                                    RLIMIT_NOFILE,    RLIMIT_STACK, RLIMIT_AS,    RLIMIT_CPU,
                                    RLIMIT_NPROC,     RLIMIT_RSS,   RLIMIT_NICE,  RLIMIT_RTPRIO,
                                    RLIMIT_SIGPENDING};
    size_t count = 0;
    for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)resources[i], &limit) < 0)
            continue;
        limits[count] = (Hvdrun__Limit)HVDRUN__LIMIT__INIT;
        limits[count].resource = (uint32_t)resources[i];
        limits[count].soft =
            resources[i] == RLIMIT_NOFILE ? job->open_files : (uint64_t)limit.rlim_cur;
        pointers[count] = &limits[count];
        count++;
    }
    return count;
}

#define LIMITS_MAX 16

/* Which part of the lists is for one node. */
struct node_share {
    size_t first_worker, workers;
    size_t first_stdin, stdin_count;
};

/* What PREPARE says to every node alike; the arrays live as long as this struct. */
struct prepare_parts {
    Hvdrun__Limit limits[LIMITS_MAX];
    Hvdrun__Limit *limit_pointers[LIMITS_MAX];
    Hvdrun__App *apps;
    Hvdrun__App **app_pointers;
    struct strv *envs; /* by app: the user's -x, then the app's own */
    char **wdirs;      /* by app; "": the job's */
    size_t app_count;
    char **hosts;
    uint32_t *host_ranks;
    uint32_t *rank_nodes;    /* NULL: the ranks of each node follow each other */
    Hvdrun__Worker *workers; /* to be started: those of node 0, in the order of their ranks, ... */
    Hvdrun__Worker **worker_pointers;
    uint32_t *app_sizes;
    uint32_t *stdin_ranks;     /* those of node 0, of node 1, ... */
    struct node_share *shares; /* by node */
    char *interfaces;
    char **hostnames; /* as MPI knows the nodes; borrowed */
    char *wdir;       /* of the job, absolute */
};

/* A folder as every node can be told it: below ours when it is relative. The caller owns it. */
static char *absolute(const struct job *job, const char *wdir)
{
    if (wdir[0] == '/')
        return mem_strdup(wdir);
    return mem_printf("%s%s%s", job->request->wdir, wdir[0] == '\0' ? "" : "/", wdir);
}

static void fill_apps(const struct job *job, const struct prepare_epoch *epoch,
                      struct prepare_parts *parts)
{
    const struct app_list *apps = job->request->apps;
    parts->apps = mem_array(apps->count, sizeof(*parts->apps));
    parts->envs = mem_array(apps->count, sizeof(*parts->envs));
    parts->wdirs = mem_array(apps->count, sizeof(char *));
    parts->app_count = apps->count;
    parts->app_pointers = mem_array(apps->count, sizeof(Hvdrun__App *));
    for (size_t i = 0; i < apps->count; i++) {
        const struct app *app = &apps->items[i];
        Hvdrun__App *message = parts->app_pointers[i] = &parts->apps[i];
        *message = (Hvdrun__App)HVDRUN__APP__INIT;
        message->argv = app->argv.items;
        message->n_argv = app->argv.count;
        struct strv *env = &parts->envs[i];
        strv_copy(env, job->settings->env.items);
        for (size_t j = 0; j < app->env.count; j++)
            strv_env_put(env, app->env.items[j]);
        message->env = env->items;
        message->n_env = env->count;
        parts->wdirs[i] = app->wdir == NULL ? mem_strdup("") : absolute(job, app->wdir);
        message->wdir = parts->wdirs[i];
        enum mpi_kind mpi = epoch->beside_others ? MPI_NONE : (enum mpi_kind)job->settings->mpi;
        message->mpi = (char *)mpi_kind_name(mpi);
    }
    parts->app_sizes = mem_array(apps->count, sizeof(uint32_t));
    for (int rank = 0; rank < job->plan->size; rank++)
        parts->app_sizes[job->plan->ranks[rank].app]++;
    for (size_t i = 0; i < apps->count; i++)
        parts->apps[i].np = parts->app_sizes[i];
}

static void fill_worker(Hvdrun__Worker *message, const struct plan_rank *rank,
                        const struct elastic_member *member)
{
    *message = (Hvdrun__Worker)HVDRUN__WORKER__INIT;
    message->rank = (uint32_t)rank->rank;
    message->app = (uint32_t)rank->app;
    message->app_rank = (uint32_t)rank->app_rank;
    message->cross_rank = (uint32_t)rank->cross_rank;
    message->cross_size = (uint32_t)rank->cross_size;
    message->local_rank = (uint32_t)rank->local_rank;
    message->seat = (uint32_t)(member == NULL ? rank->rank : member->seat);
    message->slot = (uint32_t)(member == NULL ? rank->local_rank : member->slot);
    if (rank->cpus != NULL)
        message->cpus = rank->cpus;
}

static void fill_workers(const struct job *job, const struct prepare_epoch *epoch,
                         struct prepare_parts *parts)
{
    const struct plan *plan = job->plan;
    size_t size = (size_t)plan->size, count = 0;
    parts->workers = mem_array(size, sizeof(*parts->workers));
    parts->worker_pointers = mem_array(size, sizeof(Hvdrun__Worker *));
    for (int n = 0; n < plan->node_count; n++) {
        const struct plan_node *node = &plan->nodes[n];
        struct node_share *share = &parts->shares[n];
        share->first_worker = count;
        for (int i = 0; i < node->local_size; i++) {
            int rank = node->ranks[i];
            const struct elastic_member *member =
                epoch->members == NULL ? NULL : &epoch->members[rank];
            if (member != NULL && !member->is_new)
                continue;
            parts->worker_pointers[count] = &parts->workers[count];
            fill_worker(&parts->workers[count], &plan->ranks[rank], member);
            count++;
        }
        share->workers = count - share->first_worker;
    }
}

static void fill_hosts(const struct job *job, struct prepare_parts *parts)
{
    size_t count = (size_t)job->plan->node_count;
    parts->hosts = mem_array(count, sizeof(char *));
    parts->host_ranks = mem_array(count, sizeof(uint32_t));
    for (size_t i = 0; i < count; i++) {
        parts->hosts[i] = job->plan->nodes[i].name;
        parts->host_ranks[i] = (uint32_t)job->plan->nodes[i].local_size;
    }
}

static void fill_rank_nodes(const struct job *job, struct prepare_parts *parts)
{
    if (plan_is_by_blocks(job->plan))
        return;
    size_t size = (size_t)job->plan->size;
    parts->rank_nodes = mem_array(size, sizeof(*parts->rank_nodes));
    for (size_t rank = 0; rank < size; rank++)
        parts->rank_nodes[rank] = (uint32_t)job->plan->ranks[rank].node;
}

static void fill_stdin(const struct job *job, struct prepare_parts *parts)
{
    const struct plan *plan = job->plan;
    int64_t wanted = job_stdin_rank(job);
    size_t count = 0;
    parts->stdin_ranks = mem_array((size_t)plan->size, sizeof(uint32_t));
    for (int n = 0; n < plan->node_count; n++) {
        const struct plan_node *node = &plan->nodes[n];
        parts->shares[n].first_stdin = count;
        for (int i = 0; i < node->local_size; i++) {
            if (wanted == SET_RANK_ALL || wanted == node->ranks[i])
                parts->stdin_ranks[count++] = (uint32_t)node->ranks[i];
        }
        parts->shares[n].stdin_count = count - parts->shares[n].first_stdin;
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool all_different(char *const *names, int count)
{
    char **sorted AUTO_FREE = mem_array((size_t)count, sizeof(*sorted));
    memcpy(sorted, names, (size_t)count * sizeof(*sorted));
    qsort(sorted, (size_t)count, sizeof(*sorted), compare_names);
    bool different = true;
    for (int i = 1; i < count && different; i++)
        different = strcmp(sorted[i - 1], sorted[i]) != 0;
    return different;
}

/* MPI tells nodes apart by their host names, and looks them up in the names of its shared memory;
 * where they are not different (agents under made-up names), by ours. */
static void fill_hostnames(const struct job *job, struct prepare_parts *parts)
{
    int count = job->plan->node_count;
    parts->hostnames = mem_array((size_t)count, sizeof(char *));
    for (int i = 0; i < count; i++)
        parts->hostnames[i] = job->places[i]->hello->hostname;
    if (all_different(parts->hostnames, count))
        return;
    for (int i = 0; i < count; i++)
        parts->hostnames[i] = job->plan->nodes[i].name;
}

static void prepare_parts_fill(const struct job *job, const struct prepare_epoch *epoch,
                               struct prepare_parts *parts)
{
    parts->shares = mem_array((size_t)job->plan->node_count, sizeof(*parts->shares));
    fill_apps(job, epoch, parts);
    fill_workers(job, epoch, parts);
    fill_hosts(job, parts);
    fill_rank_nodes(job, parts);
    if (job->epoch == 1) /* what was read cannot be read again */
        fill_stdin(job, parts);
    AUTO_BUF struct buf interfaces = BUF_INIT(4096);
    const struct strv *names = &job->settings->network_interfaces;
    for (size_t i = 0; i < names->count; i++)
        buf_printf(&interfaces, "%s%s", i > 0 ? "," : "", names->items[i]);
    parts->interfaces = mem_strdup(buf_text(&interfaces));
    fill_hostnames(job, parts);
    parts->wdir = absolute(job, job->settings->wdir == NULL ? "" : job->settings->wdir);
}

static void prepare_parts_free(struct prepare_parts *parts)
{
    for (size_t i = 0; i < parts->app_count; i++)
        strv_destroy(&parts->envs[i]);
    for (size_t i = 0; i < parts->app_count; i++)
        free(parts->wdirs[i]);
    free(parts->wdirs);
    free(parts->envs);
    free(parts->apps);
    free(parts->app_pointers);
    free(parts->hosts);
    free(parts->host_ranks);
    free(parts->rank_nodes);
    free(parts->workers);
    free(parts->worker_pointers);
    free(parts->app_sizes);
    free(parts->stdin_ranks);
    free(parts->shares);
    free(parts->interfaces);
    free(parts->hostnames);
    free(parts->wdir);
}

/* Who is where, and what of it is this node's. */
static void fill_layout(Hvdrun__Prepare *message, const struct plan *plan, int place,
                        const struct prepare_parts *parts)
{
    const struct node_share *share = &parts->shares[place];
    message->hosts = parts->hosts;
    message->n_hosts = (size_t)plan->node_count;
    message->host_ranks = parts->host_ranks;
    message->n_host_ranks = (size_t)plan->node_count;
    message->rank_nodes = parts->rank_nodes;
    message->n_rank_nodes = parts->rank_nodes == NULL ? 0 : (size_t)plan->size;
    message->workers = parts->worker_pointers + share->first_worker;
    message->n_workers = share->workers;
    if (parts->stdin_ranks != NULL)
        message->stdin_ranks = parts->stdin_ranks + share->first_stdin;
    message->n_stdin_ranks = share->stdin_count;
}

static void fill_binding(Hvdrun__Prepare *message, const struct job *job)
{
    const struct settings *settings = job->settings;
    int64_t mapped = job->plan->cpus_per_proc; /* --map-by slot:PE=N */
    message->bind = (uint32_t)settings->bind_to;
    message->report_bindings = settings->report_bindings;
    message->cpus_per_proc = (uint32_t)(mapped > 0 ? mapped : settings->cpus_per_proc);
    message->map_unit = job->plan->round_numa ? 1 : 0;
    /* going round the memory nodes means nothing to workers that are bound to none */
    if (job->plan->round_numa && !settings_is_set(settings, OPT_bind_to))
        message->bind = BIND_NUMA;
    message->gpus_per_proc = (uint32_t)settings->gpus_per_proc;
    message->nic_hints = settings->nic_hints;
}

/* What the host list says of its workers, and the folder of all. Returns a text that the message
 * borrows; NULL: none. */
static char *fill_host_traits(Hvdrun__Prepare *message, const struct job *job,
                              const struct plan_node *node, const struct prepare_parts *parts)
{
    const struct host_traits *traits = &node->traits;
    bool is_here = job->settings->wdir == NULL && !message->remote; /* even if it lost its name */
    char *wdir = traits->wdir == NULL ? NULL : absolute(job, traits->wdir);
    message->host_env = traits->env.items;
    message->n_host_env = traits->env.count;
    message->wdir = wdir != NULL ? wdir : is_here ? (char *)"" : parts->wdir;
    return wdir;
}

static void send_prepare(struct job *job, const struct prepare_epoch *epoch, struct node_link *node,
                         struct prepare_parts *parts)
{
    const struct settings *settings = job->settings;
    const struct plan_node *place = &job->plan->nodes[node->place];
    Hvdrun__Prepare message = HVDRUN__PREPARE__INIT;
    message.size = (uint32_t)job->plan->size;
    message.node_index = (uint32_t)node->place;
    message.host = place->name;
    message.apps = parts->app_pointers;
    message.n_apps = job->request->apps->count;
    message.local_size = (uint32_t)place->local_size;
    message.app_sizes = parts->app_sizes;
    message.n_app_sizes = message.n_apps;
    message.elastic = epoch->members != NULL;
    message.restart_count = (uint32_t)epoch->restart_count;
    message.max_restarts = epoch->members != NULL ? (uint32_t)settings->max_restarts : 0;
    message.remote = !node->stream.same_machine;
    const struct strv *env = message.remote ? job->request->away_env : job->request->base_env;
    message.base_env = env->items;
    message.n_base_env = env->count;
    message.knobs = job->request->knobs->items;
    message.n_knobs = job->request->knobs->count;
    char *node_wdir AUTO_FREE = fill_host_traits(&message, job, place, parts);
    message.hostnames = parts->hostnames;
    message.n_hostnames = (size_t)job->plan->node_count;
    message.addresses = job->addresses;
    message.n_addresses = (size_t)job->plan->node_count;
    message.limits = parts->limit_pointers;
    message.n_limits = fill_limits(job, parts->limits, parts->limit_pointers);
    message.mpi_controller = settings->controller == SET_CONTROLLER_MPI;
    message.keep_scheduler_env = settings->keep_scheduler_env;
    message.wants_master = !epoch->beside_others && job->plan->ranks[0].node == node->place;
    message.master_port = (uint32_t)settings->master_port;
    message.hold_port = settings->port_hold;
    message.interfaces = parts->interfaces;
    message.pty_rank = settings->pty >= 0 ? (int32_t)settings->pty : -1;
    fill_layout(&message, job->plan, node->place, parts);
    fill_binding(&message, job);
    message.merge_stderr = settings->merge_stderr;
    terminal_size(&message.terminal_rows, &message.terminal_columns);
    node_link_send(node, FRAME_PREPARE, job->epoch, &message.base);
}

bool prepare_concerns(const struct job *job, const struct prepare_epoch *epoch, int place)
{
    const struct plan_node *node = &job->plan->nodes[place];
    for (int i = 0; i < node->local_size; i++) {
        if (epoch->members == NULL || epoch->members[node->ranks[i]].is_new)
            return true;
    }
    return false;
}

/* From other machines, in later epochs: a worker keeps the interface with which it was started. */
static bool others_may_join(const struct job *job)
{
    const struct settings *settings = job->settings;
    if (job->elastic == NULL || settings->transport == SET_TRANSPORT_LOCAL)
        return false;
    bool any = settings->host_discovery_script != NULL || settings->hosts_watch != NULL;
    for (int i = 0; i < job->node_count && !any; i++)
        any = !reach_is_near(job->reach, job->nodes[i]);
    return any;
}

/* false: the hosts have no network in common that the user allows; the job ends. */
static bool choose_addresses(struct job *job)
{
    size_t count = (size_t)job->plan->node_count;
    struct network_node *nodes AUTO_FREE = mem_array(count, sizeof(*nodes));
    for (int i = 0; i < job->address_count; i++)
        free(job->addresses[i]);
    free(job->addresses);
    job->addresses = mem_array(count, sizeof(char *));
    job->address_count = (int)count;
    for (size_t i = 0; i < count; i++) {
        const struct node_link *node = job->places[i];
        nodes[i] = (struct network_node){.name = node->host,
                                         .boot_id = node->hello->boot_id,
                                         .interfaces = node->hello->interfaces,
                                         .interface_count = node->hello->n_interfaces,
                                         .reached_by = node->stream.peer};
    }
    struct error err = ERROR_INIT;
    const struct strv *allowed = &job->settings->network_interfaces;
    if (network_choose(nodes, (int)count, others_may_join(job),
                       allowed->count > 0 ? allowed->items : NULL, job->addresses, &err) == 0)
        return true;
    teardown_launcher(job, err.status != 0 ? err.status : STATUS_LAUNCHER, err.text);
    return false;
}

bool prepare_send(struct job *job, const struct prepare_epoch *epoch)
{
    if (!choose_addresses(job))
        return false;
    struct prepare_parts parts = {.app_count = 0};
    prepare_parts_fill(job, epoch, &parts);
    for (int i = 0; i < job->plan->node_count; i++) {
        if (prepare_concerns(job, epoch, i))
            send_prepare(job, epoch, job->places[i], &parts);
    }
    prepare_parts_free(&parts);
    return true;
}
