/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/notifier.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"
#include "rendezvous/notification.h"

#define LOOPBACK "127.0.0.1"

enum stage {
    UNREADABLE, /* the registration is */
    PAUSING,    /* until the next try */
    CONNECTING,
    WRITING,
    READING,
};

/* One notifier_send(). */
struct notifier_errand {
    struct notifier *notifier;
    LIST_ENTRY(notifier_errand) all;
    uint32_t seat;
    uint64_t timestamp;
    enum stage stage;
    struct registration_address addresses[NOTIFIER_TRIES];
    int tries; /* that have failed */
    uint8_t key[REGISTRATION_KEY_MAX];
    size_t key_length;
    uint8_t request[NOTIFICATION_REQUEST_MAX];
    size_t request_length, written;
    struct notification_reply *reply;
    int fd;
    struct loop_fd *watch;
    struct loop_timer *timer; /* the end of a pause or the deadline of a stage */
    char problem[ERROR_TEXT_MAX];
};

struct notifier {
    struct loop *loop;
    LIST_HEAD(, notifier_errand) errands;
    int64_t connect_ms, reply_ms, pause_ms;
    void (*done)(void *context, uint32_t seat, uint64_t timestamp, const char *problem);
    void *context;
};

struct notifier *notifier_create(struct loop *loop,
                                 void (*done)(void *context, uint32_t seat, uint64_t timestamp,
                                              const char *problem),
                                 void *context)
{
    struct notifier *notifier =
        MEM_NEW((struct notifier){.loop = loop, .done = done, .context = context});
    notifier_set_limits(notifier, 2000, 5000, 200);
    return notifier;
}

void notifier_set_limits(struct notifier *notifier, int64_t connect_ms, int64_t reply_ms,
                         int64_t pause_ms)
{
    notifier->connect_ms = connect_ms;
    notifier->reply_ms = reply_ms;
    notifier->pause_ms = pause_ms;
}

static void hang_up(struct notifier_errand *errand)
{
    loop_fd_destroy(errand->watch);
    errand->watch = NULL;
    fd_close(&errand->fd);
    notification_reply_destroy(errand->reply);
    errand->reply = NULL;
}

static void errand_destroy(struct notifier_errand *errand)
{
    LIST_REMOVE(errand, all);
    hang_up(errand);
    loop_timer_destroy(errand->timer);
    free(errand);
}

void notifier_destroy(struct notifier *notifier)
{
    if (notifier == NULL)
        return;
    while (!LIST_EMPTY(&notifier->errands))
        errand_destroy(LIST_FIRST(&notifier->errands));
    free(notifier);
}

/* `done` may destroy the notifier, so nothing is touched after it. */
static void finish(struct notifier_errand *errand, bool succeeded)
{
    struct notifier *notifier = errand->notifier;
    uint32_t seat = errand->seat;
    uint64_t timestamp = errand->timestamp;
    char *problem AUTO_FREE = succeeded ? NULL : mem_strdup(errand->problem);
    errand_destroy(errand);
    notifier->done(notifier->context, seat, timestamp, problem);
}

/* Loopback with the first port (there is one for all), then what was registered, then again. */
static void choose_addresses(struct notifier_errand *errand,
                             const struct registration *registration)
{
    size_t at = 0;
    for (size_t i = 0; i < NOTIFIER_TRIES; i++) {
        errand->addresses[i] = registration->addresses[at == 0 ? 0 : at - 1];
        if (at == 0)
            snprintf(errand->addresses[i].text, sizeof(errand->addresses[i].text), LOOPBACK);
        do
            at = at == registration->count ? 0 : at + 1;
        while (at > 0 && strcmp(registration->addresses[at - 1].text, LOOPBACK) == 0);
    }
}

static void try_failed(struct notifier_errand *errand, const char *why)
{
    const struct registration_address *address = &errand->addresses[errand->tries];
    snprintf(errand->problem, sizeof(errand->problem),
             "the worker's notification service at %s:%u %s", address->text, address->port, why);
    hang_up(errand);
    errand->tries++;
    if (errand->tries == NOTIFIER_TRIES) {
        finish(errand, false);
        return;
    }
    errand->stage = PAUSING;
    loop_timer_set(errand->timer, errand->notifier->pause_ms);
}

static void try_failed_errno(struct notifier_errand *errand, const char *what, int errnum)
{
    char why[128], text[64];
    snprintf(why, sizeof(why), "%s: %s", what, strerror_r(errnum, text, sizeof(text)));
    try_failed(errand, why);
}

