/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary folder with real keys, a real ssh-agent and a real sshd for tests. All end with the
 * test, also when it is killed. */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/strv.h"
#include "unit.h"

#define FIXTURE_WAIT_MS 20000
#define SSHD_PROGRAM "/usr/sbin/sshd" /* it wants to be started by its full path */

static inline bool program_exists(const char *path)
{
    return access(path, X_OK) == 0;
}

static inline char *place_make(void)
{
    char *place = mem_strdup("/tmp/test_ssh.XXXXXX");
    if (!mkdtemp(place))
        abort();
    return place;
}

static inline int place_remove_one(const char *path, const struct stat *info, int type,
                                   struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

static inline void place_remove(char *place)
{
    (void)nftw(place, place_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(place);
}

static inline char *place_path(const char *place, const char *name)
{
    return mem_printf("%s/%s", place, name);
}

static inline void place_write(const char *path, const char *text, bool append)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC), 0600);
    if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0)
        abort();
    fd_close(&fd);
}

static inline char *place_read(const char *path)
{
    struct buf text = BUF_INIT(1 << 20);
    if (fd_read_file(path, &text, NULL) < 0)
        abort();
    return buf_take(&text);
}

/* Starts the words of argv; its output goes to `log` (NULL: nowhere). */
static inline pid_t program_start(const char *log, char *const *argv)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    int out = open(log ? log : "/dev/null", O_WRONLY | O_CREAT | O_APPEND, 0600);
    int in = open("/dev/null", O_RDONLY);
    (void)dup2(in, 0);
    (void)dup2(out, 1);
    (void)dup2(out, 2);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
        (void)execvp(argv[0], argv);
    _exit(127);
}

static inline int program_wait(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static inline int program_run(char *const *argv)
{
    return program_wait(program_start(NULL, argv));
}

/* ssh-keygen; `format` may be NULL (OpenSSH's own). */
static inline char *key_make(const char *place, const char *name, const char *type,
                             const char *bits, const char *passphrase, const char *format)
{
    char *path = place_path(place, name);
    AUTO_STRV struct strv argv = STRV_INIT;
    char *const words[] = {(char *)"ssh-keygen", (char *)"-q",       (char *)"-t", (char *)type,
                           (char *)"-N",         (char *)passphrase, (char *)"-f", path,
                           (char *)"-C",         (char *)name,       NULL};
    strv_copy(&argv, words);
    if (bits) {
        strv_add(&argv, "-b");
        strv_add(&argv, bits);
    }
    if (format) {
        strv_add(&argv, "-m");
        strv_add(&argv, format);
    }
    if (program_run(strv_items(&argv)) != 0)
        abort();
    return path;
}

/* A copy: the installed one is set-group-id, so it would not end with its parent. */
static inline char *agent_program(const char *place)
{
    char *copy = place_path(place, "ssh-agent");
    AUTO_BUF struct buf bytes = BUF_INIT(64 << 20);
    int fd = open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    if (fd < 0 && errno == EEXIST)
        return copy;
    if (fd < 0 || fd_read_file("/usr/bin/ssh-agent", &bytes, NULL) < 0 ||
        fd_write_all(fd, buf_text(&bytes), bytes.length) < 0)
        abort();
    fd_close(&fd);
    return copy;
}

/* The file of a socket is there a moment before a process listens. */
static inline bool socket_listens(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd AUTO_FD = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    return connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
}

/* A real ssh-agent; its socket is PLACE/NAME. */
static inline pid_t agent_start(const char *place, const char *name)
{
    char *AUTO_FREE path = place_path(place, name);
    char *AUTO_FREE program = agent_program(place);
    char *argv[] = {program, (char *)"-D", (char *)"-a", path, NULL};
    pid_t pid = program_start(NULL, argv);
    for (int64_t end = unit_limit_ms(FIXTURE_WAIT_MS); !socket_listens(path);) {
        if (unit_is_over(end))
            abort();
        (void)poll(NULL, 0, 5);
    }
    return pid;
}

static inline void agent_add(const char *place, const char *name, const char *key)
{
    char *AUTO_FREE path = place_path(place, name);
    char *argv[] = {(char *)"ssh-add", (char *)"-q", (char *)key, NULL};
    setenv("SSH_AUTH_SOCK", path, 1);
    if (program_run(argv) != 0)
        abort();
    unsetenv("SSH_AUTH_SOCK");
}

static inline void program_stop(pid_t pid)
{
    if (pid > 0 && kill(pid, SIGKILL) == 0)
        (void)program_wait(pid);
}

/* Kills all that `pid` has started, not itself. */
static inline void program_kill_children(pid_t pid)
{
    char *AUTO_FREE path = mem_printf("/proc/%d/task/%d/children", (int)pid, (int)pid);
    AUTO_BUF struct buf text = BUF_INIT(65536);
    if (fd_read_file(path, &text, NULL) < 0)
        return;
    for (char *at = text.bytes, *end; at && *at; at = end) {
        long child = strtol(at, &end, 10);
        if (end == at)
            break;
        (void)kill((pid_t)child, SIGSTOP); /* the list is not complete while children come and go */
        program_kill_children((pid_t)child);
        (void)kill((pid_t)child, SIGKILL);
    }
}

static inline int port_listen(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        abort();
    *port = ntohs(address.sin_port);
    return fd;
}

static inline int port_connect(int port) /* -1: refused; non-blocking */
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {htonl(INADDR_LOOPBACK)},
                                  .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        fd_close(&fd);
    else
        (void)fd_nonblock(fd);
    return fd;
}

