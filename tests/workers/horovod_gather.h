/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One context of a Horovod worker, a connection to every other rank, and what collectives do over
 * it: everyone sends to everyone. A peer that is gone fails all the others.
 */
#pragma once

#include "horovod_client.h"

struct place {
    int rank, size;
};

struct context {
    char scope[512];
    struct place place;
    int listener;
    struct sockaddr_in address;
    uint64_t nonce;
    int *peers; /* connected sockets by rank; -1 */
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* False: end of file, an error, or the time is over. */
static bool read_exact(int fd, void *bytes, size_t length, int64_t timeout_ms)
{
    char *place = bytes;
    int64_t deadline = now_ms() + timeout_ms;
    while (length > 0) {
        struct pollfd watch = {.fd = fd, .events = POLLIN};
        int64_t left = deadline - now_ms();
        if (poll(&watch, 1, left > 0 ? (int)left : 0) <= 0)
            return false;
        ssize_t n = read(fd, place, length);
        if (n <= 0)
            return false;
        place += n;
        length -= (size_t)n;
    }
    return true;
}

/* A peer whose machine is gone without a word must not hold a connect() or a send() for longer. */
static void tune(int fd, int64_t timeout_ms)
{
    int on = 1;
    struct timeval limit = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

/* Reads what a peer has sent of its message. False: it is gone. */
static bool take_part(int fd, char *message, size_t length, size_t *got)
{
    ssize_t n = recv(fd, message + *got, length - *got, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    *got += n > 0 ? (size_t)n : 0;
    return n > 0;
}

/* Sends a message to every peer and collects theirs: all[rank], mine too. False: a peer is gone, or
 * was silent for so long; who it is shows at once, whoever else is slow. */
static bool gather(struct context *context, const void *mine, size_t length, void *all,
                   int64_t timeout_ms)
{
    int size = context->place.size, missing = size - 1;
    int64_t deadline = now_ms() + timeout_ms;
    struct pollfd *watch = allocate((size_t)size * sizeof(*watch));
    size_t *got = allocate((size_t)size * sizeof(*got));
    bool fine = true;
    memcpy((char *)all + (size_t)context->place.rank * length, mine, length);
    for (int i = 0; i < size; i++) {
        watch[i] = (struct pollfd){.fd = context->peers[i], .events = POLLIN};
        if (i != context->place.rank)
            fine = fine && send(watch[i].fd, mine, length, MSG_NOSIGNAL) == (ssize_t)length;
    }
    while (fine && missing > 0) {
        int64_t left = deadline - now_ms();
        fine = poll(watch, (nfds_t)size, left > 0 ? (int)left : 0) > 0;
        for (int i = 0; i < size && fine; i++) {
            if (watch[i].fd < 0 || watch[i].revents == 0)
                continue;
            fine = take_part(watch[i].fd, (char *)all + (size_t)i * length, length, &got[i]);
            if (got[i] == length) {
                watch[i].fd = -1;
                missing--;
            }
        }
    }
    free(watch);
    free(got);
    return fine;
}

/* The sum of the numbers of all ranks. */
static bool exchange(struct context *context, int64_t mine, int64_t timeout_ms, int64_t *sum)
{
    int64_t *all = allocate((size_t)context->place.size * sizeof(*all));
    bool fine = gather(context, &mine, sizeof(mine), all, timeout_ms);
    *sum = 0;
    for (int i = 0; i < context->place.size; i++)
        *sum += all[i];
    free(all);
    return fine;
}
