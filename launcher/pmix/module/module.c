/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module: start, stop, the descriptor that the agent watches, and the table that
 * composes the operations. What is NULL in the table is answered by PMIx as unsupported:
 * allocation, monitoring, credentials, tools, output forwarding, fabrics.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "pmix/module/operations.h"

/* PMIx's listener uses select(), which ends the process beyond this; some room for its own. */
#define DESCRIPTORS_MAX 960

#define SPACE ((uint64_t)256 << 10) /* for the topology and small files */
#define SPACE_SHARED (((uint64_t)8 << 20) + SPACE)

static pmix_server_module_t operations = {
    .client_connected2 = up_connected,
    .client_finalized = up_finalized,
    .abort = up_abort,
    .fence_nb = up_fence,
    .direct_modex = up_modex,
    .publish = up_publish,
    .lookup = up_lookup,
    .unpublish = up_unpublish,
    .connect = up_connect,
    .disconnect = up_disconnect,
    .register_events = up_register_events,
    .deregister_events = up_deregister_events,
    .notify_event = up_notify,
    .query = up_query,
    .log = up_log,
    .job_control = up_job_control,
    .group = up_group,
    .spawn = up_spawn,
};

/* In the environment while the library starts, unless the user has chosen. */
static const char *const settings[][2] = {
    /* A security plugin of the host (munge) that a container's client lacks would lock it out. */
    {"PMIX_MCA_psec", "native"},
    /* Those of libpmix 5 put what they share with workers into /tmp and leave it there. */
    {"PMIX_MCA_gds", "^shmem,shmem2"},
    /* hwloc loads all its plugins. Those left out cost a third of the start, and those for GPUs
     * open the devices; what PMIx shares are CPUs, memory, and the PCI devices with their names. */
    {"HWLOC_PLUGINS_BLACKLIST",
     "hwloc_gl.so,hwloc_xml_libxml.so,hwloc_opencl.so,hwloc_cuda.so,hwloc_nvml.so,hwloc_rsmi.so,"
     "hwloc_levelzero.so"},
};
#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

