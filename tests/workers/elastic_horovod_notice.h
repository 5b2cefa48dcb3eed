/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The notification service of an elastic Horovod worker: a thread that listens, answers pings,
 * takes "hosts have changed" and acknowledges it. What has come waits until the training looks at
 * it, at a commit; a reset throws it away, as the original does. A frame with a wrong digest or a
 * wrong body is a violation, because it can only come from the launcher.
 */
#pragma once

#include "elastic_horovod_hmac.h"
#include "elastic_horovod_pickle.h"
#include "horovod_gather.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <pthread.h>
#include <sys/random.h>

enum { NOTICES_MAX = 64, NOTICE_HEAD = SHA_SIZE + 4, NOTICE_LIMIT_MS = 10000 };

struct notice {
    int64_t timestamp, res;
};

struct notices {
    pthread_mutex_t lock;
    struct notice waiting[NOTICES_MAX];
    int count;
    int listener;
    uint16_t port; /* host byte order */
    int rank;      /* for messages: the one at the start */
    unsigned char key[SHA_SIZE];
};

static void notices_add(struct notices *notices, struct notice notice)
{
    pthread_mutex_lock(&notices->lock);
    if (notices->count == NOTICES_MAX)
        violation(notices->rank, "%d notifications within one commit", NOTICES_MAX);
    notices->waiting[notices->count++] = notice;
    pthread_mutex_unlock(&notices->lock);
}

/* Takes all that are there, at most NOTICES_MAX; returns how many. */
static int notices_take(struct notices *notices, struct notice *into)
{
    pthread_mutex_lock(&notices->lock);
    int count = notices->count;
    memcpy(into, notices->waiting, (size_t)count * sizeof(*into));
    notices->count = 0;
    pthread_mutex_unlock(&notices->lock);
    return count;
}

static void notices_answer(const struct notices *notices, int fd, struct pickle *body)
{
    unsigned char head[NOTICE_HEAD];
    int32_t length = (int32_t)body->length;
    hmac_sha256(notices->key, body->bytes, body->length, head);
    memcpy(head + SHA_SIZE, &length, sizeof(length));
    if (send(fd, head, sizeof(head), MSG_NOSIGNAL) != (ssize_t)sizeof(head) ||
        send(fd, body->bytes, body->length, MSG_NOSIGNAL) != (ssize_t)body->length)
        dprintf(2, "rank %d: notification: the asker has gone\n", notices->rank);
}

static void answer_ping(const struct notices *notices, int fd)
{
    struct sockaddr_in peer = {0};
    socklen_t length = sizeof(peer);
    char address[INET_ADDRSTRLEN] = "";
    struct pickle body;
    getpeername(fd, (struct sockaddr *)&peer, &length);
    inet_ntop(AF_INET, &peer.sin_addr, address, sizeof(address));
    pickle_open(&body);
    pickle_object(&body, PICKLE_NETWORK, "PingResponse");
    pickle_ops(&body, "}\x94(");
    pickle_string(&body, "service_name");
    pickle_string(&body, "worker notification service");
    pickle_string(&body, "source_address");
    pickle_string(&body, address);
    pickle_ops(&body, "ub");
    pickle_close(&body);
    notices_answer(notices, fd, &body);
}

static void answer_update(struct notices *notices, int fd, const struct value *request)
{
    struct pickle body;
    if (request->timestamp <= 0 || request->res < 1 || request->res > 3)
        violation(notices->rank, "a notification with timestamp %lld and result %lld",
                  (long long)request->timestamp, (long long)request->res);
    dprintf(1, "notified timestamp %lld result %lld\n", (long long)request->timestamp,
            (long long)request->res);
    notices_add(notices, (struct notice){request->timestamp, request->res});
    pickle_open(&body);
    pickle_object(&body, PICKLE_NETWORK, "AckResponse");
    pickle_close(&body);
    notices_answer(notices, fd, &body);
}

static void serve_one(struct notices *notices, int fd)
{
    unsigned char head[NOTICE_HEAD], digest[SHA_SIZE], body[PICKLE_MAX];
    int32_t length = 0;
    struct value request;
    if (!read_exact(fd, head, sizeof(head), NOTICE_LIMIT_MS))
        return; /* somebody looked whether the port is open */
    memcpy(&length, head + SHA_SIZE, sizeof(length));
    if (length < 1 || length > PICKLE_MAX)
        violation(notices->rank, "a notification of %d bytes", length);
    if (!read_exact(fd, body, (size_t)length, NOTICE_LIMIT_MS))
        violation(notices->rank, "a notification that is cut off");
    hmac_sha256(notices->key, body, (size_t)length, digest);
    if (memcmp(digest, head, SHA_SIZE) != 0)
        violation(notices->rank, "a notification with a wrong digest");
    const char *problem = unpickle(body, (size_t)length, &request);
    if (problem != NULL)
        violation(notices->rank, "a notification that is no good pickle: %s", problem);
    if (strcmp(request.module, PICKLE_NETWORK) == 0 && strcmp(request.text, "PingRequest") == 0)
        answer_ping(notices, fd);
    else if (strcmp(request.module, PICKLE_WORKER) == 0 &&
             strcmp(request.text, "HostsUpdatedRequest") == 0)
        answer_update(notices, fd, &request);
    else
        violation(notices->rank, "a notification of class %s.%s", request.module, request.text);
}

