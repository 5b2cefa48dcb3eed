/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/crew_setup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/modules.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "io/pty.h"
#include "node/ports.h"
#include "wire/control.pb-c.h"

/* Does the limit of open files leave room for a crew's workers? */

#define WHILE_SPAWNING 7 /* the worker's ends of its pipes, files that are read */

/* What stays open for one worker: its pidfd, its pipes, its connection to the MPI server. */
static uint64_t files_of(const Hvdrun__Prepare *prepare, const struct crew_apps *apps,
                         const Hvdrun__Worker *worker)
{
    uint64_t pipes = prepare->merge_stderr ? 1 : 2;
    return 1 + pipes + (apps->kinds[worker->app] == MPI_NONE ? 0 : 1);
}

/* Call it before anything runs: a job is useless if some of its ranks cannot start. -1: `err` says
 * how many files are needed and how many are allowed. */
static int crew_files_check(const Hvdrun__Prepare *prepare, const struct crew_apps *apps,
                            struct error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
        return 0;
    uint64_t allowed = (uint64_t)limit.rlim_cur, needed = WHILE_SPAWNING + prepare->n_stdin_seats;
    for (size_t i = 0; i < prepare->n_workers; i++)
        needed += files_of(prepare, apps, prepare->workers[i]);
    /* the kernel gives the lowest number that is free, so it is how many there are */
    int lowest AUTO_FD = fd_open("/dev/null", O_RDONLY | O_CLOEXEC, 0);
    if (lowest < 0 && errno != EMFILE)
        return error_errno(err, errno, "cannot open /dev/null");
    uint64_t used = lowest < 0 ? allowed : (uint64_t)lowest;
    if (used + needed <= allowed)
        return 0;
    return error_set(err,
                     "%zu ranks here need about %" PRIu64 " open files and the limit is %" PRIu64
                     ": raise the hard limit (ulimit -Hn), or run fewer ranks on a host",
                     prepare->n_workers, used + needed, allowed);
}

#define SLOT_MAX 1000000
#define TERMINALS_FOR_OTHERS 64

static void copy_lists(struct crew_setup *setup)
{
    const Hvdrun__Prepare *prepare = setup->prepare;
    for (size_t i = 0; i < prepare->n_knobs; i++)
        strv_add(&setup->knobs, prepare->knobs[i]);
    char **names AUTO_FREE = mem_array(prepare->n_hosts, sizeof(*names));
    setup->node_sizes = mem_array(prepare->n_hosts, sizeof(int));
    for (size_t i = 0; i < prepare->n_hosts; i++) {
        if (i == prepare->node_index)
            setup->node_index = setup->node_count;
        if (prepare->host_ranks[i] == 0)
            continue; /* workers do not hear of a node without ranks */
        names[setup->node_count] = prepare->hosts[i];
        setup->node_sizes[setup->node_count++] = (int)prepare->host_ranks[i];
    }
    setup->node_names = strv_join(names, setup->node_count, ",");
}

/* The soft limits of the user's shell, as far as workers do not inherit them from us: mostly none
 * or one, and each costs every worker two system calls. */
static void copy_limits(struct crew_setup *setup)
{
    const Hvdrun__Prepare *prepare = setup->prepare;
    setup->limits = mem_array(prepare->n_limits, sizeof(*setup->limits));
    for (size_t i = 0; i < prepare->n_limits; i++) {
        struct child_limit wanted = {(int)prepare->limits[i]->resource,
                                     (rlim_t)prepare->limits[i]->soft};
        struct rlimit ours;
        bool known = getrlimit((__rlimit_resource_t)wanted.resource, &ours) == 0;
        if (!known || ours.rlim_cur != wanted.soft)
            setup->limits[setup->limit_count++] = wanted;
    }
}

/* All jobs of NCCL have the same port for questions if nobody chooses, and then any of them
 * answers. Several workers share the port, so it cannot be held. */
static void choose_ras_port(struct crew_setup *setup, struct port_range clients)
{
    struct error none_free = ERROR_INIT;
    int fd AUTO_FD = port_hold(clients, 0, &setup->ras_port, &none_free);
    if (fd < 0)
        setup->ras_port = 0;
}

