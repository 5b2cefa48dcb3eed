/* SPDX-License-Identifier: Apache-2.0 */
#include "io/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "model/net/address.h"

#define PORT_MAX 65535
#define PATH_PREFIX "unix:"

enum { KEEPALIVE_IDLE_S = 5, KEEPALIVE_INTERVAL_S = 3, KEEPALIVE_PROBES = 3 };

enum {
    BACKLOG = INT16_MAX, /* as many as the kernel allows */
    ACCEPTS_PER_TURN = 32,
    FULL_MS = 200,    /* to wait when no descriptor is free */
    FULL_ROUNDS = 30, /* longer than strangers may stay */
};

static int parse_path(const char *path, struct listen_address *out, struct error *err)
{
    struct sockaddr_un *at = &out->at.local;
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof(at->sun_path))
        return error_usage(err, "the path of a socket has 1 to %zu bytes",
                           sizeof(at->sun_path) - 1);
    at->sun_family = AF_UNIX;
    memcpy(at->sun_path, path, length + 1);
    out->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
    out->is_path = true;
    return 0;
}

/* The address without its brackets. */
static bool set_host(const char *host, uint16_t port, struct listen_address *out)
{
    if (inet_pton(AF_INET, host, &out->at.v4.sin_addr) == 1) {
        out->at.v4.sin_family = AF_INET;
        out->at.v4.sin_port = htons(port);
        out->length = sizeof(out->at.v4);
        return true;
    }
    struct in6_addr address;
    if (inet_pton(AF_INET6, host, &address) != 1)
        return false;
    out->at.v6 = (struct sockaddr_in6){
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = address};
    out->length = sizeof(out->at.v6);
    return true;
}

int listen_address_parse(const char *text, struct listen_address *out, struct error *err)
{
    *out = (struct listen_address){.length = 0};
    if (strncmp(text, PATH_PREFIX, strlen(PATH_PREFIX)) == 0)
        return parse_path(text + strlen(PATH_PREFIX), out, err);
    if (strchr(text, '/') != NULL)
        return parse_path(text, out, err);
    const char *colon = strrchr(text, ':');
    const char *port_text = colon == NULL ? text : colon + 1;
    char *host AUTO_FREE =
        colon == NULL ? mem_strdup("127.0.0.1") : mem_strndup(text, (size_t)(colon - text));
    size_t length = strlen(host);
    bool bracketed = length > 2 && host[0] == '[' && host[length - 1] == ']';
    if (bracketed) {
        memmove(host, host + 1, length - 2);
        host[length - 2] = '\0';
    }
    int64_t port = 0;
    const char *where = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    bool is_v6 = strchr(where, ':') != NULL;
    if (parse_int(port_text, 0, PORT_MAX, &port, NULL) == 0 && is_v6 == bracketed &&
        set_host(where, (uint16_t)port, out))
        return 0;
    return error_usage(err,
                       "'%s' is not an address to listen on; expected PORT, ADDRESS:PORT with a "
                       "numeric address, or the path of a socket",
                       text);
}

char *listen_address_url(const struct listen_address *address)
{
    char text[INET6_ADDRSTRLEN] = "?";
    if (address->is_path)
        return mem_printf(PATH_PREFIX "%s", address->at.local.sun_path);
    if (address->at.any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &address->at.v4.sin_addr, text, sizeof(text));
        return mem_printf("http://%s:%d", text, (int)ntohs(address->at.v4.sin_port));
    }
    inet_ntop(AF_INET6, &address->at.v6.sin6_addr, text, sizeof(text));
    return mem_printf("http://[%s]:%d", text, (int)ntohs(address->at.v6.sin6_port));
}

bool socket_address_set(struct socket_address *out, const char *text, uint32_t port)
{
    struct network_address parsed;
    if (port > PORT_MAX || !network_address_parse(text, &parsed))
        return false;
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    memcpy(&four.sin_addr, parsed.bytes, sizeof(four.sin_addr));
    memcpy(&six.sin6_addr, parsed.bytes, sizeof(six.sin6_addr));
    *out = (struct socket_address){.length = parsed.ipv6 ? sizeof(six) : sizeof(four)};
    memcpy(&out->at, parsed.ipv6 ? (const void *)&six : (const void *)&four, out->length);
    return true;
}

int socket_port(const struct socket_address *address)
{
    /* It is at the same place in both families. */
    return ntohs(((const struct sockaddr_in *)&address->at)->sin_port);
}

