/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor of a start over SSH: one thread and libssh2 for all hosts, with a window that limits
 * how many logins run at once. It reads the file of host keys once. For each host it checks the
 * host key, logs in with a key, starts one command, and copies its output to stdout. It starts
 * nothing else on the host.
 *
 *   floor_ssh [-d] [-k] [-w WINDOW] [-p PORT] USER KEY KNOWN_HOSTS COMMAND HOST...
 *
 *   -d   keeps delayed ACKs (does not set TCP_QUICKACK)
 *   -k   starts no command, and keeps the connections until stdin ends; it prints "open" to stderr
 *        when all are there. This shows how much memory a session takes.
 *
 * HOST is a numeric IPv4 address. Host keys are of type ed25519. The status is 0 if every command
 * has ended with 0.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <libssh2.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum stage { CONNECT, HANDSHAKE, LOGIN, OPEN, START, READ, CLOSE, DONE };

struct host {
    const char *name;
    int fd;
    enum stage stage;
    LIBSSH2_SESSION *session;
    LIBSSH2_CHANNEL *channel;
    bool failed;
};

static struct {
    const char *user, *key, *known_hosts, *command;
    int port, window, epoll_fd, busy, done, failed;
    bool delayed, keep;
    LIBSSH2_KNOWNHOSTS *known;
} floor_ = {.port = 22, .window = 64};