static void *serve(void *argument)
{
    struct notices *notices = argument;
    for (;;) {
        int fd = accept4(notices->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        serve_one(notices, fd);
        close(fd);
    }
    return NULL;
}

static void notices_start(struct notices *notices, int rank)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    socklen_t length = sizeof(any);
    pthread_t thread;
    *notices = (struct notices){.lock = PTHREAD_MUTEX_INITIALIZER, .rank = rank};
    notices->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (notices->listener < 0 ||
        bind(notices->listener, (struct sockaddr *)&any, sizeof(any)) < 0 ||
        listen(notices->listener, SOMAXCONN) < 0 ||
        getsockname(notices->listener, (struct sockaddr *)&any, &length) < 0 ||
        getrandom(notices->key, SHA_SIZE, 0) != SHA_SIZE ||
        pthread_create(&thread, NULL, serve, notices) != 0)
        give_up(rank, "cannot serve notifications: %s", strerror(errno));
    notices->port = ntohs(any.sin_port);
    pthread_detach(thread);
}

/* Whether the interface is among those that HOROVOD_GLOO_IFACE allows; the original asks whether
 * its name occurs in that text. */
static bool is_wanted(const struct ifaddrs *interface)
{
    const char *wish = getenv("HOROVOD_GLOO_IFACE");
    return interface->ifa_addr != NULL && interface->ifa_addr->sa_family == AF_INET &&
           (wish == NULL || strstr(wish, interface->ifa_name) != NULL);
}

static int addresses_of(const struct ifaddrs *list, const char *name)
{
    int count = 0;
    for (const struct ifaddrs *at = list; at != NULL; at = at->ifa_next)
        count += is_wanted(at) && strcmp(at->ifa_name, name) == 0;
    return count;
}

static void pickle_addresses(struct pickle *pickle, const struct ifaddrs *list, const char *name,
                             uint16_t port)
{
    int count = addresses_of(list, name);
    pickle_string(pickle, name);
    pickle_ops(pickle, count > 1 ? "]\x94(" : "]\x94");
    for (const struct ifaddrs *at = list; at != NULL; at = at->ifa_next) {
        char text[INET_ADDRSTRLEN];
        struct sockaddr_in address;
        if (!is_wanted(at) || strcmp(at->ifa_name, name) != 0)
            continue;
        memcpy(&address, at->ifa_addr, sizeof(address));
        inet_ntop(AF_INET, &address.sin_addr, text, sizeof(text));
        pickle_string(pickle, text);
        pickle_port(pickle, port);
        pickle_ops(pickle, "\x86\x94");
    }
    pickle_ops(pickle, count > 1 ? "e" : "a");
}

/* Whether an earlier address of the list has the same interface. */
static bool is_repeated(const struct ifaddrs *list, const struct ifaddrs *which)
{
    for (const struct ifaddrs *at = list; at != which; at = at->ifa_next) {
        if (is_wanted(at) && strcmp(at->ifa_name, which->ifa_name) == 0)
            return true;
    }
    return false;
}

/* ({interface: [(address, port)]}, key), as the worker registers it. */
static void notices_registration(const struct notices *notices, struct pickle *pickle)
{
    struct ifaddrs *list = NULL;
    int count = 0;
    if (getifaddrs(&list) < 0)
        give_up(notices->rank, "getifaddrs: %s", strerror(errno));
    for (const struct ifaddrs *at = list; at != NULL; at = at->ifa_next)
        count += is_wanted(at) && !is_repeated(list, at);
    pickle_open(pickle);
    pickle_ops(pickle, count > 1 ? "}\x94(" : "}\x94");
    for (const struct ifaddrs *at = list; at != NULL; at = at->ifa_next) {
        if (is_wanted(at) && !is_repeated(list, at))
            pickle_addresses(pickle, list, at->ifa_name, notices->port);
    }
    if (count > 0)
        pickle_ops(pickle, count > 1 ? "u" : "s");
    pickle_bytes(pickle, notices->key, SHA_SIZE);
    pickle_ops(pickle, "\x86\x94");
    pickle_close(pickle);
    freeifaddrs(list);
}
