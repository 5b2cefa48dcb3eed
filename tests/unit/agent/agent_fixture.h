/* SPDX-License-Identifier: Apache-2.0 */
/* An agent's end of a link, and a driver's that notes all it hears, in one loop. */
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "agent/post.h"
#include "agent/stream.h"
#include "base/fd.h"
#include "base/mem.h"
#include "loop_fixture.h"
#include "wire/control.pb-c.h"

#define HEARD_RANK 5

struct heard {
    struct buf types;      /* a byte for each frame, in their order */
    struct buf streams[3]; /* bytes of the data frames */
    int ends[3];           /* data frames without bytes */
    int shows[3];          /* "show what has come of the line" */
    bool in_order;         /* every offset was that of the next byte */
    int exited_count, finished_count;
    Hvdrun__Exited *exited; /* the last one */
    bool cut;               /* of the last FINISHED */
    uint64_t stdin_credit;
    int credit_count;
    bool stdin_closed;
    Hvdrun__Progress *progress; /* the last one */
};

struct bench {
    struct loop *loop;
    struct link *driver;
    struct post post;
    struct stream_pool pool;
    struct heard heard;
    /* Called after each frame; may be NULL. */
    void (*frame)(struct bench *bench, uint8_t type);
    void *context;
};

static inline void heard_data(struct heard *heard, const uint8_t *body, uint32_t length)
{
    struct frame_data data;
    assert_int_equal(frame_data_get(body, length, &data, NULL), 0);
    assert_int_equal(data.seat, HEARD_RANK);
    assert_true(data.stream == 1 || data.stream == 2);
    assert_int_equal(heard->ends[data.stream], 0); /* nothing comes after the end */
    heard->in_order = heard->in_order && data.offset == heard->streams[data.stream].length;
    if (length == FRAME_DATA_PREFIX)
        heard->ends[data.stream]++;
    assert_int_equal(buf_append(&heard->streams[data.stream], body + FRAME_DATA_PREFIX,
                                length - FRAME_DATA_PREFIX),
                     0);
}

static inline void heard_show(struct heard *heard, const uint8_t *body, uint32_t length)
{
    struct frame_data data;
    assert_int_equal(length, FRAME_DATA_PREFIX);
    assert_int_equal(frame_data_get(body, length, &data, NULL), 0);
    assert_int_equal(data.seat, HEARD_RANK);
    assert_true(data.stream == 1 || data.stream == 2);
    assert_int_equal(data.offset, heard->streams[data.stream].length);
    heard->shows[data.stream]++;
}

static inline void heard_frame(void *context, const struct frame_header *header,
                               const uint8_t *body)
{
    struct bench *bench = context;
    struct heard *heard = &bench->heard;
    buf_putc(&heard->types, (char)header->type);
    if (header->type == FRAME_OUTPUT) {
        heard_data(heard, body, header->length);
    } else if (header->type == FRAME_OUTPUT_SHOW) {
        heard_show(heard, body, header->length);
    } else if (header->type == FRAME_EXITED) {
        if (heard->exited != NULL)
            hvdrun__exited__free_unpacked(heard->exited, NULL);
        heard->exited = hvdrun__exited__unpack(NULL, header->length, body);
        assert_int_equal(heard->exited->seat, HEARD_RANK);
        heard->exited_count++;
    } else if (header->type == FRAME_FINISHED) {
        Hvdrun__Finished *message = hvdrun__finished__unpack(NULL, header->length, body);
        assert_int_equal(message->seat, HEARD_RANK);
        heard->cut = message->cut;
        heard->finished_count++;
        hvdrun__finished__free_unpacked(message, NULL);
    } else if (header->type == FRAME_STDIN_CREDIT) {
        Hvdrun__Credit *message = hvdrun__credit__unpack(NULL, header->length, body);
        assert_int_equal(message->seat, HEARD_RANK);
        assert_true(message->bytes >= heard->stdin_credit);
        heard->stdin_credit = message->bytes;
        heard->stdin_closed = heard->stdin_closed || message->closed;
        heard->credit_count++;
        hvdrun__credit__free_unpacked(message, NULL);
    } else if (header->type == FRAME_PROGRESS) {
        if (heard->progress != NULL)
            hvdrun__progress__free_unpacked(heard->progress, NULL);
        heard->progress = hvdrun__progress__unpack(NULL, header->length, body);
        assert_non_null(heard->progress);
    }
    if (bench->frame != NULL)
        bench->frame(bench, header->type);
}

static inline void bench_closed(void *context, const char *reason)
{
    (void)context;
    fail_msg("link closed: %s", reason == NULL ? "end of file" : reason);
}

static inline void bench_ignore(void *context, const struct frame_header *header,
                                const uint8_t *body)
{
    (void)context, (void)header, (void)body;
}

static inline void bench_drained(void *context)
{
    struct bench *bench = context;
    stream_pool_resume(&bench->pool);
}

/* As much credit for output as anybody may want. */
static inline void bench_open(struct bench *bench)
{
    static const struct link_ops agent_ops = {
        .frame = bench_ignore, .closed = bench_closed, .drained = bench_drained};
    static const struct link_ops driver_ops = {.frame = heard_frame, .closed = bench_closed};
    int pair[2];
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(fd_socketpair(pair), 0);
    *bench = (struct bench){.loop = loop_create(NULL), .heard.in_order = true};
    buf_init(&bench->heard.types, 100000);
    for (int i = 0; i < 3; i++)
        buf_init(&bench->heard.streams[i], (size_t)64 << 20);
    post_init(&bench->post, link_create(bench->loop, pair[0], pair[0], &agent_ops, bench, NULL));
    bench->driver = link_create(bench->loop, pair[1], pair[1], &driver_ops, bench, NULL);
    assert_non_null(bench->post.link);
    assert_non_null(bench->driver);
    bench->pool =
        (struct stream_pool){.loop = bench->loop, .post = &bench->post, .granted = UINT64_MAX};
    TAILQ_INIT(&bench->pool.streams);
}

static inline void bench_close(struct bench *bench)
{
    link_destroy(bench->driver);
    link_destroy(bench->post.link);
    run_turns(bench->loop, 2);
    loop_destroy(bench->loop);
    buf_destroy(&bench->heard.types);
    for (int i = 0; i < 3; i++)
        buf_destroy(&bench->heard.streams[i]);
    if (bench->heard.exited != NULL)
        hvdrun__exited__free_unpacked(bench->heard.exited, NULL);
    if (bench->heard.progress != NULL)
        hvdrun__progress__free_unpacked(bench->heard.progress, NULL);
}
