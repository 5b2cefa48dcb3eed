/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/start/start.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "driver/end/teardown.h"
#include "driver/job/job_kind.h"
#include "driver/job/job_nodes.h"
#include "driver/job/part.h"
#include "driver/reach/reach.h"
#include "io/send_queue.h"
#include "model/net/network.h"
#include "output/terminal.h"
#include "wire/control.pb-c.h"
#include "wire/packing.h"

/*
 * The lists in PREPARE, in the form of its messages: made once for all nodes; each node gets its
 * share.
 */

#define PREPARE_LIMITS_MAX 16
/* The share of one node. */
struct node_share {
    size_t first_worker, workers;
    size_t first_stdin, stdin_count;
};

/* Everything in it lives as long as the struct; what it does not own belongs to the job. */
struct prepare_parts {
    Hvdrun__Prepare common;                   /* the fields that are the same for all nodes */
    Hvdrun__Limit limits[PREPARE_LIMITS_MAX]; /* the soft limits of the user's shell */
    Hvdrun__Limit *limit_pointers[PREPARE_LIMITS_MAX];
    Hvdrun__App *apps;
    Hvdrun__App **app_pointers;
    struct strv *envs;       /* by app: the user's -x, then the app's own */
    char **wdirs;            /* by app; "": the job's */
    struct strv hosts;       /* packed, as the three below (wire/packing.h) */
    struct strv hostnames;   /* as MPI knows the nodes; none: by their names in `hosts` */
    struct strv addresses;   /* for the workers' own traffic */
    int *cpu_ranks;          /* by node: ranks that use its CPUs, those of its twins too */
    Hvdrun__Worker *workers; /* to be started: those of node 0, in the order of their ranks, ... */
    Hvdrun__Worker **worker_pointers;
    uint32_t *stdin_seats;     /* those of node 0, of node 1, ... */
    struct node_share *shares; /* by node */
    char *wdir;                /* of the job, absolute */
};

static void fill_limits(const struct job *job, struct prepare_parts *parts)
{
    static const int resources[] = {RLIMIT_CORE,      RLIMIT_DATA,  RLIMIT_FSIZE, RLIMIT_MEMLOCK,
                                    RLIMIT_NOFILE,    RLIMIT_STACK, RLIMIT_AS,    RLIMIT_CPU,
                                    RLIMIT_NPROC,     RLIMIT_RSS,   RLIMIT_NICE,  RLIMIT_RTPRIO,
                                    RLIMIT_SIGPENDING};
    for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)resources[i], &limit) < 0)
            continue;
        Hvdrun__Limit *message = &parts->limits[parts->common.n_limits];
        *message = (Hvdrun__Limit)HVDRUN__LIMIT__INIT;
        message->resource = (uint32_t)resources[i];
        message->soft = resources[i] == RLIMIT_NOFILE ? job->open_files : (uint64_t)limit.rlim_cur;
        parts->limit_pointers[parts->common.n_limits++] = message;
    }
    parts->common.limits = parts->limit_pointers;
}

/* A folder as every node gets it: below our working directory if it is relative. The caller
 * frees it. */
static char *prepare_folder(const struct job *job, const char *wdir)
{
    if (wdir[0] == '/')
        return mem_strdup(wdir);
    return mem_printf("%s%s%s", job->request->wdir, wdir[0] == '\0' ? "" : "/", wdir);
}