static void die(const char *what)
{
    fprintf(stderr, "floor_ssh: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void quick(const struct host *host)
{
    int on = 1;
    if (!floor_.delayed)
        setsockopt(host->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}

static void begin(struct host *host)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)floor_.port)};
    int on = 1;
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = host};
    if (inet_pton(AF_INET, host->name, &to.sin_addr) != 1)
        die(host->name);
    host->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (host->fd < 0 ||
        (connect(host->fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS))
        die(host->name);
    setsockopt(host->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (epoll_ctl(floor_.epoll_fd, EPOLL_CTL_ADD, host->fd, &event) < 0)
        die("epoll");
    floor_.busy++;
}

static void end(struct host *host, const char *why)
{
    if (why != NULL)
        fprintf(stderr, "floor_ssh: %s: %s\n", host->name, why);
    host->failed = why != NULL;
    floor_.failed += host->failed;
    floor_.busy--;
    floor_.done++;
    host->stage = DONE;
    epoll_ctl(floor_.epoll_fd, EPOLL_CTL_DEL, host->fd, NULL);
    if (floor_.keep && !host->failed)
        return;
    close(host->fd);
    if (host->session != NULL)
        libssh2_session_free(host->session);
}

static bool is_known(struct host *host)
{
    size_t length = 0;
    int type = 0;
    const char *key = libssh2_session_hostkey(host->session, &length, &type);
    int mask = LIBSSH2_KNOWNHOST_TYPE_PLAIN | LIBSSH2_KNOWNHOST_KEYENC_RAW;
    return key != NULL &&
           libssh2_knownhost_checkp(floor_.known, host->name, floor_.port, key, length, mask,
                                    NULL) == LIBSSH2_KNOWNHOST_CHECK_MATCH;
}

/* 0: read on; LIBSSH2_ERROR_EAGAIN: nothing now. */
static int copy_some(struct host *host)
{
    static char bytes[131072];
    ssize_t got = libssh2_channel_read(host->channel, bytes, sizeof(bytes));
    for (ssize_t at = 0; at < got;) {
        ssize_t put = write(STDOUT_FILENO, bytes + at, (size_t)(got - at));
        if (put < 0)
            die("stdout");
        at += put;
    }
    if (got > 0)
        return 0;
    if (got == 0 && libssh2_channel_eof(host->channel)) {
        host->stage = CLOSE;
        return 0;
    }
    return got == 0 ? LIBSSH2_ERROR_EAGAIN : (int)got;
}

/* Does one step that is possible now. */
static int step(struct host *host)
{
    int rc = 0;
    switch (host->stage) {
    case CONNECT:
        host->session = libssh2_session_init();
        libssh2_session_set_blocking(host->session, 0);
        libssh2_session_method_pref(host->session, LIBSSH2_METHOD_HOSTKEY, "ssh-ed25519");
        host->stage = HANDSHAKE;
        return 0;
    case HANDSHAKE:
        rc = libssh2_session_handshake(host->session, host->fd);
        if (rc == 0 && !is_known(host))
            rc = LIBSSH2_ERROR_KNOWN_HOSTS;
        break;
    case LOGIN:
        rc = libssh2_userauth_publickey_fromfile(host->session, floor_.user, NULL, floor_.key, "");
        break;
    case OPEN:
        host->channel = libssh2_channel_open_session(host->session);
        if (host->channel == NULL)
            rc = libssh2_session_last_errno(host->session);
        else if (floor_.keep)
            host->stage = CLOSE;
        break;
    case START: rc = libssh2_channel_exec(host->channel, floor_.command); break;
    case READ: return copy_some(host);
    case CLOSE: rc = floor_.keep ? 0 : libssh2_channel_wait_closed(host->channel); break;
    case DONE: return LIBSSH2_ERROR_EAGAIN;
    }
    if (rc == 0)
        host->stage++;
    return rc;
}

static void advance(struct host *host)
{
    int rc;
    do {
        rc = step(host);
    } while (rc == 0 && host->stage != DONE);
    if (rc == 0) {
        int status = floor_.keep ? 0 : libssh2_channel_get_exit_status(host->channel);
        end(host, status == 0 ? NULL : "the command failed");
        return;
    }
    if (rc != LIBSSH2_ERROR_EAGAIN) {
        char *text = NULL;
        libssh2_session_last_error(host->session, &text, NULL, 0);
        end(host, text);
        return;
    }
    int directions = libssh2_session_block_directions(host->session);
    struct epoll_event event = {.data.ptr = host};
    event.events =
        (directions & LIBSSH2_SESSION_BLOCK_OUTBOUND) != 0 ? EPOLLIN | EPOLLOUT : EPOLLIN;
    epoll_ctl(floor_.epoll_fd, EPOLL_CTL_MOD, host->fd, &event);
    quick(host);
}

static void wait_for_stdin(void)
{
    char byte;
    fputs("open\n", stderr);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
}

static char *const *read_options(int argc, char **argv)
{
    static const char letters[] = "dkw:p:";
    for (int letter = getopt(argc, argv, letters); letter != -1;
         letter = getopt(argc, argv, letters)) {
        switch (letter) {
        case 'd': floor_.delayed = true; break;
        case 'k': floor_.keep = true; break;
        case 'w': floor_.window = (int)strtol(optarg, NULL, 10); break;
        case 'p': floor_.port = (int)strtol(optarg, NULL, 10); break;
        default: exit(2);
        }
    }
    if (argc - optind < 5)
        exit(2);
    floor_.user = argv[optind];
    floor_.key = argv[optind + 1];
    floor_.known_hosts = argv[optind + 2];
    floor_.command = argv[optind + 3];
    return argv + optind + 4;
}

int main(int argc, char **argv)
{
    char *const *names = read_options(argc, argv);
    int count = (int)(argv + argc - names), begun = 0;
    struct host *hosts = calloc((size_t)count, sizeof(*hosts));
    LIBSSH2_SESSION *any = NULL;
    if (hosts == NULL || libssh2_init(0) != 0)
        die("libssh2");
    any = libssh2_session_init(); /* the list of known hosts needs one */
    floor_.known = libssh2_knownhost_init(any);
    libssh2_knownhost_readfile(floor_.known, floor_.known_hosts, LIBSSH2_KNOWNHOST_FILE_OPENSSH);
    floor_.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    while (floor_.done < count) {
        struct epoll_event ready[64];
        for (; begun < count && floor_.busy < floor_.window; begun++) {
            hosts[begun].name = names[begun];
            begin(&hosts[begun]);
        }
        int n = epoll_wait(floor_.epoll_fd, ready, 64, -1);
        for (int i = 0; i < n; i++)
            advance(ready[i].data.ptr);
    }
    if (floor_.keep)
        wait_for_stdin();
    return floor_.failed == 0 ? 0 : 1;
}
