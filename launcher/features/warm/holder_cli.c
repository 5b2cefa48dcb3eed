/* SPDX-License-Identifier: Apache-2.0 */
/* `hvdrun warm`, and what a job with --warm asks of the holder of this host (holder.h). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/plain.h"
#include "cli/control_show.h"
#include "cli/features.h"
#include "cli/place.h"
#include "features/warm/holder.h"
#include "features/warm/inherited_cli.h"
#include "io/child.h"
#include "io/proc.h"
#include "node/facts.h"
#include "node/runtime_dir.h"

#define ANSWER_MS 2000 /* then the job does without it */
#define WAIT_MS 5
#define START_MS 10000
#define STOP_MS 10000
#define FILE_MAX ((size_t)1 << 20)
#define IDLE_MS ((int64_t)60 * 60 * 1000)
#define SHARE 8 /* of the memory of the host: an eighth */

agent_here warm_agent_here;

extern char **environ;

/* -1 and errno. ECONNREFUSED, ENOENT: there is none. */
static int dial(int folder)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/socket", folder);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        fd_close(&fd);
    return fd;
}

/* The text becomes what the other end says within the time; "": nothing, and -1. 0: it has closed.
 */
static ssize_t hear(int fd, int64_t ms, char text[WARM_ANSWER_MAX])
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    bool said = poll(&ready, 1, (int)ms) > 0;
    ssize_t length = said ? read(fd, text, WARM_ANSWER_MAX - 1) : -1;
    text[length < 0 ? 0 : length] = '\0';
    return length;
}

static void read_in(int folder, const char *name, struct buf *out)
{
    char *path AUTO_FREE = mem_printf("/proc/self/fd/%d/%s", folder, name);
    fd_read_file(path, out, NULL);
}

/* A job of this host. */

static void say(const char *why)
{
    fprintf(stderr, "hvdrun: the interpreters of 'hvdrun warm' are not used: %s\n", why);
}

static int send_job(int fd, int stream)
{
    AUTO_BUF struct buf text = BUF_INIT(WARM_TEXT_MAX), word = BUF_INIT(8);
    char *here AUTO_FREE = getcwd(NULL, 0);
    fields_put(&text, here == NULL ? "" : here);
    for (char *const *pair = environ; *pair != NULL; pair++)
        fields_put(&text, *pair);
    buf_puts(&word, "job");
    int file AUTO_FD = warm_file(buf_text(&text), text.length);
    return file < 0 ? -1 : warm_send(fd, &word, (const int[]){file, stream}, 2);
}

/* What an administrator can change later, too. */
static bool same_cgroup(pid_t holder)
{
    AUTO_BUF struct buf ours = BUF_INIT(FILE_MAX), theirs = BUF_INIT(FILE_MAX);
    return proc_read(getpid(), 0, "cgroup", &ours) && proc_read(holder, 0, "cgroup", &theirs) &&
           strcmp(buf_text(&ours), buf_text(&theirs)) == 0;
}

/* NULL; or why the holder at this socket cannot serve us. The caller frees it. */
static char *check(int folder, int fd, const char *agent_path)
{
    AUTO_BUF struct buf ours = BUF_INIT(FILE_MAX), theirs = BUF_INIT(FILE_MAX);
    pid_t holder = 0;
    if (!warm_is_ours(fd, &holder))
        return mem_strdup("they belong to another user");
    inherited_read(agent_path, &ours);
    read_in(folder, "inherits", &theirs);
    char *what AUTO_FREE = inherited_difference(buf_text(&ours), buf_text(&theirs));
    if (what != NULL)
        return mem_printf("this is not as it was at 'hvdrun warm start': %s", what);
    return same_cgroup(holder) ? NULL : mem_strdup("they are in another cgroup");
}

/* A driver ends a moment before its agent. */
static bool is_busy(int folder)
{
    AUTO_BUF struct buf text = BUF_INIT(256);
    int64_t limit = clock_mono_ms() + ANSWER_MS, driver = 0;
    read_in(folder, "busy", &text);
    parse_int(buf_text(&text), 1, INT32_MAX, &driver, NULL);
    bool ends = driver > 0 && kill((pid_t)driver, 0) < 0;
    bool busy = warm_is_locked(folder, "busy");
    while (busy && ends && clock_mono_ms() < limit) {
        poll(NULL, 0, WAIT_MS);
        busy = warm_is_locked(folder, "busy");
    }
    return busy;
}

