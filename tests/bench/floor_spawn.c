/* SPDX-License-Identifier: Apache-2.0 */
/*
 * floor_spawn N PROGRAM [ARGUMENT...] does the least that a launcher can do for N local ranks if it
 * takes their output. For each rank it makes two pipes, does vfork and exec, reads both pipes to
 * their end, and waits for the process. It sets no environment, no limits and no session, and does
 * not report the order of exits.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVENTS 64
/* After so many starts it waits for ended ranks, because thousands of zombies would cost more. */
#define SLICE 32

struct floor {
    int epoll, pipes, children, bad;
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        fail("floor_spawn: epoll_ctl");
}

/* A child that has not yet reached its exec holds copies of our descriptors. With close() alone,
 * epoll would still report them. */
static void forget(int epoll, int fd)
{
    epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
    close(fd);
}

static void spawn(struct floor *floor, char *const argv[])
{
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
        fail("floor_spawn: pipe2");
    pid_t pid = vfork();
    if (pid < 0)
        fail("floor_spawn: vfork");
    if (pid == 0) {
        if (dup2(out[1], 1) == 1 && dup2(err[1], 2) == 2)
            execv(argv[0], argv);
        _exit(127);
    }
    close(out[1]);
    close(err[1]);
    watch(floor->epoll, out[0]);
    watch(floor->epoll, err[0]);
    floor->pipes += 2;
    floor->children++;
}

/* Reads what is there (wait: at least something) and reaps the ranks that have ended. */
static void collect(struct floor *floor, bool wait)
{
    struct epoll_event events[EVENTS];
    char bytes[4096];
    int count = epoll_wait(floor->epoll, events, EVENTS, wait ? -1 : 0);
    for (int i = 0; i < count; i++) {
        if (read(events[i].data.fd, bytes, sizeof(bytes)) > 0)
            continue;
        forget(floor->epoll, events[i].data.fd);
        floor->pipes--;
    }
    int status;
    while (floor->children > 0 && waitpid(-1, &status, WNOHANG) > 0) {
        floor->children--;
        floor->bad += status != 0;
    }
}

int main(int argc, char **argv)
{
    long ranks = argc < 3 ? 0 : strtol(argv[1], NULL, 10);
    if (ranks <= 0) {
        fprintf(stderr, "usage: floor_spawn N PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max; /* two descriptors per rank */
    setrlimit(RLIMIT_NOFILE, &limit);
    struct floor floor = {.epoll = epoll_create1(EPOLL_CLOEXEC)};
    for (long i = 0; i < ranks; i++) {
        spawn(&floor, argv + 2);
        if (i % SLICE == SLICE - 1)
            collect(&floor, false);
    }
    while (floor.pipes > 0)
        collect(&floor, true);
    int status;
    while (floor.children-- > 0) {
        if (wait(&status) < 0)
            fail("floor_spawn: wait");
        floor.bad += status != 0;
    }
    return floor.bad > 0;
}
