/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The barrier of elastic_plain: rank 0 listens on MASTER_PORT, all others connect to
 * MASTER_ADDR:MASTER_PORT, and every word has a deadline. Whoever is met must be of the same epoch
 * and size and at the same step: anything else would be a fault of the launcher.
 */
#pragma once

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <sys/socket.h>

#include "worker.h"

enum { LOST = 1, WRONG = 70, STOPPED = 143, RETRY_MS = 20, CIRCLE_MAGIC = 0x68766470 };

struct word { /* both ends are this program on one kind of machine */
    uint32_t magic, epoch, rank, size;
    int64_t step;
    uint64_t sum;
};

struct circle {
    int rank, size, epoch, restart;
    int64_t deadline_ms;
    int *peers;     /* of rank 0: by rank; of the others: one, rank 0 */
    bool *has_said; /* of rank 0: by rank, in this round */
    bool (*stopped)(void);
};

static int64_t circle_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The reason on stderr. A failure of somebody who was asked to stop is none. */
__attribute__((noreturn, format(printf, 3, 4))) static void
circle_fail(const struct circle *circle, int code, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    const bool excused = code == LOST && circle->stopped();
    dprintf(2, "epoch %d restart %d rank %d/%d: %s%s\n", circle->epoch, circle->restart,
            circle->rank, circle->size, text, excused ? " (was asked to stop)" : "");
    _exit(excused ? STOPPED : code);
}

static void circle_send(const struct circle *circle, int fd, int peer, const struct word *word)
{
    ssize_t sent;
    do
        sent = send(fd, word, sizeof(*word), MSG_NOSIGNAL); /* far smaller than any buffer */
    while (sent < 0 && errno == EINTR);
    if (sent != (ssize_t)sizeof(*word))
        circle_fail(circle, LOST, "rank %d has gone (%s)", peer, strerror(errno));
}

/* False: end of file, or an error. The deadline is fatal. */
static bool circle_receive(const struct circle *circle, int fd, int64_t until, struct word *word)
{
    size_t got = 0;
    while (got < sizeof(*word)) {
        const int64_t left = until - circle_now_ms();
        if (left <= 0)
            circle_fail(circle, LOST, "no answer within %lld ms", (long long)circle->deadline_ms);
        struct pollfd pollfd = {.fd = fd, .events = POLLIN};
        if (poll(&pollfd, 1, (int)left) <= 0)
            continue;
        const ssize_t n = read(fd, (char *)word + got, sizeof(*word) - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        got += (size_t)n;
    }
    return true;
}

static void circle_check(const struct circle *circle, const struct word *word, int64_t step)
{
    if (word->magic != CIRCLE_MAGIC)
        circle_fail(circle, WRONG, "a stranger speaks");
    if ((int)word->epoch != circle->epoch || (int)word->size != circle->size)
        circle_fail(circle, WRONG, "rank %d/%d of epoch %d is still there", (int)word->rank,
                    (int)word->size, (int)word->epoch);
    if (step >= 0 && word->step != step)
        circle_fail(circle, WRONG, "rank %d is at step %lld, not %lld", (int)word->rank,
                    (long long)word->step, (long long)step);
}

static struct word circle_word(const struct circle *circle, int64_t step, uint64_t sum)
{
    return (struct word){.magic = CIRCLE_MAGIC,
                         .epoch = (uint32_t)circle->epoch,
                         .rank = (uint32_t)circle->rank,
                         .size = (uint32_t)circle->size,
                         .step = step,
                         .sum = sum};
}

/* ---- meeting ---- */

static void circle_quit_if_stopped(const struct circle *circle)
{
    if (circle->stopped())
        circle_fail(circle, STOPPED, "asked to stop before the first step");
}

/* Also while the port is held by the launcher, and while one of the epoch before lets go of it. */
static int circle_listen(const struct circle *circle, const char *port, int64_t until)
{
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)to_number(port))};
    const int on = 1;
    for (;;) {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (bind(fd, (const struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1024) == 0)
            return fd;
        const int why = errno;
        close(fd);
        circle_quit_if_stopped(circle);
        if (why != EADDRINUSE || circle_now_ms() > until)
            circle_fail(circle, LOST, "cannot listen on port %s: %s", port, strerror(why));
        pause_ms(RETRY_MS);
    }
}

