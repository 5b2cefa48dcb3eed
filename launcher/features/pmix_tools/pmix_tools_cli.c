/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hvdrun pmix`: a PMIx server of its own, which tells tools of this user what the processes of a
 * job are, until the job ends. Whatever tools do to it, the job does not notice.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "cli/control_client.h"
#include "cli/features.h"
#include "cli/place.h"
#include "driver/control/request.h"
#include "features/pmix_tools/process_table.h"
#include "node/is_local.h"
#include "node/runtime_dir.h"
#include "pmix/pmix_server.h"
#include "rendezvous/peer.h"

const char pmix_tools_feature[] = "PMIx tools that ask for the processes of a job";

control_run control_pmix;

struct stand {
    int job_fd, signals_fd;
    struct runtime_dir *dir;
    struct pmix_server *pmix;
    struct rendezvous_peer *peer;
    struct process_table table;
    bool over; /* the job has ended */
};

static int ask_table(struct stand *stand, struct error *err)
{
    json_t *request = json_pack("{s:s, s:i}", "do", "status", "protocol", CONTROL_PROTOCOL);
    json_t *status = control_client_ask(stand->job_fd, request, err);
    json_decref(request);
    if (status == NULL)
        return -1;
    process_table_clear(&stand->table);
    int result = process_table_read(&stand->table, status, err);
    json_decref(status);
    for (size_t i = 0; i < stand->table.count; i++)
        stand->table.rows[i].here = is_local_obviously(stand->table.rows[i].host) == LOCAL_YES;
    return result;
}

/* A connection over TCP, whose other end is not, or no longer, a process of this user. */
static bool is_of_another(struct stand *stand, int fd)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);
    uid_t uid = 0;
    if (getpeername(fd, (struct sockaddr *)&address, &size) < 0)
        return false;
    if (address.ss_family == AF_INET6)
        return true;
    return address.ss_family == AF_INET &&
           (rendezvous_peer_uid(stand->peer, fd, &uid) < 0 || uid != geteuid());
}

/* What a tool says of its user is only said, as PMIx reads it from the tool. So all connections of
 * this process are looked at before anything is told; those of others are cut. */
static bool all_are_ours(struct stand *stand)
{
    bool ours = true;
    DIR *dir = opendir("/proc/self/fd");
    for (const struct dirent *entry = dir == NULL ? NULL : readdir(dir); entry != NULL;
         entry = readdir(dir)) {
        int64_t fd = -1;
        if (parse_int(entry->d_name, 0, INT32_MAX, &fd, NULL) < 0 || !is_of_another(stand, (int)fd))
            continue;
        ours = false;
        shutdown((int)fd, SHUT_RDWR);
    }
    if (dir == NULL)
        return false;
    closedir(dir);
    return ours;
}

static int processes(void *context, const struct pmix_process **rows, size_t *count)
{
    struct stand *stand = context;
    struct error err = ERROR_INIT;
    if (stand->over || !all_are_ours(stand) || ask_table(stand, &err) < 0)
        return -1;
    *rows = stand->table.rows;
    *count = stand->table.count;
    return 0;
}

static void quiet(void *context, enum log_level level, const char *line)
{
    (void)context;
    if (level <= LOG_WARNING)
        fprintf(stderr, "hvdrun: %s\n", line);
}

/* The library names its file after this process. Tools look for the launcher of a job. */
static char *add_name(const struct stand *stand, const char *hostname)
{
    const char *folder = runtime_dir_path(stand->dir);
    char *ours = mem_printf("%s/pmix.%s.tool.%d", folder, hostname, (int)getpid());
    char *launcher AUTO_FREE =
        mem_printf("%s/pmix.%s.tool.%d", folder, hostname, (int)stand->table.driver);
    if (link(ours, launcher) < 0 && errno != EEXIST)
        fprintf(stderr, "hvdrun: cannot make %s: %s\n", launcher, strerror(errno));
    return ours;
}

static int open_server(struct stand *stand, const char *hostname, struct error *err)
{
    static const struct pmix_server_ops ops = {.log = quiet, .processes = processes};
    char *modules AUTO_FREE = place_modules();
    char *path AUTO_FREE = mem_printf("%s/hvdrun-pmix.so", modules);
    stand->dir = runtime_dir_create(err);
    if (stand->dir == NULL)
        return -1;
    stand->pmix = pmix_server_load(path, &ops, stand, err);
    if (stand->pmix == NULL)
        return -1;
    return pmix_server_start(stand->pmix, runtime_dir_path(stand->dir), hostname, err);
}

static void open_signals(struct stand *stand)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    stand->signals_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Until the job ends, or a signal comes. */
static void serve(struct stand *stand)
{
    struct pollfd ready[] = {{stand->job_fd, POLLIN, 0},
                             {stand->signals_fd, POLLIN, 0},
                             {pmix_server_fd(stand->pmix), POLLIN, 0}};
    while (!stand->over) {
        if (poll(ready, 3, -1) < 0 && errno != EINTR)
            return;
        if (ready[0].revents != 0 || ready[1].revents != 0)
            stand->over = true;
        pmix_server_dispatch(stand->pmix);
    }
}

/* PMIx's thread can hang in what a tool does, and its exit handlers with it: they never run. */
static void end(struct stand *stand, int status)
{
    runtime_dir_destroy(stand->dir);
    _exit(status);
}

int control_pmix(const struct job_list *list, const struct control_words *words, struct buf *out,
                 struct error *err)
{
    (void)out;
    char hostname[256] = "";
    struct stand stand = {.signals_fd = -1};
    stand.job_fd = control_client_dial(list, words->job, err);
    if (stand.job_fd < 0)
        return -1;
    gethostname(hostname, sizeof(hostname) - 1);
    open_signals(&stand);
    stand.peer = rendezvous_peer_create();
    if (ask_table(&stand, err) < 0 || open_server(&stand, hostname, err) < 0) {
        pmix_server_leave(stand.pmix);
        runtime_dir_destroy(stand.dir);
        return -1;
    }
    char *file AUTO_FREE = add_name(&stand, hostname);
    printf("PMIX_SERVER_PIDINFO: %d\nPMIX_TOOL_ATTACHMENT_FILE: %s\n", (int)stand.table.driver,
           file);
    fflush(stdout);
    serve(&stand);
    end(&stand, 0);
    return 0;
}
