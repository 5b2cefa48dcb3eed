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
#include <limits.h>
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
#include "features/pmix_tools/pmix_tools_cli_test.h"
#include "node/runtime_dir.h"
#include "pmix/pmix_server.h"
#include "rendezvous/peer.h"

#define STRANGERS_MS 200
#define ANSWER_MS 2000
#define DESCRIPTORS 1024 /* libpmix supports no more */

const char pmix_tools_feature[] = "PMIx tools that ask for the processes of a job";

/* The table, from what the driver says of the job. Nothing of that is taken for granted. */

#define RANKS_MAX ((size_t)1 << 22)
#define ID_MAX 200 /* what a namespace of PMIx may have */

/* With " : " between them, it is several programs (status_command()). */
static char *program_of(const char *command)
{
    bool several = command == NULL || strstr(command, " : ") != NULL;
    return several ? mem_strdup("") : mem_printf("%.*s", (int)strcspn(command, " "), command);
}

/* -1: it is not there, or not one that can be. */
static int number_of(const json_t *object, const char *key)
{
    const json_t *number = json_object_get(object, key);
    json_int_t value = json_integer_value(number);
    return json_is_integer(number) && value >= 0 && value <= INT_MAX ? (int)value : -1;
}

static const char *nspace_of(struct pmix_table *table, const char *id, int epoch)
{
    char *nspace AUTO_FREE = mem_printf(PMIX_NSPACE_FORMAT, id, (unsigned)epoch);
    for (size_t i = table->nspaces.count; i > 0; i--)
        if (strcmp(table->nspaces.items[i - 1], nspace) == 0)
            return table->nspaces.items[i - 1];
    strv_add(&table->nspaces, nspace);
    return table->nspaces.items[table->nspaces.count - 1];
}

static void read_row(const json_t *object, const char *id, struct pmix_table *table)
{
    const char *host = json_string_value(json_object_get(object, "host"));
    const char *state = json_string_value(json_object_get(object, "state"));
    int code = number_of(object, "exit_code"), killed = number_of(object, "signal");
    int epoch = number_of(object, "epoch"), rank = number_of(object, "world_rank");
    struct pmix_process row = {.rank = rank < 0 ? number_of(object, "rank") : rank,
                               .pid = number_of(object, "pid"),
                               .ended = code >= 0 || killed >= 0,
                               .exit_code = killed >= 0 ? 128 + killed
                                            : code >= 0 ? code
                                                        : 0};
    if (row.rank < 0 || (size_t)row.rank >= RANKS_MAX || host == NULL || epoch < 0)
        return;
    row.nspace = nspace_of(table, id, epoch);
    bool runs = state != NULL && strcmp(state, "running") == 0;
    if (row.pid <= 0 || (!row.ended && !runs))
        return;
    row.host = mem_strdup(host);
    table->rows[table->count++] = row;
}

int process_table_read(struct pmix_table *table, const json_t *status, struct error *err)
{
    const char *id = json_string_value(json_object_get(status, "id"));
    const json_t *ranks = json_object_get(status, "ranks");
    size_t size = json_array_size(ranks);
    *table = (struct pmix_table){.nspaces = STRV_INIT};
    if (id == NULL || id[0] == '\0' || strlen(id) > ID_MAX || !json_is_array(ranks) ||
        size > RANKS_MAX)
        return error_set(err, "the job has not said what its ranks are");
    table->program = program_of(json_string_value(json_object_get(status, "command")));
    table->rows = mem_array(size + 1, sizeof(*table->rows));
    for (size_t i = 0; i < size; i++)
        read_row(json_array_get(ranks, i), id, table);
    return 0;
}

void process_table_clear(struct pmix_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free((char *)(uintptr_t)table->rows[i].host);
    free(table->rows);
    free(table->program);
    strv_destroy(&table->nspaces);
    *table = (struct pmix_table){0};
}

/* The server */

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
    bool asked = control_client_send(fd, json_pack("{s:s}", "do", "status"), until_ms, err) == 0;
    json_t *status = asked ? control_client_receive(fd, until_ms, err) : NULL;
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
                             {stand->pmix->module->fd(stand->pmix->inner), POLLIN, 0}};
    for (;;) {
        int count = poll(ready, sizeof(ready) / sizeof(ready[0]), STRANGERS_MS);
        if (count > 0 && ready[0].revents != 0)
            return 0;
        if (count > 0 && ready[1].revents != 0)
            return read_end(stand, err);
        cut_strangers(stand);
        if (count > 0)
            stand->pmix->module->dispatch(stand->pmix->inner);
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