static void circle_gather(struct circle *circle, int listener, int64_t until)
{
    for (int missing = circle->size - 1; missing > 0;) {
        circle_quit_if_stopped(circle);
        if (circle_now_ms() > until)
            circle_fail(circle, LOST, "%d ranks have not come within %lld ms", missing,
                        (long long)circle->deadline_ms);
        struct pollfd pollfd = {.fd = listener, .events = POLLIN};
        if (poll(&pollfd, 1, RETRY_MS) <= 0)
            continue;
        const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        struct word word;
        if (fd < 0 || !circle_receive(circle, fd, until, &word)) {
            close(fd);
            continue;
        }
        circle_check(circle, &word, -1);
        if (word.rank == 0 || (int)word.rank >= circle->size || circle->peers[word.rank] >= 0)
            circle_fail(circle, WRONG, "rank %d has come twice", (int)word.rank);
        const int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        circle->peers[word.rank] = fd;
        missing--;
    }
}

static int circle_connect(const struct circle *circle, const char *address, const char *port,
                          int64_t until)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (getaddrinfo(address, port, &hints, &found) != 0)
        circle_fail(circle, LOST, "cannot resolve %s", address);
    for (;;) {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (connect(fd, found->ai_addr, found->ai_addrlen) == 0) {
            freeaddrinfo(found);
            return fd;
        }
        const int why = errno;
        close(fd);
        circle_quit_if_stopped(circle);
        if (circle_now_ms() > until)
            circle_fail(circle, LOST, "cannot connect to %s:%s: %s", address, port, strerror(why));
        pause_ms(RETRY_MS);
    }
}

/* Everybody meets and learns where rank 0 goes on. */
static void circle_open(struct circle *circle, int64_t *step, uint64_t *sum)
{
    if (circle->size == 1)
        return;
    const char *address = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
    if (address == NULL || port == NULL)
        circle_fail(circle, 97, "MASTER_ADDR and MASTER_PORT are not set");
    const int64_t until = circle_now_ms() + circle->deadline_ms;
    circle->peers = malloc((size_t)circle->size * sizeof(*circle->peers));
    circle->has_said = calloc((size_t)circle->size, sizeof(*circle->has_said));
    for (int i = 0; i < circle->size; i++)
        circle->peers[i] = -1;
    struct word word = circle_word(circle, *step, *sum);
    if (circle->rank == 0) {
        const int listener = circle_listen(circle, port, until);
        circle_gather(circle, listener, until);
        close(listener);
        for (int i = 1; i < circle->size; i++)
            circle_send(circle, circle->peers[i], i, &word);
        return;
    }
    circle->peers[0] = circle_connect(circle, address, port, until);
    circle_send(circle, circle->peers[0], 0, &word);
    if (!circle_receive(circle, circle->peers[0], until, &word))
        circle_fail(circle, LOST, "rank 0 has gone before the first step");
    circle_check(circle, &word, -1);
    *step = word.step;
    *sum = word.sum;
}

/* ---- one round ---- */

/* Rank 0 waits for all at once, so that one who hangs does not hide one who is gone. */
static void circle_collect(struct circle *circle, int64_t step)
{
    const int64_t until = circle_now_ms() + circle->deadline_ms;
    struct pollfd polls[circle->size];
    memset(circle->has_said, 0, (size_t)circle->size * sizeof(*circle->has_said));
    for (int missing = circle->size - 1; missing > 0;) {
        for (int i = 0; i < circle->size; i++) /* poll() leaves out what is below 0 */
            polls[i] = (struct pollfd){circle->has_said[i] ? -1 : circle->peers[i], POLLIN, 0};
        const int64_t left = until - circle_now_ms();
        if (left <= 0)
            circle_fail(circle, LOST, "%d ranks have not come to step %lld within %lld ms", missing,
                        (long long)step, (long long)circle->deadline_ms);
        if (poll(polls, (nfds_t)circle->size, (int)left) <= 0)
            continue;
        for (int i = 1; i < circle->size; i++) {
            struct word word;
            if (polls[i].revents == 0)
                continue;
            if (!circle_receive(circle, circle->peers[i], until, &word))
                circle_fail(circle, LOST, "rank %d has gone at step %lld", i, (long long)step);
            circle_check(circle, &word, step);
            circle->has_said[i] = true;
            missing--;
        }
    }
}

static void circle_release(const struct circle *circle, int64_t step, uint64_t sum)
{
    const struct word word = circle_word(circle, step, sum);
    for (int i = 1; i < circle->size; i++)
        circle_send(circle, circle->peers[i], i, &word);
}

/* Of the others: says "here" and waits for rank 0, whose sum must be the own one. */
static void circle_follow(const struct circle *circle, int64_t step, uint64_t sum)
{
    struct word word = circle_word(circle, step, sum);
    circle_send(circle, circle->peers[0], 0, &word);
    if (!circle_receive(circle, circle->peers[0], circle_now_ms() + circle->deadline_ms, &word))
        circle_fail(circle, LOST, "rank 0 has gone at step %lld", (long long)step);
    circle_check(circle, &word, step);
    if (word.sum != sum)
        circle_fail(circle, WRONG, "rank 0 has another sum at step %lld", (long long)step);
}
