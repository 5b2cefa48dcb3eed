/* SPDX-License-Identifier: Apache-2.0 */
#include "io/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/status.h"
#include "model/net/address.h"

#define PORT_MAX 65535
#define PATH_PREFIX "unix:"
#define AGAIN_MS 200

static int parse_path(const char *path, struct listen_address *out, struct error *err)
{
    struct sockaddr_un *at = &out->at.local;
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof(at->sun_path))
        return error_status(err, STATUS_USAGE, "the path of a socket has 1 to %zu bytes",
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
    return error_status(err, STATUS_USAGE,
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

struct listener {
    int fd;
    uint32_t port;
    struct loop_fd *watch;
    struct loop_timer *again;
    void (*come)(void *context, int fd);
    void *context;
};

static void knock(void *context, int what)
{
    struct listener *listener = context;
    (void)what;
    int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
        listener->come(listener->context, fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        loop_fd_watch(listener->watch, 0);
        loop_timer_set(listener->again, AGAIN_MS);
    }
}

static void look_again(void *context)
{
    const struct listener *listener = context;
    loop_fd_watch(listener->watch, LOOP_READ);
}

/* The port is at the same place in both families. */
static int open_socket(struct listener *listener, const struct socket_address *at)
{
    struct sockaddr_storage own = {.ss_family = AF_UNSPEC};
    socklen_t length = sizeof(own);
    listener->fd = socket(at->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener->fd < 0 || bind(listener->fd, (const struct sockaddr *)&at->at, at->length) < 0 ||
        listen(listener->fd, SOMAXCONN) < 0 ||
        getsockname(listener->fd, (struct sockaddr *)&own, &length) < 0)
        return -1;
    listener->port = ntohs(((const struct sockaddr_in *)&own)->sin_port);
    return 0;
}

struct listener *listener_create(struct loop *loop, const char *address,
                                 void (*come)(void *context, int fd), void *context,
                                 struct error *err)
{
    struct socket_address at;
    if (!socket_address_set(&at, address, 0)) {
        error_set(err, "'%s' is not a numeric address", address);
        return NULL;
    }
    struct listener *listener = mem_alloc(sizeof(*listener));
    *listener = (struct listener){.come = come, .context = context};
    if (open_socket(listener, &at) < 0) {
        error_errno(err, errno, "cannot listen on %s", address);
        listener_destroy(listener);
        return NULL;
    }
    listener->watch = loop_fd_create(loop, listener->fd, knock, listener);
    listener->again = loop_timer_create(loop, look_again, listener);
    loop_fd_watch(listener->watch, LOOP_READ);
    return listener;
}

void listener_destroy(struct listener *listener)
{
    if (listener == NULL)
        return;
    loop_timer_destroy(listener->again);
    loop_fd_destroy(listener->watch);
    fd_close(&listener->fd);
    free(listener);
}

uint32_t listener_port(const struct listener *listener)
{
    return listener->port;
}
