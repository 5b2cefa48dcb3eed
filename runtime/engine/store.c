/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/store.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

enum { TRIES = 3, RETRY_MS = 500, POLL_MS = 10, STOP_MS = 50, HEAD_MAX = 16 * 1024 };
enum { BODY_MAX = 256 * 1024 * 1024 };

struct request {
    const struct store *store;
    const char *method, *scope, *key;
    const void *body;
    size_t length;
    int64_t deadline_ms;
};

struct answer {
    int code; /* 200, 404; 0: none came */
    struct buf *body;
};

static enum hvd_status timed_out(const struct request *request, struct error *err)
{
    error_set(err,
              "%s/%s did not appear in the launcher's store within %lld s: a rank has not come",
              request->scope, request->key, (long long)(request->store->timeout_ms / 1000));
    return HVD_ERR_TIMEOUT;
}

/* HVD_OK: go on waiting. */
static enum hvd_status may_wait(const struct request *request, struct error *err)
{
    if (atomic_load(request->store->stop)) {
        error_set(err, "the engine was aborted");
        return HVD_ERR_PEER_LOST;
    }
    return clock_mono_ms() < request->deadline_ms ? HVD_OK : timed_out(request, err);
}

static enum hvd_status pause_ms(const struct request *request, int64_t ms, struct error *err)
{
    int64_t end = clock_mono_ms() + ms;
    for (int64_t left = ms; left > 0; left = end - clock_mono_ms()) {
        enum hvd_status status = may_wait(request, err);
        if (status != HVD_OK)
            return status;
        int64_t slice = left < STOP_MS ? left : STOP_MS;
        poll(NULL, 0, (int)slice);
    }
    return HVD_OK;
}

static enum hvd_status wait_for(const struct request *request, int fd, short events,
                                struct error *err)
{
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = events};
        if (poll(&wait, 1, STOP_MS) > 0)
            return HVD_OK;
        enum hvd_status status = may_wait(request, err);
        if (status != HVD_OK)
            return status;
    }
}

/* -1: the address cannot be reached, now. */
static int begin_connect(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, address->ai_addr, address->ai_addrlen) != 0 && errno != EINPROGRESS)
        fd_close(&fd);
    return fd;
}

/* `*fd` is -1 if there is not a connection. */
static enum hvd_status open_connection(const struct request *request, int *fd, struct error *err)
{
    char port[16];
    snprintf(port, sizeof port, "%d", request->store->port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    *fd = -1;
    if (getaddrinfo(request->store->host, port, &hints, &found) != 0)
        return HVD_OK;
    enum hvd_status status = HVD_OK;
    for (struct addrinfo *at = found; at != NULL && *fd < 0 && status == HVD_OK; at = at->ai_next) {
        *fd = begin_connect(at);
        if (*fd < 0)
            continue;
        status = wait_for(request, *fd, POLLOUT, err);
        if (fd_connect_errno(*fd) != 0 || status != HVD_OK)
            fd_close(fd);
    }
    freeaddrinfo(found);
    return status;
}

/* `*sent`: whether all bytes were taken. */
static enum hvd_status send_bytes(const struct request *request, int fd, const char *bytes,
                                  size_t length, bool *sent, struct error *err)
{
    *sent = false;
    while (length > 0) {
        ssize_t count = send(fd, bytes, length, MSG_NOSIGNAL);
        if (count > 0) {
            bytes += count;
            length -= (size_t)count;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR)
            return HVD_OK;
        enum hvd_status status = wait_for(request, fd, POLLOUT, err);
        if (status != HVD_OK)
            return status;
    }
    *sent = true;
    return HVD_OK;
}

/* The number in "Content-Length: 12", or -1. */
static long long content_length(const char *head)
{
    static const char name[] = "\ncontent-length:";
    for (const char *at = head; *at != '\0'; at++)
        if (strncasecmp(at, name, sizeof name - 1) == 0)
            return strtoll(at + sizeof name - 1, NULL, 10);
    return -1;
}

/* Moves the head out of `bytes`, if it is complete. -1: it is not. */
static int take_head(struct buf *bytes, int *code, long long *length)
{
    const char *text = buf_text(bytes), *end = strstr(text, "\r\n\r\n");
    if (end == NULL || strncmp(text, "HTTP/1.", 7) != 0)
        return -1;
    char *head AUTO_FREE = mem_strndup(text, (size_t)(end - text));
    const char *space = strchr(head, ' ');
    *code = space == NULL ? 0 : (int)strtol(space, NULL, 10);
    *length = content_length(head);
    buf_consume(bytes, (size_t)(end - text) + 4);
    return 0;
}

static enum hvd_status receive(const struct request *request, int fd, struct answer *answer,
                               struct error *err)
{
    int code = 0;
    long long expected = -1;
    bool in_head = true;
    for (;;) {
        if (!in_head && answer->body->length >= (size_t)expected) {
            answer->code = code;
            return HVD_OK;
        }
        char *room = buf_reserve(answer->body, HEAD_MAX);
        ssize_t count = room == NULL ? 0 : recv(fd, room, HEAD_MAX, 0);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            enum hvd_status status = wait_for(request, fd, POLLIN, err);
            if (status != HVD_OK)
                return status;
            continue;
        }
        if (count <= 0)
            return HVD_OK; /* it closed too early: there is not an answer */
        buf_commit(answer->body, (size_t)count);
        if (in_head && take_head(answer->body, &code, &expected) == 0)
            in_head = false;
        if (!in_head && expected < 0)
            return HVD_OK;
    }
}

