/* SPDX-License-Identifier: Apache-2.0 */
#include "io/dial_lookup.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"

#define TEXT_MAX 4096 /* of the child */
#define FAILED '!'    /* how its text begins if the rest is an error */

/* Where the port begins; NULL: there is none. Of an IPv6 address, brackets are not in the host. */
static const char *split(const char *server, const char **host, size_t *length)
{
    const char *colon = strrchr(server, ':');
    if (colon == NULL)
        return NULL;
    bool bracketed = server[0] == '[' && colon > server + 1 && colon[-1] == ']';
    *host = server + bracketed;
    *length = (size_t)(colon - server) - 2 * (size_t)bracketed;
    return bracketed || memchr(server, ':', *length) == NULL ? colon + 1 : NULL;
}

bool dial_lookup_is_server(const char *server)
{
    const char *host;
    size_t length;
    int64_t number;
    const char *port = split(server, &host, &length);
    return port != NULL && name_is_safe(host, length) &&
           parse_int(port, 1, UINT16_MAX, &number, NULL) == 0;
}

/* The child */

static void put_address(struct buf *text, const struct addrinfo *address)
{
    char host[NI_MAXHOST], port[NI_MAXSERV];
    if (getnameinfo(address->ai_addr, address->ai_addrlen, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    bool ipv6 = address->ai_family == AF_INET6;
    buf_printf(text, "%s%s%s:%s\n", ipv6 ? "[" : "", host, ipv6 ? "]" : "", port);
}

static void look_up(const char *server, struct buf *text)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const char *host = server;
    size_t length = 0;
    const char *port = split(server, &host, &length);
    char *name AUTO_FREE = mem_strndup(host, length);
    int result = getaddrinfo(name, port, &hints, &found);
    if (result != 0)
        buf_printf(text, "%c%s", FAILED,
                   result == EAI_SYSTEM ? strerror(errno) : gai_strerror(result));
    for (const struct addrinfo *one = found; one != NULL; one = one->ai_next)
        put_address(text, one);
    if (found != NULL)
        freeaddrinfo(found);
}

static void child(const char *server, int fd, pid_t parent)
{
    struct buf text = BUF_INIT(TEXT_MAX);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
        look_up(server, &text);
    _exit(fd_write_all(fd, buf_text(&text), text.length) < 0);
}

/* The parent */

/* -1: its time is over. */
static int read_all(int fd, int64_t limit_ms, struct buf *text)
{
    const int64_t until = clock_mono_ms() + limit_ms;
    for (;;) {
        char bytes[512];
        struct pollfd one = {.fd = fd, .events = POLLIN};
        int64_t left = until - clock_mono_ms();
        if (left <= 0)
            return -1;
        if (poll(&one, 1, (int)left) <= 0)
            continue;
        ssize_t got = fd_read(fd, bytes, sizeof(bytes));
        if (got <= 0)
            return 0;
        buf_append(text, bytes, (size_t)got);
    }
}

static void split_lines(const char *text, struct strv *out)
{
    while (*text != '\0' && out->count < DIAL_LOOKUP_MAX) {
        size_t length = strcspn(text, "\n");
        strv_add_n(out, text, length);
        text += length + (text[length] == '\n');
    }
}

int dial_lookup(const char *server, int64_t limit_ms, struct strv *out, struct error *err)
{
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);
    AUTO_FD_PAIR int ends[2] = {-1, -1};
    pid_t self = getpid();
    if (fd_pipe(ends) < 0)
        return error_errno(err, errno, "cannot create a pipe");
    pid_t pid = fork();
    if (pid < 0)
        return error_errno(err, errno, "cannot start a process");
    if (pid == 0)
        child(server, ends[1], self);
    fd_close(&ends[1]);
    bool is_late = read_all(ends[0], limit_ms, &text) < 0;
    kill(pid, SIGKILL); /* it has nothing more to say */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    const char *said = buf_text(&text);
    if (is_late)
        return error_set(err, "cannot look up %s: no resolver answers", server);
    if (said[0] == FAILED || said[0] == '\0')
        return error_set(err, "cannot look up %s: %s", server,
                         said[0] == FAILED ? said + 1 : "the look-up failed");
    split_lines(said, out);
    return 0;
}