static char *hand_over(int folder, const char *agent_path, int stream)
{
    char text[WARM_ANSWER_MAX];
    if (is_busy(folder))
        return mem_strdup("they serve another job");
    int fd AUTO_FD = dial(folder);
    if (fd < 0)
        return mem_strdup(errno == ECONNREFUSED || errno == ENOENT
                              ? "their process has ended: 'hvdrun warm start' begins anew, "
                                "'hvdrun warm stop' removes what it has left"
                              : strerror(errno));
    char *why = check(folder, fd, agent_path);
    if (why != NULL)
        return why;
    if (send_job(fd, stream) < 0)
        return mem_strdup(strerror(errno));
    if (hear(fd, ANSWER_MS, text) <= 0)
        return mem_strdup("their process does not answer");
    return strcmp(text, "yes") == 0 ? NULL : mem_strdup(text);
}

/* Gives the agent's end of a new stream to the holder, if there is one that fits. False: the job
 * needs an agent of its own; a line on stderr says why. */
bool warm_agent_here(const struct settings *settings, const char *agent_path,
                     struct transport_stream *stream)
{
    struct error err = ERROR_INIT;
    char *path AUTO_FREE = warm_folder_path();
    int ends[2] AUTO_FD_PAIR = {-1, -1};
    if (settings->warm.count == 0 || access(path, F_OK) < 0)
        return false;
    int folder AUTO_FD = warm_folder_open(&err);
    char *why AUTO_FREE = folder < 0                ? mem_strdup(err.text)
                          : fd_socketpair(ends) < 0 ? mem_strdup(strerror(errno))
                                                    : hand_over(folder, agent_path, ends[1]);
    if (why != NULL) {
        say(why);
        return false;
    }
    *stream =
        (struct transport_stream){.read_fd = ends[0], .write_fd = ends[0], .same_machine = true};
    ends[0] = -1;
    return true;
}

/* The commands. */

static int spawn(const char *agent_path, int file, int *output, struct error *err)
{
    char *number AUTO_FREE = mem_printf("%d", file);
    char *const argv[] = {"hvdrun-agent", WARM_WORD, number, NULL};
    int ends[2] AUTO_FD_PAIR = {-1, -1};
    int null AUTO_FD = fd_open("/dev/null", O_RDWR | O_CLOEXEC, 0);
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    if (null < 0 || fd_pipe(ends) < 0)
        return error_errno(err, errno, "cannot open a pipe");
    struct child_spec spec = {.path = agent_path,
                              .argv = argv,
                              .envp = environ,
                              .wdir = "/",
                              .fds = {null, ends[1], null},
                              .keep_fd = file,
                              .lasting = true,
                              .mask = &mask};
    if (child_spawn(&spec, NULL, err) < 0)
        return -1;
    *output = ends[0];
    ends[0] = -1;
    return 0;
}

static int start(const struct control_words *words, int folder, struct buf *out, struct error *err)
{
    char *modules AUTO_FREE = place_modules();
    char *agent_path AUTO_FREE = mem_printf("%s/hvdrun-agent", modules);
    AUTO_BUF struct buf setup = BUF_INIT(WARM_TEXT_MAX), inherits = BUF_INIT(FILE_MAX);
    char text[WARM_ANSWER_MAX];
    int output AUTO_FD = -1;
    struct node_facts *facts = node_facts_read();
    int64_t bytes = words->mib > 0 ? words->mib << 20 : (int64_t)facts->memory_bytes / SHARE;
    node_facts_destroy(facts);
    if (warm_is_locked(folder, "lock")) {
        buf_puts(out, "interpreters of jobs with --warm are kept here already\n");
        return 0;
    }
    inherited_read(agent_path, &inherits);
    fields_put(&setup, "start");
    fields_put(&setup, buf_text(&inherits));
    fields_put_number(&setup, (uint64_t)(words->has_time ? words->time_ms : IDLE_MS));
    fields_put_number(&setup, (uint64_t)bytes);
    int file AUTO_FD = warm_file(buf_text(&setup), setup.length);
    if (file < 0)
        return error_errno(err, errno, "cannot make a file in memory");
    if (spawn(agent_path, file, &output, err) < 0)
        return -1;
    hear(output, START_MS, text);
    if (strcmp(text, "yes") != 0)
        return error_set(err, "cannot keep interpreters: %s",
                         text[0] == '\0' ? "their process does not answer" : text);
    buf_puts(out, "jobs with --warm leave their interpreters here from now on\n");
    return 0;
}