static enum hvd_status try_once(const struct request *request, struct answer *answer,
                                struct error *err)
{
    int fd AUTO_FD = -1;
    answer->code = 0;
    buf_clear(answer->body);
    enum hvd_status status = open_connection(request, &fd, err);
    if (status != HVD_OK || fd < 0)
        return status;
    char *head AUTO_FREE =
        mem_printf("%s /%s/%s HTTP/1.1\r\nHost: %s\r\nContent-Length: %zu\r\n\r\n", request->method,
                   request->scope, request->key, request->store->host, request->length);
    bool sent = false;
    status = send_bytes(request, fd, head, strlen(head), &sent, err);
    if (status == HVD_OK && sent)
        status = send_bytes(request, fd, request->body, request->length, &sent, err);
    return status == HVD_OK && sent ? receive(request, fd, answer, err) : status;
}

static enum hvd_status ask(const struct request *request, struct answer *answer, struct error *err)
{
    for (int i = 0; i < TRIES; i++) {
        enum hvd_status status = i == 0 ? HVD_OK : pause_ms(request, RETRY_MS, err);
        if (status == HVD_OK)
            status = try_once(request, answer, err);
        if (status != HVD_OK || answer->code == 200 || answer->code == 404)
            return status;
    }
    if (answer->code == 0)
        error_set(err, "the launcher's store at %s:%d cannot be reached: is the launcher running?",
                  request->store->host, request->store->port);
    else
        error_set(err, "the launcher's store at %s:%d answered %d to %s /%s/%s",
                  request->store->host, request->store->port, answer->code, request->method,
                  request->scope, request->key);
    return HVD_ERR_ENGINE;
}

/* One whose answer has nothing to say. */
static enum hvd_status tell(const struct store *store, const char *method, const char *scope,
                            const char *key, const void *bytes, size_t length, struct error *err)
{
    AUTO_BUF struct buf body = BUF_INIT(BODY_MAX);
    struct answer answer = {.body = &body};
    struct request request = {
        store, method, scope, key, bytes, length, clock_mono_ms() + store->timeout_ms};
    return ask(&request, &answer, err);
}

enum hvd_status store_put(const struct store *store, const char *scope, const char *key,
                          const void *bytes, size_t length, struct error *err)
{
    return tell(store, "PUT", scope, key, bytes, length, err);
}

enum hvd_status store_wait(const struct store *store, const char *scope, const char *key,
                           struct buf *value, struct error *err)
{
    struct answer answer = {.body = value};
    struct request request = {
        store, "GET", scope, key, NULL, 0, clock_mono_ms() + store->timeout_ms};
    for (;;) {
        enum hvd_status status = ask(&request, &answer, err);
        if (status != HVD_OK || answer.code == 200)
            return status;
        status = pause_ms(&request, POLL_MS, err);
        if (status != HVD_OK)
            return status;
    }
}

enum hvd_status store_delete(const struct store *store, const char *scope, const char *key,
                             struct error *err)
{
    return tell(store, "DELETE", scope, key, NULL, 0, err);
}