static void fill_apps(const struct job *job, const struct prepare_epoch *epoch,
                      struct prepare_parts *parts)
{
    const struct app_list *apps = epoch->world != NULL ? epoch->world->apps : job->request->apps;
    parts->apps = mem_array(apps->count, sizeof(*parts->apps));
    parts->envs = mem_array(apps->count, sizeof(*parts->envs));
    parts->wdirs = mem_array(apps->count, sizeof(char *));
    parts->app_pointers = mem_array(apps->count, sizeof(Hvdrun__App *));
    parts->common.apps = parts->app_pointers;
    parts->common.n_apps = parts->common.n_app_sizes = apps->count;
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
        parts->wdirs[i] = app->wdir == NULL ? mem_strdup("") : prepare_folder(job, app->wdir);
        message->wdir = parts->wdirs[i];
        enum mpi_kind mpi = epoch->world != NULL   ? epoch->world->mpi
                            : epoch->beside_others ? MPI_NONE
                                                   : (enum mpi_kind)job->settings->mpi;
        message->mpi = (char *)mpi_kind_name(mpi);
    }
    uint32_t *sizes = parts->common.app_sizes = mem_array(apps->count, sizeof(*sizes));
    for (int rank = 0; rank < epoch->plan->size; rank++)
        sizes[epoch->plan->ranks[rank].app]++;
    for (size_t i = 0; i < apps->count; i++)
        parts->apps[i].np = sizes[i];
}

static int seat_of(const struct prepare_epoch *epoch, int rank)
{
    return epoch->members == NULL ? rank : epoch->members[rank].seat;
}

static void fill_worker(Hvdrun__Worker *message, const struct prepare_epoch *epoch,
                        const struct plan_rank *rank)
{
    const struct elastic_member *member =
        epoch->members == NULL ? NULL : &epoch->members[rank->rank];
    *message = (Hvdrun__Worker)HVDRUN__WORKER__INIT;
    message->rank = (uint32_t)rank->rank;
    message->app = (uint32_t)rank->app;
    message->app_rank = (uint32_t)rank->app_rank;
    message->cross_rank = (uint32_t)rank->cross_rank;
    message->cross_size = (uint32_t)rank->cross_size;
    message->local_rank = (uint32_t)rank->local_rank;
    message->seat = (uint32_t)seat_of(epoch, rank->rank);
    message->slot = (uint32_t)(member == NULL ? rank->local_rank : member->slot);
    if (rank->cpus != NULL)
        message->cpus = rank->cpus;
}

static void fill_workers(const struct prepare_epoch *epoch, struct prepare_parts *parts)
{
    const struct plan *plan = epoch->plan;
    size_t size = (size_t)plan->size, count = 0;
    parts->workers = mem_array(size, sizeof(*parts->workers));
    parts->worker_pointers = mem_array(size, sizeof(Hvdrun__Worker *));
    for (int n = 0; n < plan->node_count; n++) {
        const struct plan_node *node = &plan->nodes[n];
        struct node_share *share = &parts->shares[n];
        share->first_worker = count;
        for (int i = 0; i < node->local_size; i++) {
            int rank = node->ranks[i];
            if (epoch->members != NULL && !epoch->members[rank].is_new)
                continue;
            parts->worker_pointers[count] = &parts->workers[count];
            fill_worker(&parts->workers[count], epoch, &plan->ranks[rank]);
            count++;
        }
        share->workers = count - share->first_worker;
    }
}

static void fill_hosts(const struct plan *plan, struct prepare_parts *parts)
{
    size_t count = (size_t)plan->node_count;
    char **names AUTO_FREE = mem_array(count, sizeof(char *));
    uint32_t *ranks AUTO_FREE = mem_array(count, sizeof(uint32_t));
    for (size_t i = 0; i < count; i++) {
        names[i] = plan->nodes[i].name;
        ranks[i] = (uint32_t)plan->nodes[i].local_size;
    }
    text_runs_pack(names, count, &parts->hosts);
    parts->common.hosts = parts->hosts.items;
    parts->common.n_hosts = parts->hosts.count;
    parts->common.host_ranks = mem_array(2 * count, sizeof(uint32_t));
    parts->common.n_host_ranks = number_runs_pack(ranks, count, parts->common.host_ranks);
}

static void fill_rank_nodes(const struct plan *plan, struct prepare_parts *parts)
{
    if (plan_is_by_blocks(plan))
        return; /* the ranks of each node follow each other */
    parts->common.n_rank_nodes = (size_t)plan->size;
    parts->common.rank_nodes = mem_array((size_t)plan->size, sizeof(uint32_t));
    for (int rank = 0; rank < plan->size; rank++)
        parts->common.rank_nodes[rank] = (uint32_t)plan->ranks[rank].node;
}