static void list(int folder, struct buf *out)
{
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX);
    struct text_table table = {.columns = 4, .right = 1 << 1 | 1 << 2};
    static const char *const titles[] = {"pid", "age", "memory", "program"};
    int64_t now_ms = clock_mono_ms();
    bool busy = is_busy(folder), odd = false;
    read_in(folder, "list", &text);
    struct field_reader fields = {buf_text(&text), buf_text(&text) + text.length};
    for (size_t i = 0; i < 4; i++)
        text_table_add(&table, titles[i]);
    while (fields.at < fields.end) {
        AUTO_BUF struct buf age = BUF_INIT(256), memory = BUF_INIT(256), shown = BUF_INIT(FILE_MAX);
        int64_t pid = fields_next_number(&fields), born_ms = fields_next_number(&fields);
        odd = pid <= 0 || pid > INT32_MAX || born_ms < 0;
        if (odd)
            break;
        char *number AUTO_FREE = mem_printf("%d", (int)pid);
        control_show_duration((double)(now_ms - born_ms) / 1000, &age);
        control_show_bytes((double)warm_bytes((pid_t)pid), &memory);
        char *program AUTO_FREE = mem_strdup(fields_next(&fields));
        plain_line(program, ' '); /* code has line breaks */
        control_show_cut(program, 60, &shown);
        const char *const cells[] = {number, buf_text(&age), buf_text(&memory), buf_text(&shown)};
        for (size_t i = 0; i < 4; i++)
            text_table_add(&table, cells[i]);
    }
    if (table.cells.count > 4)
        text_table_print(&table, out);
    else if (!odd)
        buf_puts(out, "no job has left an interpreter yet\n");
    if (odd)
        buf_puts(out, "the list of interpreters is not of this version of hvdrun; 'hvdrun warm "
                      "stop' ends them all\n");
    if (busy)
        buf_puts(out, "a job uses them now\n");
    text_table_destroy(&table);
}

static int stop(int folder, struct buf *out, struct error *err)
{
    char text[WARM_ANSWER_MAX];
    pid_t pid;
    int fd AUTO_FD = dial(folder);
    if (fd < 0 || !warm_is_ours(fd, &pid) || send(fd, "stop", 4, MSG_NOSIGNAL) < 0)
        return error_errno(err, errno, "cannot reach the process that keeps interpreters");
    if (is_busy(folder)) {
        buf_puts(out, "a job uses the interpreters: they end with it\n");
        return 0;
    }
    if (hear(fd, STOP_MS, text) < 0)
        return error_set(err,
                         "process %d, which keeps interpreters, does not answer: end it "
                         "with 'kill -KILL'",
                         (int)pid);
    for (int64_t limit = clock_mono_ms() + STOP_MS;
         warm_is_locked(folder, "lock") && clock_mono_ms() < limit;)
        poll(NULL, 0, WAIT_MS);
    return warm_is_locked(folder, "lock")
               ? error_set(err,
                           "interpreters do not end: look for a file system that does not answer")
               : 0;
}

int control_warm(const struct job_list *jobs, const struct control_words *words, struct buf *out,
                 struct error *err)
{
    char *path AUTO_FREE = warm_folder_path();
    bool starts = strcmp(words->object, "start") == 0;
    (void)jobs;
    bool exists = starts || access(path, F_OK) == 0;
    int folder AUTO_FD = exists ? warm_folder_open(err) : -1;
    if (exists && folder < 0)
        return -1;
    if (starts)
        return start(words, folder, out, err);
    bool stops = strcmp(words->object, "stop") == 0;
    if (!exists || !warm_is_locked(folder, "lock")) {
        if (exists && stops) /* of a host that was switched off */
            runtime_dir_remove(path);
        buf_puts(out, "no interpreters are kept here; 'hvdrun warm start' begins\n");
        return 0;
    }
    if (stops)
        return stop(folder, out, err);
    list(folder, out);
    return 0;
}
