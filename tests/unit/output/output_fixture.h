/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output room with its loop, its thread and two pipes for the launcher's stdout and stderr, and
 * a folder for files. Included behind cmocka.h.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "base/fd.h"
#include "output/output.h"

#define WALL (INT64_C(1793502359) * 1000000000)
#define LIMIT_MS 20000

/* Reads a descriptor to its end. */
struct reader {
    pthread_t thread;
    int fd;
    struct buf text;
};

__attribute__((unused)) static void *read_all(void *context)
{
    struct reader *reader = context;
    char bytes[65536];
    for (;;) {
        ssize_t got = fd_read(reader->fd, bytes, sizeof(bytes));
        if (got <= 0)
            return NULL;
        buf_append(&reader->text, bytes, (size_t)got);
    }
}

struct rig {
    struct loop *loop;
    struct output *output;
    struct output_config config;
    int out[2], err[2]; /* pipes */
    struct reader readers[2];
    size_t consumed[4];
    int failures, failed_errnum;
    enum output_stream failed_stream;
    char failed_text[200];
    int flushed;
    struct loop_timer *timer;
    bool timed_out;
};

__attribute__((unused)) static void on_consumed(void *context, int rank, size_t bytes)
{
    struct rig *rig = context;
    if (rank < 4)
        rig->consumed[rank] += bytes;
}

__attribute__((unused)) static void on_failed(void *context, enum output_stream stream, int errnum,
                                              const char *text)
{
    struct rig *rig = context;
    rig->failures++;
    rig->failed_stream = stream;
    rig->failed_errnum = errnum;
    snprintf(rig->failed_text, sizeof(rig->failed_text), "%s", text);
}

__attribute__((unused)) static void on_timeout(void *context)
{
    struct rig *rig = context;
    rig->timed_out = true;
    loop_stop(rig->loop);
}

__attribute__((unused)) static void rig_start(struct rig *rig, struct output_config config)
{
    *rig = (struct rig){.loop = loop_create(NULL), .config = config};
    assert_int_equal(fd_pipe(rig->out), 0);
    assert_int_equal(fd_pipe(rig->err), 0);
    if (rig->config.ranks <= 0)
        rig->config.ranks = config.ranks == 0 ? 4 : 0;                      /* below 0: none */
    rig->config.raw_seat = config.raw_seat == 0 ? -1 : config.raw_seat - 1; /* 0: none, r + 1 */
    if (rig->config.out_fd == 0)
        rig->config.out_fd = rig->out[1];
    if (rig->config.err_fd == 0)
        rig->config.err_fd = rig->err[1];
    const struct output_ops ops = {.consumed = on_consumed, .failed = on_failed};
    struct error err = ERROR_INIT;
    rig->output = output_create(rig->loop, &rig->config, &ops, rig, &err);
    assert_string_equal(err.text, "");
    rig->timer = loop_timer_create(rig->loop, on_timeout, rig);
}

__attribute__((unused)) static void rig_read(struct rig *rig)
{
    int *ends[] = {&rig->out[0], &rig->err[0]};
    for (int i = 0; i < 2; i++) {
        rig->readers[i].fd = *ends[i];
        buf_init(&rig->readers[i].text, 1 << 28);
        pthread_create(&rig->readers[i].thread, NULL, read_all, &rig->readers[i]);
    }
}

__attribute__((unused)) static void run_for(struct rig *rig, int64_t ms)
{
    rig->timed_out = false;
    loop_timer_set(rig->timer, ms);
    loop_run(rig->loop);
    loop_timer_clear(rig->timer);
}

__attribute__((unused)) static void on_flushed(void *context)
{
    struct rig *rig = context;
    rig->flushed++;
    loop_stop(rig->loop);
}

__attribute__((unused)) static void flush(struct rig *rig)
{
    output_flush(rig->output, on_flushed, rig);
    run_for(rig, LIMIT_MS);
    assert_false(rig->timed_out);
}

__attribute__((unused)) static void rig_end(struct rig *rig)
{
    assert_true(output_destroy(rig->output, LIMIT_MS));
    fd_close(&rig->out[1]);
    fd_close(&rig->err[1]);
    for (int i = 0; i < 2 && rig->readers[i].fd != 0; i++)
        pthread_join(rig->readers[i].thread, NULL);
    fd_close(&rig->out[0]);
    fd_close(&rig->err[0]);
    loop_timer_destroy(rig->timer);
    loop_destroy(rig->loop);
}

__attribute__((unused)) static void rig_free(struct rig *rig)
{
    buf_destroy(&rig->readers[0].text);
    buf_destroy(&rig->readers[1].text);
}

__attribute__((unused)) static void expect(struct rig *rig, const char *out, const char *err)
{
    assert_string_equal(buf_text(&rig->readers[0].text), out);
    assert_string_equal(buf_text(&rig->readers[1].text), err);
    rig_free(rig);
}

__attribute__((unused)) static void say(struct rig *rig, int rank, enum output_stream stream,
                                        const char *text)
{
    output_bytes(rig->output, rank, stream, text, strlen(text), WALL);
}

__attribute__((unused)) static void wait_for_text(int fd, const char *text)
{
    char bytes[256];
    size_t length = 0;
    while (length < strlen(text)) {
        struct pollfd pollfd = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&pollfd, 1, LIMIT_MS), 1);
        ssize_t got = fd_read(fd, bytes + length, sizeof(bytes) - 1 - length);
        assert_true(got > 0);
        length += (size_t)got;
    }
    bytes[length] = '\0';
    assert_string_equal(bytes, text);
}

static char folder[] = "/tmp/hvdrun-test-XXXXXX";

__attribute__((unused)) static int remove_one(const char *path, const struct stat *stat, int type,
                                              struct FTW *ftw)
{
    (void)stat, (void)type, (void)ftw;
    return remove(path);
}

__attribute__((unused)) static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

__attribute__((unused)) static int remove_folder(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

__attribute__((unused)) static void expect_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    AUTO_BUF struct buf content = BUF_INIT(1 << 20);
    assert_int_equal(fd_read_file(path, &content, NULL), 0);
    assert_string_equal(buf_text(&content), text);
}