static void fill_stdin(const struct job *job, const struct prepare_epoch *epoch,
                       struct prepare_parts *parts)
{
    const struct plan *plan = epoch->plan;
    int64_t wanted = job_stdin_rank(job);
    size_t count = 0;
    parts->stdin_seats = mem_array((size_t)plan->size, sizeof(uint32_t));
    for (int n = 0; n < plan->node_count; n++) {
        const struct plan_node *node = &plan->nodes[n];
        parts->shares[n].first_stdin = count;
        for (int i = 0; i < node->local_size; i++) {
            int rank = node->ranks[i];
            if (wanted == SET_RANK_ALL || wanted == rank)
                parts->stdin_seats[count++] = (uint32_t)seat_of(epoch, rank);
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

/* MPI tells nodes apart by their host names, and looks these up in the names of its shared
 * memory. If the names are not different (simulated hosts), it gets ours. */
static void fill_hostnames(const struct prepare_epoch *epoch, struct prepare_parts *parts)
{
    int count = epoch->plan->node_count;
    char **names AUTO_FREE = mem_array((size_t)count, sizeof(*names));
    for (int i = 0; i < count; i++)
        names[i] = epoch->places[i]->hello->hostname;
    if (!all_different(names, count))
        return;
    text_runs_pack(names, (size_t)count, &parts->hostnames);
    parts->common.hostnames = parts->hostnames.items;
    parts->common.n_hostnames = parts->hostnames.count;
}

/* `parts` is empty. All nodes of the plan have said HELLO. prepare_send() adds the
 * addresses. */
static void prepare_parts_fill(const struct job *job, const struct prepare_epoch *epoch,
                               struct prepare_parts *parts)
{
    parts->common = (Hvdrun__Prepare)HVDRUN__PREPARE__INIT;
    parts->common.size = (uint32_t)epoch->plan->size;
    parts->shares = mem_array((size_t)epoch->plan->node_count, sizeof(*parts->shares));
    fill_limits(job, parts);
    fill_apps(job, epoch, parts);
    fill_workers(epoch, parts);
    fill_hosts(epoch->plan, parts);
    parts->cpu_ranks = machines_count_ranks(job, epoch);
    fill_rank_nodes(epoch->plan, parts);
    if (epoch->number == 1) /* what was read cannot be read again */
        fill_stdin(job, epoch, parts);
    const struct strv *names = &job->settings->network_interfaces;
    parts->common.interfaces = strv_join(names->items, names->count, ",");
    fill_hostnames(epoch, parts);
    parts->wdir = prepare_folder(job, job->settings->wdir == NULL ? "" : job->settings->wdir);
}

static void prepare_parts_free(struct prepare_parts *parts)
{
    for (size_t i = 0; i < parts->common.n_apps; i++) {
        strv_destroy(&parts->envs[i]);
        free(parts->wdirs[i]);
    }
    free(parts->wdirs);
    free(parts->envs);
    free(parts->apps);
    free(parts->app_pointers);
    strv_destroy(&parts->addresses);
    strv_destroy(&parts->hosts);
    strv_destroy(&parts->hostnames);
    free(parts->common.host_ranks);
    free(parts->cpu_ranks);
    free(parts->common.rank_nodes);
    free(parts->workers);
    free(parts->worker_pointers);
    free(parts->common.app_sizes);
    free(parts->stdin_seats);
    free(parts->shares);
    free(parts->common.interfaces);
    free(parts->wdir);
}

static void fill_binding(Hvdrun__Prepare *message, const struct job *job, const struct plan *plan)
{
    const struct settings *settings = job->settings;
    int64_t mapped = plan->cpus_per_proc; /* --map-by slot:PE=N */
    message->bind = (uint32_t)settings->bind_to;
    message->report_bindings = settings->report_bindings;
    message->cpus_per_proc = (uint32_t)(mapped > 0 ? mapped : settings->cpus_per_proc);
    message->map_unit = plan->round_numa ? 1 : 0;
    /* a round over the memory nodes means nothing to workers that are not bound to one */
    if (plan->round_numa && !settings_is_set(settings, OPT_bind_to))
        message->bind = BIND_NUMA;
    message->gpus_per_proc = (uint32_t)settings->gpus_per_proc;
    message->nic_hints = settings->nic_hints;
}

/* The fields that are the same for all nodes: packed once, because with thousands of hosts their
 * names are most of PREPARE. `remote`: for the nodes that are other machines. */
static struct shared_block *pack_common(const struct job *job, const struct prepare_epoch *epoch,
                                        const struct prepare_parts *parts, bool remote)
{
    const struct settings *settings = job->settings;
    const struct strv *env = remote ? job->request->away_env : job->request->base_env;
    Hvdrun__Prepare message = parts->common;
    fill_binding(&message, job, epoch->plan);
    message.elastic = job->kind->many_epochs;
    message.restart_count = (uint32_t)epoch->restart_count;
    message.max_restarts = job->kind->many_epochs ? (uint32_t)settings->max_restarts : 0;
    message.remote = remote;
    message.base_env = env->items;
    message.n_base_env = env->count;
    message.knobs = job->request->knobs->items;
    message.n_knobs = job->request->knobs->count;
    message.mpi_controller = settings->controller == SET_CONTROLLER_MPI;
    message.keep_scheduler_env = settings->keep_scheduler_env;
    message.master_port = (uint32_t)settings->master_port;
    message.hold_port = settings->port_hold;
    message.pty_seat = settings->pty >= 0 ? (int32_t)settings->pty : -1;
    message.stdout_terminals = settings->pty == SET_RANK_ALL;
    message.mpi_terminals = settings->pty == SET_RANK_AUTO;
    message.merge_stderr = settings->merge_stderr;
    for (int i = 0; !job->kind->many_epochs && i < job->plan->node_count; i++)
        message.universe_size += (uint32_t)job_node_slots(job, i);
    if (epoch->world != NULL) {
        message.first_seat = (uint32_t)epoch->world->first_seat;
        message.parent_epoch = epoch->world->parent_epoch;
        message.parent_rank = (uint32_t)epoch->world->parent_rank;
        message.preput = epoch->world->preput->items;
        message.n_preput = epoch->world->preput->count;
    }
    terminal_size(&message.terminal_rows, &message.terminal_columns);
    PARTS_TELL(job, prepare, &message);
    struct shared_block *block = shared_block_create(hvdrun__prepare__get_packed_size(&message));
    hvdrun__prepare__pack(&message, block->bytes);
    return block;
}

/* The settings of its workers in the host list, and the working directory of all. Returns a text
 * that the message borrows; NULL: none. */
static char *fill_host_traits(Hvdrun__Prepare *message, const struct job *job,
                              const struct node_link *node, const struct host_traits *traits,
                              const struct prepare_parts *parts)
{
    /* even if it lost its name */
    bool is_here = job->settings->wdir == NULL && node->stream.same_machine;
    char *wdir = traits->wdir == NULL ? NULL : prepare_folder(job, traits->wdir);
    message->host_env = traits->env.items;
    message->n_host_env = traits->env.count;
    message->wdir = wdir != NULL ? wdir : is_here ? (char *)"" : parts->wdir;
    return wdir;
}

/* Adds the fields of one node, of which `common` has none. */
static void send_prepare(struct shared_block *common, const struct job *job,
                         const struct prepare_epoch *epoch, int index,
                         const struct prepare_parts *parts)
{
    struct node_link *node = epoch->places[index];
    const struct plan_node *place = &epoch->plan->nodes[index];
    const struct node_share *share = &parts->shares[index];
    Hvdrun__Prepare message = HVDRUN__PREPARE__INIT;
    message.node_index = (uint32_t)index;
    message.host = place->name;
    message.local_size = (uint32_t)place->local_size;
    message.cpu_ranks = (uint32_t)parts->cpu_ranks[index];
    message.workers = parts->worker_pointers + share->first_worker;
    message.n_workers = share->workers;
    if (parts->stdin_seats != NULL)
        message.stdin_seats = parts->stdin_seats + share->first_stdin;
    message.n_stdin_seats = share->stdin_count;
    message.wants_master = !epoch->beside_others && epoch->plan->ranks[0].node == index;
    char *node_wdir AUTO_FREE = fill_host_traits(&message, job, node, &place->traits, parts);
    node_link_send_shared(node, FRAME_PREPARE, epoch->number, &message.base, 0, common);
}

/* The address for workers on other machines. In later epochs a worker keeps the interface with
 * which it started. */
static bool others_may_join(const struct job *job)
{
    const struct settings *settings = job->settings;
    if (!job->kind->many_epochs || settings->transport == SET_TRANSPORT_LOCAL)
        return false;
    bool any = settings->host_discovery_script != NULL || settings->hosts_watch != NULL;
    for (int i = 0; i < job->node_count && !any; i++)
        any = !reach_is_near(job, job->nodes[i]);
    return any;
}

/* false: the hosts do not share a network that the user allows; the job ends. */
static bool choose_addresses(struct job *job, const struct prepare_epoch *epoch,
                             struct prepare_parts *parts)
{
    size_t count = (size_t)epoch->plan->node_count;
    struct network_node *nodes AUTO_FREE = mem_array(count, sizeof(*nodes));
    char **addresses AUTO_FREE = mem_array(count, sizeof(char *));
    for (size_t i = 0; i < count; i++) {
        const struct node_link *node = epoch->places[i];
        nodes[i] = (struct network_node){.name = node->host,
                                         .boot_id = node->hello->boot_id,
                                         .interfaces = node->hello->interfaces,
                                         .interface_count = node->hello->n_interfaces,
                                         .reached_by = node->stream.peer};
    }
    struct error err = ERROR_INIT;
    const struct strv *allowed = &job->settings->network_interfaces;
    if (network_choose(nodes, (int)count, others_may_join(job),
                       allowed->count > 0 ? allowed->items : NULL, addresses, &err) < 0) {
        teardown_launcher(job, err.status, err.text);
        return false;
    }
    text_runs_pack(addresses, count, &parts->addresses);
    parts->common.addresses = parts->addresses.items;
    parts->common.n_addresses = parts->addresses.count;
    for (size_t i = 0; i < count; i++)
        free(addresses[i]);
    return true;
}

bool prepare_concerns(const struct prepare_epoch *epoch, int place)
{
    if (epoch->world != NULL) /* all nodes know all worlds, as MPI may connect them */
        return true;
    const struct plan_node *node = &epoch->plan->nodes[place];
    if (epoch->members == NULL && node->local_size == 0) /* for worlds that come later */
        return true;
    for (int i = 0; i < node->local_size; i++) {
        if (epoch->members == NULL || epoch->members[node->ranks[i]].is_new)
            return true;
    }
    return false;
}

bool prepare_send(struct job *job, const struct prepare_epoch *epoch)
{
    struct prepare_parts parts = {.shares = NULL};
    prepare_parts_fill(job, epoch, &parts);
    bool agreed = choose_addresses(job, epoch, &parts);
    if (agreed)
        machines_warn(job, epoch);
    struct shared_block *common[2] = {NULL, NULL};
    for (int i = 0; agreed && i < epoch->plan->node_count; i++) {
        if (!prepare_concerns(epoch, i))
            continue;
        bool remote = !epoch->places[i]->stream.same_machine;
        if (common[remote] == NULL)
            common[remote] = pack_common(job, epoch, &parts, remote);
        send_prepare(common[remote], job, epoch, i, &parts);
    }
    shared_block_release(common[false]);
    shared_block_release(common[true]);
    prepare_parts_free(&parts);
    return agreed;
}