static void read_reply(struct notifier_errand *errand)
{
    uint8_t bytes[1024];
    ssize_t got = fd_read(errand->fd, bytes, sizeof(bytes));
    if (got < 0 && errno == EAGAIN)
        return;
    if (got < 0) {
        try_failed_errno(errand, "does not answer", errno);
    } else if (got == 0) {
        try_failed(errand, "closes the connection without an answer");
    } else {
        enum notification_verdict verdict =
            notification_reply_feed(errand->reply, bytes, (size_t)got);
        if (verdict == NOTIFICATION_ACKNOWLEDGED)
            finish(errand, true);
        else if (verdict == NOTIFICATION_BAD)
            try_failed(errand, notification_reply_problem(errand->reply));
    }
}

static void write_request(struct notifier_errand *errand)
{
    ssize_t sent = send(errand->fd, errand->request + errand->written,
                        errand->request_length - errand->written, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (sent < 0) {
        try_failed_errno(errand, "does not take the request", errno);
        return;
    }
    errand->written += (size_t)sent;
    if (errand->written < errand->request_length)
        return;
    errand->stage = READING;
    loop_fd_watch(errand->watch, LOOP_READ);
}

static void connected(struct notifier_errand *errand)
{
    int errnum = fd_connect_errno(errand->fd);
    if (errnum != 0) {
        try_failed_errno(errand, "cannot be reached", errnum);
        return;
    }
    errand->stage = WRITING;
    loop_timer_set(errand->timer, errand->notifier->reply_ms);
    write_request(errand);
}

static void socket_ready(void *context, int what)
{
    struct notifier_errand *errand = context;
    (void)what;
    if (errand->stage == CONNECTING)
        connected(errand);
    else if (errand->stage == WRITING)
        write_request(errand);
    else
        read_reply(errand);
}

static void begin_try(struct notifier_errand *errand)
{
    const struct registration_address *address = &errand->addresses[errand->tries];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(address->port)};
    inet_pton(AF_INET, address->text, &to.sin_addr);
    errand->written = 0;
    errand->stage = CONNECTING;
    errand->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (errand->fd < 0 || (connect(errand->fd, (const struct sockaddr *)&to, sizeof(to)) < 0 &&
                           errno != EINPROGRESS)) {
        try_failed_errno(errand, "cannot be reached", errno);
        return;
    }
    errand->reply = notification_reply_create(errand->key, errand->key_length);
    errand->watch = loop_fd_create(errand->notifier->loop, errand->fd, socket_ready, errand);
    loop_fd_watch(errand->watch, LOOP_WRITE);
    loop_timer_set(errand->timer, errand->notifier->connect_ms);
}

static void timer_fire(void *context)
{
    struct notifier_errand *errand = context;
    switch (errand->stage) {
    case UNREADABLE: finish(errand, false); break;
    case PAUSING: begin_try(errand); break;
    case CONNECTING: try_failed(errand, "cannot be reached within the time limit"); break;
    case WRITING:
    case READING: try_failed(errand, "does not answer within the time limit"); break;
    }
}

static bool in_progress(const struct notifier *notifier, uint32_t seat)
{
    const struct notifier_errand *errand;
    LIST_FOREACH (errand, &notifier->errands, all) {
        if (errand->seat == seat)
            return true;
    }
    return false;
}

void notifier_send(struct notifier *notifier, uint32_t seat, uint64_t timestamp, int result,
                   const uint8_t *registration, size_t length)
{
    if (in_progress(notifier, seat))
        return;
    struct notifier_errand *errand = MEM_NEW((struct notifier_errand){
        .notifier = notifier, .seat = seat, .timestamp = timestamp, .stage = PAUSING, .fd = -1});
    LIST_INSERT_HEAD(&notifier->errands, errand, all);
    errand->timer = loop_timer_create(notifier->loop, timer_fire, errand);
    struct registration parsed;
    struct error err = ERROR_INIT;
    if (registration_read(registration, length, &parsed, &err) == 0) {
        choose_addresses(errand, &parsed);
        errand->key_length = parsed.key_length;
        memcpy(errand->key, parsed.key, parsed.key_length);
        errand->request_length = notification_write_request(errand->request, parsed.key,
                                                            parsed.key_length, timestamp, result);
        registration_destroy(&parsed);
    } else {
        errand->stage = UNREADABLE;
        snprintf(errand->problem, sizeof(errand->problem), "%s", err.text);
    }
    loop_timer_set(errand->timer, 0); /* `done` never comes from in here */
}