static int fill_ports(struct crew_setup *setup, struct error *err)
{
    const Hvdrun__Prepare *prepare = setup->prepare;
    bool gpus = setup->config->facts->gpu_driver;
    if (!gpus && !prepare->wants_master)
        return 0;
    struct port_range clients = port_range_read();
    if (gpus)
        choose_ras_port(setup, clients);
    if (!prepare->wants_master)
        return 0;
    setup->master_fd = port_hold(clients, (int)prepare->master_port, &setup->master_port, err);
    if (setup->master_fd < 0)
        return -1;
    setup->jax_fd = port_hold(clients, 0, &setup->jax_port, err);
    if (setup->jax_fd < 0)
        return -1;
    if (!prepare->hold_port) {
        fd_close(&setup->master_fd);
        fd_close(&setup->jax_fd);
    }
    return 0;
}

static bool uses_pmix(const struct crew_setup *setup)
{
    bool uses = false;
    for (size_t i = 0; i < setup->prepare->n_apps; i++)
        uses = uses || setup->apps.kinds[i] == MPI_PMIX;
    return uses;
}

/* Without an MPI that was surely found, PMIx was only offered in case: the job runs without it. */
static int fill_mpi(struct crew_setup *setup, const struct mpi_job_ops *ops, void *context,
                    struct error *err)
{
    const struct crew_config *config = setup->config;
    if (config->mpi == NULL)
        return 0;
    bool uses = uses_pmix(setup);
    const char *module = uses ? modules_find(config->modules, "hvdrun-pmix.so", err) : NULL;
    if (uses) {
        struct error no_shm = ERROR_INIT;
        setup->shm_dir = runtime_dir_create_in(RUNTIME_DIR_SHARED_MEMORY, &no_shm);
        if (setup->shm_dir == NULL)
            log_info(&config->post->log, "%s; MPI ranks use their own", no_shm.text);
    }
    struct mpi_job job = {.post = config->post,
                          .prepare = setup->prepare,
                          .places = &setup->places,
                          .ops = ops,
                          .context = context,
                          .kinds = setup->apps.kinds,
                          .reasons = strv_items(&setup->apps.reasons),
                          .app_np = setup->apps.np,
                          .module_path = module,
                          .shm_dir =
                              setup->shm_dir == NULL ? NULL : runtime_dir_path(setup->shm_dir),
                          .hostname = config->facts->hostname,
                          .job_id = config->job_id,
                          .binding = setup->binding.cpus,
                          .oversubscribed = setup->cpu_ranks > node_facts_cpus(config->facts)};
    if (!uses || module != NULL)
        setup->mpi = mpi_world_create(config->mpi, &job, err);
    if (setup->mpi != NULL || setup->apps.needs_mpi)
        return setup->mpi != NULL ? 0 : -1;
    /* That a host has no PMIx library is no trouble of the user; a place without space is. */
    log_print(&config->post->log, err->errnum != 0 ? LOG_WARNING : LOG_INFO,
              "%s; hvdrun continues without PMIx, which a script may not need", err->text);
    for (size_t i = 0; i < setup->prepare->n_apps; i++) {
        if (setup->apps.kinds[i] == MPI_NONE)
            continue;
        setup->apps.kinds[i] = MPI_NONE;
        mem_replace(&setup->apps.reasons.items[i], "could not get PMIx on this host");
    }
    setup->mpi = mpi_world_create(config->mpi, &job, err);
    return setup->mpi != NULL ? 0 : -1;
}

/* The interfaces for the workers' own traffic: by the routes to the other nodes. A driver that does
 * not say their addresses has one machine only. */
