/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hvdrun pmix`: a PMIx server of its own, which tells tools of this user what the processes of a
 * job are, until the job ends. Whatever tools do to it, the job does not notice.
 *
 * libpmix believes what a tool says of its user, and reads the first words of a connection on its
 * only thread, for as long as they take. So every STRANGERS_MS, and before each answer, the command
 * cuts the connections of other users. What their user does is up to that user: a tool that
 * connects and is silent keeps the others waiting.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "cli/control_client.h"
#include "cli/features.h"
#include "cli/place.h"
#include "driver/control/request.h"
#include "features/pmix_tools/process_table.h"
#include "node/runtime_dir.h"
#include "pmix/pmix_server.h"
#include "rendezvous/peer.h"

#define STRANGERS_MS 200
#define ANSWER_MS 2000
#define DESCRIPTORS 1024 /* libpmix supports no more */

const char pmix_tools_feature[] = "PMIx tools that ask for the processes of a job";

control_run control_pmix;

struct stand {
    const struct job_list *list;
    const char *job; /* its id */
    int wait_fd, signals_fd;
    struct runtime_dir *dir;
    struct pmix_server *pmix;
    struct rendezvous_peer *peer;
    struct pmix_table table;
};

/* A connection for each question, so that a late answer is not one to the next question. */
static int ask_table(struct stand *stand, struct error *err)
{
    int64_t until_ms = clock_mono_ms() + ANSWER_MS;
    int fd AUTO_FD = control_client_dial_in(stand->list, stand->job, until_ms, err);
    json_t *request = json_pack("{s:s, s:i}", "do", "status", "protocol", CONTROL_PROTOCOL);
    bool asked = fd >= 0 && control_client_send(fd, request, until_ms, err) == 0;
    json_t *status = asked ? control_client_receive(fd, until_ms, err) : NULL;
    json_decref(request);
    if (status == NULL)
        return -1;
    process_table_clear(&stand->table);
    int result = process_table_read(&stand->table, status, err);
    json_decref(status);
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

static void cut_strangers(struct stand *stand)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        if (is_of_another(stand, fd))
            shutdown(fd, SHUT_RDWR); /* which wakes libpmix */
}

/* Many tools can ask about a job that does not answer; a signal ends that. */
static const struct pmix_table *processes(void *context)
{
    struct stand *stand = context;
    struct error err = ERROR_INIT;
    struct pollfd signals = {stand->signals_fd, POLLIN, 0};
    cut_strangers(stand);
    return poll(&signals, 1, 0) != 0 || ask_table(stand, &err) < 0 ? NULL : &stand->table;
}

static void quiet(void *context, enum log_level level, const char *line)
{
    (void)context;
    if (level <= LOG_WARNING)
        fprintf(stderr, "hvdrun: %s\n", line);
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

static int open_signals(struct stand *stand, struct error *err)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    stand->signals_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return stand->signals_fd < 0 ? error_errno(err, errno, "cannot wait for signals") : 0;
}

/* All that can fail before a tool can connect. */
static int open_all(struct stand *stand, const char *hostname, struct error *err)
{
    struct rlimit limit;
    stand->wait_fd =
        control_client_dial_in(stand->list, stand->job, clock_mono_ms() + CONTROL_DIAL_MS, err);
    if (stand->wait_fd < 0 || control_client_ask_end(stand->wait_fd, err) < 0 ||
        ask_table(stand, err) < 0 || open_signals(stand, err) < 0)
        return -1;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_cur < DESCRIPTORS ? limit.rlim_cur : DESCRIPTORS;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return error_errno(err, errno, "cannot limit the number of open files");
    stand->peer = rendezvous_peer_create();
    return open_server(stand, hostname, err);
}

/* 0: the job has ended. */
static int read_end(const struct stand *stand, struct error *err)
{
    json_t *end = control_client_receive(stand->wait_fd, clock_mono_ms() + ANSWER_MS, err);
    if (end == NULL)
        end = control_client_end(stand->list, stand->job, err);
    json_decref(end);
    return end == NULL ? -1 : 0;
}

/* Until the job ends, or a signal comes. */
static int serve(struct stand *stand, struct error *err)
{
    struct pollfd ready[] = {{stand->signals_fd, POLLIN, 0},
                             {stand->wait_fd, POLLIN, 0},
                             {pmix_server_fd(stand->pmix), POLLIN, 0}};
    for (;;) {
        int count = poll(ready, sizeof(ready) / sizeof(ready[0]), STRANGERS_MS);
        if (count > 0 && ready[0].revents != 0)
            return 0;
        if (count > 0 && ready[1].revents != 0)
            return read_end(stand, err);
        cut_strangers(stand);
        if (count > 0)
            pmix_server_dispatch(stand->pmix);
    }
}

int control_pmix(const struct job_list *list, const struct control_words *words, struct buf *out,
                 struct error *err)
{
    (void)out;
    char hostname[256] = "";
    struct stand stand = {.list = list, .job = job_list_find(list, words->job, false, err)};
    if (stand.job == NULL)
        return -1;
    gethostname(hostname, sizeof(hostname) - 1);
    if (open_all(&stand, hostname, err) < 0) {
        pmix_server_leave(stand.pmix);
        runtime_dir_destroy(stand.dir);
        return -1;
    }
    printf("PMIX_SERVER_PIDINFO: %d\nPMIX_TOOL_ATTACHMENT_FILE: %s/pmix.%s.tool.%d\n",
           (int)getpid(), runtime_dir_path(stand.dir), hostname, (int)getpid());
    fflush(stdout);
    int result = serve(&stand, err);
    runtime_dir_destroy(stand.dir);
    if (result < 0)
        fprintf(stderr, "hvdrun: %s\n", err->text);
    _exit(result < 0 ? 1 : 0); /* PMIx's thread can hang, and its exit handlers with it */
}