static int init_library(const struct server *server, const char *hostname, struct error *err)
{
    struct infos list AUTO_INFOS = {0};
    bool no = false, tools = server->ops.processes != NULL;
    infos_add_text(&list, PMIX_SERVER_NSPACE, server->nspace);
    infos_add_rank(&list, PMIX_SERVER_RANK, 0);
    infos_add_text(&list, PMIX_SERVER_TMPDIR, server->tmpdir);
    infos_add_text(&list, PMIX_SYSTEM_TMPDIR, server->tmpdir);
    infos_add_text(&list, PMIX_HOSTNAME, hostname);
    infos_add(&list, PMIX_SERVER_TOOL_SUPPORT, &tools, PMIX_BOOL);
    infos_add(&list, PMIX_SERVER_REMOTE_CONNECTIONS, &no, PMIX_BOOL);
    /* Saves each worker its own walk through /sys: a tenth of the start of 16 Open MPI ranks. */
    if (!tools)
        infos_add_true(&list, PMIX_SERVER_SHARE_TOPOLOGY);
    else /* who connects can ask, and no more; there is one start in a process */
        operations = (pmix_server_module_t){.tool_connected = up_tool_connected, .query = up_query};
    bool lent[SETTINGS];
    for (size_t i = 0; i < SETTINGS; i++)
        lent[i] = getenv(settings[i][0]) == NULL && setenv(settings[i][0], settings[i][1], 1) == 0;
    /* PMIx's threads inherit a full mask: signals are the loop's, and a write to a worker that has
     * just died must not end the agent by SIGPIPE. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    struct complaints complaints;
    complaints_begin(&complaints);
    pmix_status_t status = PMIx_server_init(&operations, list.items, list.count);
    complaints_end(&complaints, server);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (size_t i = 0; i < SETTINGS; i++) {
        if (lent[i])
            unsetenv(settings[i][0]);
    }
    return status == PMIX_SUCCESS ? 0 : server_error(err, status, "start the PMIx server");
}

/* Version 4 and older share the job's data through two files of 4 MiB. They ask for the space when
 * the first worker connects, which is too late. Of a choice of the user we know nothing. */
static uint64_t space(void)
{
    long major = server_library_major();
    return major > 0 && major < 5 && getenv("PMIX_MCA_gds") == NULL ? SPACE_SHARED : SPACE;
}

static int open_descriptors(struct server *server, struct error *err)
{
    int bridge = bridge_open(&server->bridge);
    server->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    server->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event ready = {.events = EPOLLIN};
    if (bridge < 0 || server->timer_fd < 0 || server->poll_fd < 0 ||
        epoll_ctl(server->poll_fd, EPOLL_CTL_ADD, server->bridge.event_fd, &ready) < 0 ||
        epoll_ctl(server->poll_fd, EPOLL_CTL_ADD, server->timer_fd, &ready) < 0)
        return error_errno(err, errno, "cannot create the descriptors of the PMIx server");
    if (server->poll_fd >= DESCRIPTORS_MAX)
        return error_set(err,
                         "cannot start the PMIx server: %d descriptors are open already, more than "
                         "PMIx supports",
                         server->poll_fd);
    return 0;
}

static void server_free(struct server *server)
{
    bridge_close(&server->bridge);
    fd_close(&server->poll_fd);
    fd_close(&server->timer_fd);
    group_destroy_all(server);
    publish_store_destroy(server->store);
    free(server->nspace);
    free(server->tmpdir);
    free(server);
}

static struct server *start(const struct pmix_server_ops *ops, void *context, const char *tmpdir,
                            const char *hostname, struct error *err)
{
    struct server *server =
        MEM_NEW((struct server){.ops = *ops,
                                .context = context,
                                .poll_fd = -1,
                                .timer_fd = -1,
                                .modex_deadline_ms = -1,
                                .nspace = mem_printf("hvdrun-agent-%d", (int)getpid()),
                                .tmpdir = mem_strdup(tmpdir),
                                .store = publish_store_create()});
    if (open_descriptors(server, err) < 0 || !server_claim(server, err)) {
        server_free(server);
        return NULL;
    }
    if (init_library(server, hostname, err) < 0) {
        server_release();
        server_free(server);
        return NULL;
    }
    return server;
}

static void stop(struct server *server)
{
    namespace_end_all(server);
    if (server->stuck) /* finalize would wait for ever, and late callbacks still need the server */
        return;
    PMIx_server_finalize();
    server_release();
    server_free(server);
}

static int descriptor(const struct server *server)
{
    return server->poll_fd;
}

static void dispatch(struct server *server)
{
    uint64_t times = 0;
    if (fd_read(server->timer_fd, &times, sizeof(times)) > 0) {
        publish_store_expire(server->store, clock_mono_ms());
        modex_expire(server, clock_mono_ms());
    }
    bridge_run(&server->bridge, server);
}

static void worker_started(struct server *server, int number, pid_t pid)
{
    struct local *local = server_local(server, number);
    if (local != NULL)
        local->pid = pid;
}

static void worker_ended(struct server *server, int number, int code, int signal)
{
    struct local *local = server_local(server, number);
    if (local == NULL || local->ended)
        return;
    bridge_run(&server->bridge, server);
    local->ended = true;
    local->exit_code = signal != 0 ? 128 + signal : code;
    publish_store_end_proc(server->store, local->job->nspace, (uint32_t)local->rank);
    modex_worker_ended(server, local);
    events_worker_ended(server, local, code, signal);
}

static enum pmix_worker_state worker_state(const struct server *server, int number)
{
    const struct local *local = server_local(server, number);
    return local != NULL ? local->state : PMIX_WORKER_SILENT;
}

__attribute__((visibility("default"))) extern const struct pmix_module hvdrun_pmix_module;

const struct pmix_module hvdrun_pmix_module = {
    .version = PMIX_MODULE_VERSION,
    .hvdrun_version = HVDRUN_VERSION,
    .space = space,
    .start = start,
    .stop = stop,
    .fd = descriptor,
    .dispatch = dispatch,
    .job = namespace_register,
    .job_end = namespace_end,
    .worker_env = worker_env,
    .worker_started = worker_started,
    .worker_ended = worker_ended,
    .worker_state = worker_state,
    .collect_reply = collect_reply,
    .modex_reply = modex_reply,
    .modex_request = modex_request,
    .store_reply = store_reply,
    .event = events_from_afar,
    .spawn_reply = spawn_reply,
};