static void choose_interfaces(struct crew_setup *setup)
{
    const Hvdrun__Prepare *prepare = setup->prepare;
    const struct node_facts *facts = setup->config->facts;
    AUTO_STRV struct strv words = STRV_INIT, peers = STRV_INIT;
    strv_split(&words, prepare->interfaces, ",");
    for (size_t i = 0; i < prepare->n_addresses; i++) {
        if (i != prepare->node_index)
            strv_add(&peers, prepare->addresses[i]);
    }
    bool told = prepare->node_index < prepare->n_addresses;
    struct route_request request = {.own = facts->addresses,
                                    .own_count = facts->address_count,
                                    .peers = peers.items,
                                    .peer_count = peers.count,
                                    .told = told ? prepare->addresses[prepare->node_index] : NULL,
                                    .filter = strv_items(&words)};
    route_choose(&request, &setup->route);
    bool says = setup->route.include != NULL || setup->route.exclude != NULL;
    if (!says || !mpi_params_choose_tcp(strv_env_get(&setup->apps.base_env, "HOME"),
                                        strv_env_get(&setup->apps.base_env, "PATH")))
        return;
    route_leave_subnets(&setup->route);
}

static bool wants_terminals(const struct crew_setup *setup)
{
    bool wants = setup->prepare->stdout_terminals;
    for (size_t i = 0; i < setup->apps.count && setup->prepare->mpi_terminals; i++)
        wants = wants || setup->apps.items[i].links_mpi;
    return wants;
}

/* Others on this host need some too, so each start may still fail. Nobody asked for those of MPI
 * programs, so they must leave enough for logins and other jobs. */
static int check_terminals(struct crew_setup *setup, struct error *err)
{
    size_t count = setup->prepare->n_workers;
    int64_t left = wants_terminals(setup) ? pty_left() : -1;
    if (left >= 0 && (uint64_t)left < count + TERMINALS_FOR_OTHERS)
        setup->no_terminal = ENOSPC;
    if (!setup->prepare->stdout_terminals || left < 0 || (uint64_t)left >= count)
        return 0;
    return error_status(err, STATUS_LAUNCHER,
                        "%zu ranks need a terminal each, but this host allows only %" PRId64
                        " more; raise kernel.pty.max, or use --pty for one rank only",
                        count, left);
}

int crew_setup_fill(struct crew_setup *setup, const struct crew_config *config,
                    Hvdrun__Prepare *prepare, const struct mpi_job_ops *mpi_ops, void *context,
                    struct error *err)
{
    struct error no_dir = ERROR_INIT;
    *setup = (struct crew_setup){.config = config,
                                 .prepare = prepare,
                                 .runtime_dir = config->folder,
                                 .apps = {.problem = -1},
                                 .master_fd = -1,
                                 .jax_fd = -1};
    if (config->problem != NULL)
        return error_set(err, "%s", config->problem);
    if (prepare->n_apps == 0) /* the workers may all be on other nodes */
        return error_set(err, "a plan without programs");
    for (size_t i = 0; i < prepare->n_workers; i++) {
        if (prepare->workers[i]->app >= prepare->n_apps)
            return error_set(err, "a worker without an app");
        if (prepare->workers[i]->slot >= SLOT_MAX)
            return error_set(err, "a worker in slot %u", prepare->workers[i]->slot);
    }
    if (rank_places_read(prepare, &setup->places, err) < 0)
        return -1;
    setup->cpu_ranks =
        (int)(prepare->cpu_ranks > prepare->local_size ? prepare->cpu_ranks : prepare->local_size);
    copy_lists(setup);
    copy_limits(setup);
    if (setup->runtime_dir != NULL && access(runtime_dir_path(setup->runtime_dir), W_OK) < 0) {
        runtime_dir_destroy(setup->runtime_dir); /* whoever cleans /tmp was there first */
        setup->runtime_dir = NULL;
    }
    if (setup->runtime_dir == NULL)
        setup->runtime_dir = runtime_dir_create(&no_dir);
    if (setup->runtime_dir == NULL)
        log_info(&config->post->log, "%s", no_dir.text);
    else
        setup->deadline_file =
            mem_printf("%s/" DEADLINE_FILE_NAME, runtime_dir_path(setup->runtime_dir));
    int apps = crew_apps_fill(&setup->apps, prepare, config->mpi != NULL, &config->post->log, err);
    choose_interfaces(setup); /* by the PATH and HOME of the workers */
    if (apps < 0 || check_terminals(setup, err) < 0 || fill_ports(setup, err) < 0 ||
        crew_binding_fill(&setup->binding, config, prepare, &setup->apps, err) < 0)
        return -1;
    if (fill_mpi(setup, mpi_ops, context, err) < 0)
        return -1;
    return crew_files_check(prepare, &setup->apps, err);
}

