/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/start/prepare_parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "driver/start/machines.h"

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
        Hvdrun__Limit *message = &parts->limits[parts->limit_count];
        *message = (Hvdrun__Limit)HVDRUN__LIMIT__INIT;
        message->resource = (uint32_t)resources[i];
        message->soft = resources[i] == RLIMIT_NOFILE ? job->open_files : (uint64_t)limit.rlim_cur;
        parts->limit_pointers[parts->limit_count++] = message;
    }
}

char *prepare_folder(const struct job *job, const char *wdir)
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
        parts->wdirs[i] = app->wdir == NULL ? mem_strdup("") : prepare_folder(job, app->wdir);
        message->wdir = parts->wdirs[i];
        enum mpi_kind mpi = epoch->beside_others ? MPI_NONE : (enum mpi_kind)job->settings->mpi;
        message->mpi = (char *)mpi_kind_name(mpi);
    }
    parts->app_sizes = mem_array(apps->count, sizeof(uint32_t));
    for (int rank = 0; rank < epoch->plan->size; rank++)
        parts->app_sizes[epoch->plan->ranks[rank].app]++;
    for (size_t i = 0; i < apps->count; i++)
        parts->apps[i].np = parts->app_sizes[i];
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
    parts->host_count = count;
    parts->hosts = mem_array(count, sizeof(char *));
    parts->host_ranks = mem_array(count, sizeof(uint32_t));
    for (size_t i = 0; i < count; i++) {
        parts->hosts[i] = plan->nodes[i].name;
        parts->host_ranks[i] = (uint32_t)plan->nodes[i].local_size;
    }
}

static void fill_rank_nodes(const struct plan *plan, struct prepare_parts *parts)
{
    if (plan_is_by_blocks(plan))
        return;
    size_t size = (size_t)plan->size;
    parts->rank_nodes = mem_array(size, sizeof(*parts->rank_nodes));
    for (size_t rank = 0; rank < size; rank++)
        parts->rank_nodes[rank] = (uint32_t)plan->ranks[rank].node;
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
    char **names = mem_array((size_t)count, sizeof(*names));
    for (int i = 0; i < count; i++)
        names[i] = epoch->places[i]->hello->hostname;
    if (all_different(names, count))
        parts->hostnames = names;
    else
        free(names);
}

void prepare_parts_fill(const struct job *job, const struct prepare_epoch *epoch,
                        struct prepare_parts *parts)
{
    parts->shares = mem_array((size_t)epoch->plan->node_count, sizeof(*parts->shares));
    fill_limits(job, parts);
    fill_apps(job, epoch, parts);
    fill_workers(epoch, parts);
    fill_hosts(epoch->plan, parts);
    parts->cpu_ranks = machines_count_ranks(epoch);
    fill_rank_nodes(epoch->plan, parts);
    if (epoch->number == 1) /* what was read cannot be read again */
        fill_stdin(job, epoch, parts);
    AUTO_BUF struct buf interfaces = BUF_INIT(4096);
    const struct strv *names = &job->settings->network_interfaces;
    for (size_t i = 0; i < names->count; i++)
        buf_printf(&interfaces, "%s%s", i > 0 ? "," : "", names->items[i]);
    parts->interfaces = mem_strdup(buf_text(&interfaces));
    fill_hostnames(epoch, parts);
    parts->wdir = prepare_folder(job, job->settings->wdir == NULL ? "" : job->settings->wdir);
}

void prepare_parts_free(struct prepare_parts *parts)
{
    for (size_t i = 0; i < parts->app_count; i++)
        strv_destroy(&parts->envs[i]);
    for (size_t i = 0; i < parts->app_count; i++)
        free(parts->wdirs[i]);
    free(parts->wdirs);
    free(parts->envs);
    free(parts->apps);
    free(parts->app_pointers);
    for (size_t i = 0; parts->addresses != NULL && i < parts->host_count; i++)
        free(parts->addresses[i]);
    free(parts->addresses);
    free(parts->hosts);
    free(parts->host_ranks);
    free(parts->cpu_ranks);
    free(parts->rank_nodes);
    free(parts->workers);
    free(parts->worker_pointers);
    free(parts->app_sizes);
    free(parts->stdin_seats);
    free(parts->shares);
    free(parts->interfaces);
    free(parts->hostnames);
    free(parts->wdir);
}
