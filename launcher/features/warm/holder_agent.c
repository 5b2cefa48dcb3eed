/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The holder of a host: mothers outlive a job, and fork ranks for the next one (`hvdrun warm`).
 *
 * A rank must be a child of its agent: then the agent gets its status, PDEATHSIG ends it, a tracer
 * may look at it, and a sweep finds what it leaves behind. A process becomes a child of another one
 * only if that is an ancestor of its parent. So the agent must be older than the mother. The
 * process that keeps mothers is therefore the agent itself, of one job after another:
 *
 *   keeper (agent/keeper.h) -- holder -- mothers -- ranks, as children of the holder
 *
 * Between jobs the holder waits at its socket. A driver of the same user gives it a stream, and it
 * runs agent_run() on that instead of an agent of that job's own. Afterwards it executes itself
 * anew, since a job leaves threads and settings behind. The children of a process stay.
 *
 * The holder and all below it have inherited cgroup, namespaces, limits and the like from the shell
 * of `hvdrun warm start`. A driver that has others does without it (inherited_cli.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/agent_config.h"
#include "agent/keeper.h"
#include "agent/modules.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/status.h"
#include "features/warm/holder.h"
#include "features/warm/warm_agent.h"
#include "node/descendants.h"
#include "node/runtime_dir.h"

#define LOOK_MS 60000 /* between two looks at the memory */
#define LOCK_LOOKS 50
#define LOOK_AGAIN_MS 5
#define LEAVING_MS 5000
#define MESSAGE_MS 1000         /* for a client to say what it wants */
#define REST_MS (INT64_MAX / 4) /* the keeper need not hear of us between jobs */

struct holder {
    struct warm_holder kept;
    int folder, listen_fd, line_fd;
    int lock; /* the keeper's; -1 */
    struct rlimit files;
    sigset_t mask;
};

/* What an exec would lose is in a file in memory. */
static int save(const struct holder *holder)
{
    AUTO_BUF struct buf text = BUF_INIT(WARM_TEXT_MAX);
    fields_put(&text, "again");
    fields_put_number(&text, (uint64_t)holder->folder);
    fields_put_number(&text, (uint64_t)holder->listen_fd);
    fields_put_number(&text, (uint64_t)holder->line_fd);
    warm_holder_write(&holder->kept, &text);
    return warm_file(buf_text(&text), text.length);
}

static void keep_over_exec(int fd, bool keep)
{
    fcntl(fd, F_SETFD, keep ? 0 : FD_CLOEXEC);
}

static void keep_all_over_exec(const struct holder *holder, bool keep)
{
    keep_over_exec(holder->folder, keep);
    keep_over_exec(holder->listen_fd, keep);
    keep_over_exec(holder->line_fd, keep);
    for (size_t i = 0; i < holder->kept.count; i++)
        keep_over_exec(holder->kept.list[i].socket, keep);
}

static int write_file(int folder, const char *name, const struct buf *text)
{
    int fd AUTO_FD =
        openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? -1 : fd_write_all(fd, buf_text(text), text->length);
}

/* For `hvdrun warm list`. */
static void write_list(const struct holder *holder)
{
    AUTO_BUF struct buf text = BUF_INIT(WARM_TEXT_MAX);
    for (size_t i = 0; i < holder->kept.count; i++) {
        const struct warm_kept *kept = &holder->kept.list[i];
        fields_put_number(&text, (uint64_t)kept->pid);
        fields_put_number(&text, (uint64_t)kept->born_ms);
        fields_put(&text, kept->kind.target);
    }
    if (write_file(holder->folder, "list.new", &text) == 0)
        renameat(holder->folder, "list.new", holder->folder, "list");
}

/* After a job; returns only if that is impossible. */
static void become_new(const struct holder *holder, char *const *environment)
{
    int fd = save(holder);
    char *number AUTO_FREE = mem_printf("%d", fd);
    char *const argv[] = {"hvdrun-agent", WARM_WORD, number, NULL};
    if (fd < 0 || chdir("/") < 0)
        return;
    keep_over_exec(fd, true);
    keep_all_over_exec(holder, true);
    setrlimit(RLIMIT_NOFILE, &holder->files);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    sigprocmask(SIG_SETMASK, &holder->mask, NULL);
    execve("/proc/self/exe", argv, environment);
}

static void answer(int client, const char *text)
{
    send(client, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool lock(int fd)
{
    const struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &whole) == 0;
}

/* Says whose job it is, so that another driver can see whether the job is about to be over. */
static int lock_busy(const struct holder *holder, pid_t driver)
{
    char *number AUTO_FREE = mem_printf("%d", (int)driver);
    int fd = openat(holder->folder, "busy", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 &&
        (!lock(fd) || ftruncate(fd, 0) < 0 || fd_write_all(fd, number, strlen(number)) < 0))
        fd_close(&fd);
    return fd;
}

static bool is_kept(const void *context, pid_t pid)
{
    const struct warm_holder *kept = context;
    size_t i = 0;
    while (i < kept->count && kept->list[i].pid != pid)
        i++;
    return i < kept->count;
}

/* What the agent has killed at its end may need a moment. False: not even SIGKILL ends it. */
static bool is_rid_of_job(struct holder *holder)
{
    const struct descendants_spared spared = {is_kept, &holder->kept};
    bool rid = false;
    for (int64_t limit = clock_mono_ms() + LEAVING_MS; !rid && clock_mono_ms() < limit;) {
        pid_t *all AUTO_FREE = NULL;
        warm_holder_bound(&holder->kept, clock_mono_ms());
        rid = descendants_list_except(getpid(), &spared, &all) == 0;
        poll(NULL, 0, rid ? 0 : LOOK_AGAIN_MS);
    }
    return rid;
}

static void run_job(struct holder *holder, int client, pid_t driver, const struct buf *text,
                    int *stream)
{
    struct field_reader fields = {buf_text(text), buf_text(text) + text->length};
    AUTO_STRV struct strv env = STRV_INIT;
    char *const *before = environ;
    int busy AUTO_FD = lock_busy(holder, driver);
    if (busy < 0 || chdir(fields_next(&fields)) < 0) {
        answer(client, busy < 0 ? "their process cannot write in its folder"
                                : "their process cannot enter this folder");
        return;
    }
    while (fields.at < fields.end)
        strv_add(&env, fields_next(&fields));
    answer(client, "yes");
    environ = (char **)strv_items(&env);
    struct agent_config config = {.read_fd = *stream,
                                  .write_fd = *stream,
                                  .module_dir = "",
                                  .mask = &holder->mask,
                                  .driver_pid = driver,
                                  .holder = &holder->kept,
                                  .keeper_fd = fcntl(holder->line_fd, F_DUPFD_CLOEXEC, 3)};
    *stream = -1;
    agent_run(&config);
    if (is_rid_of_job(holder)) {
        write_list(holder); /* while we are still busy */
        become_new(holder, before);
    }
    _exit(STATUS_LAUNCHER); /* the keeper ends what is below us */
}

/* Reads a file that a client has sent: of this user, but nothing else about it is sure. */
static bool read_text(int fd, struct buf *out)
{
    struct stat info;
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_size <= 0 ||
        (size_t)info.st_size > WARM_TEXT_MAX)
        return false;
    char *room = buf_reserve(out, (size_t)info.st_size);
    ssize_t length = room == NULL ? -1 : fd_pread(fd, room, (size_t)info.st_size, 0);
    if (length <= 0 || room[length - 1] != '\0')
        return false;
    buf_commit(out, (size_t)length);
    return true;
}

/* The length of the message, without a NUL; -1. A descriptor that did not come is -1. */
static ssize_t receive(int client, char *word, size_t room, int fds[2])
{
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {word, room};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    struct pollfd ready = {.fd = client, .events = POLLIN};
    if (poll(&ready, 1, MESSAGE_MS) <= 0)
        return -1;
    ssize_t length = recvmsg(client, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *header = length < 0 ? NULL : CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len <= CMSG_LEN(2 * sizeof(int)))
        memcpy(fds, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
    bool gave_up = poll(&ready, 1, 0) < 0 || (ready.revents & POLLHUP) != 0;
    return gave_up && strncmp(word, "stop", 4) != 0 ? -1 : length;
}

/* Returns true if we have to end. */
static bool serve(struct holder *holder)
{
    char word[8] = "";
    int fds[2] AUTO_FD_PAIR = {-1, -1};
    AUTO_BUF struct buf text = BUF_INIT(WARM_TEXT_MAX + 1);
    pid_t pid;
    int client AUTO_FD = accept4(holder->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0 || !warm_is_ours(client, &pid))
        return false;
    ssize_t length = receive(client, word, sizeof(word) - 1, fds);
    if (length == 4 && strcmp(word, "stop") == 0)
        return true;
    if (length == 3 && strcmp(word, "job") == 0 && fds[1] >= 0 && read_text(fds[0], &text))
        run_job(holder, client, pid, &text, &fds[1]);
    return false;
}

/* Somebody has removed our folder or our socket: no job can come, and no stop. */
static bool is_lost(const struct holder *holder)
{
    struct stat info;
    return fstatat(holder->folder, "socket", &info, AT_SYMLINK_NOFOLLOW) < 0;
}

/* Between jobs. Ends when somebody says so, or when the keeper has ended: true. */
static bool wait_for_jobs(struct holder *holder)
{
    static const struct keeper_beat beat = {REST_MS, 0};
    struct pollfd *fds AUTO_FREE = NULL;
    bool over = false, deserted = false;
    while (!over && !deserted) {
        int64_t next_ms = warm_holder_bound(&holder->kept, clock_mono_ms());
        size_t count = holder->kept.count;
        write_list(holder);
        fds = mem_resize_array(fds, count + 2, sizeof(*fds));
        fds[0] = (struct pollfd){.fd = holder->listen_fd, .events = POLLIN};
        fds[1] = (struct pollfd){.fd = holder->line_fd, .events = POLLIN};
        for (size_t i = 0; i < count; i++)
            fds[i + 2] = (struct pollfd){.fd = holder->kept.list[i].socket, .events = POLLIN};
        send(holder->line_fd, &beat, sizeof(beat), MSG_DONTWAIT | MSG_NOSIGNAL);
        poll(fds, count + 2, next_ms >= 0 && next_ms < LOOK_MS ? (int)next_ms : LOOK_MS);
        deserted = fds[1].revents != 0;
        over = (fds[0].revents != 0 && !deserted && serve(holder)) || is_lost(holder);
    }
    return deserted;
}

static void remove_folder(void)
{
    char *path AUTO_FREE = warm_folder_path();
    runtime_dir_remove(path);
}

/* Its lock may go a moment after its line. If it stays, another holder has begun. */
static void remove_after_keeper(const struct holder *holder)
{
    for (int i = 0; i < LOCK_LOOKS && warm_is_locked(holder->folder, "lock"); i++)
        poll(NULL, 0, LOOK_AGAIN_MS);
    if (!warm_is_locked(holder->folder, "lock"))
        remove_folder();
}

static int hold(void *context, int line_fd)
{
    struct holder *holder = context;
    holder->line_fd = line_fd;
    prctl(PR_SET_NAME, "hvdrun-agent");
    listen(holder->listen_fd, SOMAXCONN); /* a client sees who has done that last (SO_PEERCRED) */
    fd_close(&holder->lock);
    if (wait_for_jobs(holder))
        remove_after_keeper(holder);
    return 0;
}

/* -1 and `why`. */
static int listen_here(int folder, const char **why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/socket", folder);
    unlinkat(folder, "socket", 0);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
        listen(fd, SOMAXCONN) == 0)
        return fd;
    *why = strerror(errno);
    fd_close(&fd);
    return -1;
}

/* The first process, which becomes the keeper. Says "yes" or why not on stdout. */
static int begin(struct holder *holder, const struct buf *inherits)
{
    struct error err = ERROR_INIT;
    const char *why = NULL;
    holder->lock = openat(holder->folder, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool locked = holder->lock >= 0 && lock(holder->lock);
    if (!locked)
        why = errno == EAGAIN ? "it runs already" : strerror(errno);
    else if (write_file(holder->folder, "inherits", inherits) < 0)
        why = strerror(errno);
    else
        holder->listen_fd = listen_here(holder->folder, &why);
    if (holder->listen_fd < 0) {
        if (locked)
            remove_folder();
        printf("%s", why);
        return STATUS_LAUNCHER;
    }
    struct keeper_config config = {.stream_fd = -1,
                                   .agent_fds = {holder->listen_fd, -1},
                                   .mask = &holder->mask,
                                   .agent = hold,
                                   .context = holder};
    printf("yes");
    fflush(stdout);
    fd_dup2(STDIN_FILENO, STDOUT_FILENO);
    prctl(PR_SET_NAME, "hvdrun-keeper");
    int status = keeper_run(&config, &err);
    remove_folder();
    return status < 0 ? STATUS_LAUNCHER : status;
}

static int run(const char *operand)
{
    struct holder holder = {.folder = -1, .listen_fd = -1, .lock = -1};
    struct error err = ERROR_INIT;
    AUTO_BUF struct buf text = BUF_INIT(WARM_TEXT_MAX + 1), inherits = BUF_INIT(WARM_TEXT_MAX);
    int64_t fd = -1;
    sigprocmask(SIG_SETMASK, NULL, &holder.mask);
    if (parse_int(operand, 3, INT32_MAX, &fd, NULL) < 0 || !read_text((int)fd, &text)) {
        fputs("hvdrun-agent: 'hvdrun warm start' starts this\n", stderr);
        return STATUS_USAGE;
    }
    close((int)fd);
    struct field_reader fields = {buf_text(&text), buf_text(&text) + text.length};
    bool again = strcmp(fields_next(&fields), "again") == 0;
    getrlimit(RLIMIT_NOFILE, &holder.files);
    if (again) {
        holder.folder = (int)fields_next_number(&fields);
        holder.listen_fd = (int)fields_next_number(&fields);
        holder.line_fd = (int)fields_next_number(&fields);
    }
    if (!again)
        buf_puts(&inherits, fields_next(&fields));
    warm_holder_read(&fields, &holder.kept);
    if (again) {
        keep_all_over_exec(&holder, false);
        hold(&holder, holder.line_fd);
        warm_holder_clear(&holder.kept);
        return 0;
    }
    holder.folder = warm_folder_open(&err);
    if (holder.folder >= 0)
        return begin(&holder, &inherits);
    printf("%s", err.text);
    return STATUS_LAUNCHER;
}

/* "--warm NUMBER" */
const struct helper_program warm_holder_program = {WARM_WORD, true, run};