void crew_setup_env(struct crew_setup *setup, const Hvdrun__Start *start)
{
    const Hvdrun__Prepare *prepare = setup->prepare;
    const struct crew_config *config = setup->config;
    /* Ranks of the first world meet at the master, the rendezvous and their lines. For another
     * world, these would be false. */
    bool first = prepare->first_seat == 0, meets = first && config->rendezvous_port > 0;
    setup->master_addr = mem_strdup(first ? start->master_addr : NULL);
    int cpus = node_facts_cpus(config->facts);
    struct node_env_job job = {
        .job_id = config->job_id,
        .epoch = (int)config->epoch,
        .restart_count = (int)prepare->restart_count,
        .max_restarts = (int)prepare->max_restarts,
        .size = (int)prepare->size,
        .node_count = (int)setup->node_count,
        .node_index = (int)setup->node_index,
        .node_ranks = rank_places_of(&setup->places, setup->places.here),
        .local_size = (int)prepare->local_size,
        .hostname = prepare->host,
        .machine = config->facts->machine,
        .node_sizes = setup->node_sizes,
        .node_names = setup->node_names,
        .mpi_controller = prepare->mpi_controller,
        .elastic = prepare->elastic,
        .keep_scheduler_env = prepare->keep_scheduler_env,
        .records = prepare->evidence,
        .rendezvous_addr = meets ? "127.0.0.1" : NULL,
        .rendezvous_port = config->rendezvous_port,
        .master_addr = setup->master_addr,
        .master_port = first ? (int)start->master_port : 0,
        .jax_port = (int)start->jax_port,
        .variables = start->variables,
        .variable_count = first ? start->n_variables : 0,
        .ras_port = setup->ras_port,
        .runtime_dir = setup->runtime_dir == NULL ? NULL : runtime_dir_path(setup->runtime_dir),
        .deadline_file = setup->deadline_file,
        .line_address = first ? config->line_address : NULL,
        .cpus_allowed = cpus,
        .bound = setup->binding.cpus != NULL,
        .cpu_ranks = setup->cpu_ranks,
        .yield_when_idle = setup->cpu_ranks > cpus,
        .base = &setup->apps.base_env,
        .knobs = &setup->knobs,
        .app_count = (int)prepare->n_apps,
        .app_np = setup->apps.np,
        .iface = setup->route.iface,
        .ifaces = setup->route.ifaces,
        .ifaces_from_flag = prepare->interfaces[0] != '\0',
        .subnets = setup->route.include,
        .unfit_subnets = setup->route.exclude};
    setup->env = node_env_create(&job);
}

char *crew_setup_error_file(const struct crew_setup *setup, uint32_t rank)
{
    struct node_env_job job = {
        .epoch = (int)setup->config->epoch,
        .runtime_dir = setup->runtime_dir == NULL ? NULL : runtime_dir_path(setup->runtime_dir)};
    return worker_env_error_file(&job, (int)rank);
}

void crew_setup_leave_folders(struct crew_setup *setup)
{
    runtime_dir_destroy(setup->runtime_dir);
    runtime_dir_destroy(setup->shm_dir);
    setup->runtime_dir = setup->shm_dir = NULL;
}

void crew_setup_destroy(struct crew_setup *setup)
{
    mpi_world_destroy(setup->mpi);
    node_env_destroy(setup->env);
    crew_binding_destroy(&setup->binding);
    crew_apps_destroy(&setup->apps);
    free(setup->master_addr);
    free(setup->deadline_file);
    route_destroy(&setup->route);
    rank_places_destroy(&setup->places);
    free(setup->node_names);
    free(setup->node_sizes);
    free(setup->limits);
    strv_destroy(&setup->knobs);
    fd_close(&setup->master_fd);
    fd_close(&setup->jax_fd);
    crew_setup_leave_folders(setup);
    hvdrun__prepare__free_unpacked(setup->prepare, NULL);
}