void tcp_options_set(int fd, int64_t dead_after_ms)
{
    const int on = 1, idle = KEEPALIVE_IDLE_S, interval = KEEPALIVE_INTERVAL_S,
              probes = KEEPALIVE_PROBES;
    unsigned dead = (unsigned)dead_after_ms;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    /* What is lost of a quiet stream is sent again every RTO, not after twice the last wait, so
     * that heartbeats get through a lossy network in time. */
    setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead, sizeof(dead));
}

int socket_listen(struct socket_address *at)
{
    const int off = 0, on = 1;
    struct sockaddr *address = (struct sockaddr *)&at->at;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (fd >= 0 &&
        socket_port(at) != 0) /* connections of the job before may be on it for a while */
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd >= 0 && (bind(fd, address, at->length) < 0 || listen(fd, BACKLOG) < 0 ||
                    getsockname(fd, address, &at->length) < 0))
        fd_close(&fd);
    return fd;
}

/* If somebody else has the port in one family, the other one alone is no use: clients of a name
 * with addresses of both families would come to either of two servers. */
static int listen_on_all(int port, uint32_t *bound)
{
    struct socket_address at;
    socket_address_set(&at, "::", (uint32_t)port);
    int fd = socket_listen(&at);
    if (fd < 0 && errno != EADDRINUSE) {
        socket_address_set(&at, "0.0.0.0", (uint32_t)port);
        fd = socket_listen(&at);
    }
    *bound = (uint32_t)socket_port(&at);
    return fd;
}

struct listener {
    const struct listener_ops *ops;
    void *context;
    int fd;
    uint32_t port;
    struct loop_fd *watch;
    struct loop_timer *full;
    int full_rounds; /* in each of them, connections waited */
    bool paused;
};

static void look_again(void *context)
{
    const struct listener *listener = context;
    loop_fd_watch(listener->watch, listener->paused ? 0 : LOOP_READ);
}

void listener_pause(struct listener *listener, bool pause)
{
    listener->paused = pause;
    look_again(listener);
}

static void be_full(struct listener *listener, const char *cause)
{
    loop_fd_watch(listener->watch, 0);
    loop_timer_set(listener->full, FULL_MS);
    int round = ++listener->full_rounds;
    bool for_long = round % FULL_ROUNDS == 0;
    if (listener->ops->full != NULL && (round == 1 || for_long))
        listener->ops->full(listener->context, cause, for_long);
}

static void knock(void *context, int what)
{
    struct listener *listener = context;
    (void)what;
    for (int i = 0; i < ACCEPTS_PER_TURN && !listener->paused; i++) {
        struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
        socklen_t length = sizeof(from);
        int fd =
            accept4(listener->fd, (struct sockaddr *)&from, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            listener->ops->come(listener->context, fd, &from);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            if (i == 0) /* else perhaps no connection waits: descriptors come first */
                be_full(listener, strerror(errno));
            return;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            listener->full_rounds = 0;
            return;
        } /* else that one has gone again */
    }
}

static struct listener *listener_new(struct loop *loop, int fd, uint32_t port,
                                     const struct listener_ops *ops, void *context)
{
    struct listener *listener =
        MEM_NEW((struct listener){.ops = ops, .context = context, .fd = fd, .port = port});
    listener->full = loop_timer_create(loop, look_again, listener);
    listener->watch = loop_fd_create(loop, fd, knock, listener);
    loop_fd_watch(listener->watch, LOOP_READ);
    return listener;
}

struct listener *listener_create(struct loop *loop, const char *address,
                                 const struct listener_ops *ops, void *context, struct error *err)
{
    struct socket_address at;
    if (!socket_address_set(&at, address, 0)) {
        error_set(err, "'%s' is not a numeric address", address);
        return NULL;
    }
    int fd = socket_listen(&at);
    if (fd < 0) {
        error_errno(err, errno, "cannot listen on %s", address);
        return NULL;
    }
    return listener_new(loop, fd, (uint32_t)socket_port(&at), ops, context);
}

struct listener *listener_create_at(struct loop *loop, int port, const struct listener_ops *ops,
                                    void *context)
{
    uint32_t bound;
    int fd = listen_on_all(port, &bound);
    return fd < 0 ? NULL : listener_new(loop, fd, bound, ops, context);
}

void listener_destroy(struct listener *listener)
{
    if (listener == NULL)
        return;
    loop_timer_destroy(listener->full);
    loop_fd_destroy(listener->watch);
    fd_close(&listener->fd);
    free(listener);
}

uint32_t listener_port(const struct listener *listener)
{
    return listener->port;
}