struct sshd {
    pid_t pid;
    int port;
};

/* Servers of OpenSSH 9.8 and newer turn whoever has failed away for a while: not what is tested. */
static inline bool sshd_has_penalties(const char *place)
{
    char *AUTO_FREE log = place_path(place, "version");
    char *argv[] = {(char *)"ssh", (char *)"-V", NULL};
    (void)program_wait(program_start(log, argv));
    char *AUTO_FREE text = place_read(log);
    char *at = strstr(text, "OpenSSH_");
    long major = at == NULL ? 0 : strtol(at + strlen("OpenSSH_"), &at, 10);
    long minor = at == NULL ? 0 : strtol(at + 1, NULL, 10);
    return major > 9 || (major == 9 && minor >= 8);
}

/* `extra`: more lines of configuration. Host keys are PLACE/host_TYPE as far as they are there.
 * A bash below another one (SHLVL) does not read ~/.bashrc, whose words and forks are not ours. */
static inline struct sshd sshd_start(const char *place, const char *name, const char *extra)
{
    static const char *const types[] = {"ed25519", "ecdsa", "rsa"};
    char *AUTO_FREE file = place_path(place, name);
    char *AUTO_FREE log = mem_printf("%s.log", file);
    AUTO_BUF struct buf text = BUF_INIT(65536);
    struct sshd sshd;
    int fd = port_listen(&sshd.port);

    if (geteuid() == 0)
        (void)mkdir("/run/sshd", 0755);
    (void)buf_printf(&text,
                     "ListenAddress 127.0.0.1\nPort %d\nPidFile none\nStrictModes no\nUsePAM no\n"
                     "AuthorizedKeysFile %s/authorized_keys\nPasswordAuthentication no\n"
                     "KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
                     "SetEnv SHLVL=2\nLogLevel ERROR\n%s%s\n",
                     sshd.port, place, sshd_has_penalties(place) ? "PerSourcePenalties no\n" : "",
                     extra);
    for (size_t i = 0; i < 3; i++) {
        char *AUTO_FREE key = mem_printf("%s/host_%s", place, types[i]);
        if (access(key, F_OK) == 0 && !strstr(extra, "HostKey "))
            (void)buf_printf(&text, "HostKey %s\n", key);
    }
    place_write(file, buf_text(&text), false);
    fd_close(&fd);
    char *argv[] = {(char *)SSHD_PROGRAM, (char *)"-D", (char *)"-e", (char *)"-f", file, NULL};
    sshd.pid = program_start(log, argv);
    for (int64_t end = unit_limit_ms(FIXTURE_WAIT_MS); fd < 0;) {
        if (unit_is_over(end))
            abort();
        (void)poll(NULL, 0, 5);
        fd = port_connect(sshd.port);
    }
    fd_close(&fd);
    return sshd;
}
