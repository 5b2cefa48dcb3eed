/* SPDX-License-Identifier: Apache-2.0 */
/* Two ends of a connection in one loop, or one whose other side is the test. Behind cmocka.h. */
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/link.h"
#include "loop_fixture.h"

/* One end of a connection and what it has heard. */
struct end {
    struct loop *loop;
    struct link *link;
    int frames, closes, drains;
    struct frame_header last;
    struct buf bodies; /* of all frames, in their order */
    char types[128];   /* a byte for each frame, in their order */
    char *reason, *refusal;
    int stop_after; /* frames */
    bool destroy_in_frame, destroy_in_closed, destroy_in_drained, answer;
};

struct fixture {
    struct loop *loop;
    struct end a, b;
    int peer; /* the other side of `a` when it has no link; -1 */
};

static inline void drop_link(struct end *end)
{
    link_destroy(end->link);
    end->link = NULL;
}

static inline void on_frame(void *context, const struct frame_header *header, const uint8_t *body)
{
    struct end *end = context;
    assert_int_equal(end->closes, 0);
    end->types[end->frames % 127] = (char)header->type;
    end->frames++;
    end->last = *header;
    buf_append(&end->bodies, body, header->length);
    if (end->answer)
        link_send(end->link, FRAME_LOG, header->epoch + 1, "answer", 6);
    if (end->destroy_in_frame)
        drop_link(end);
    if (end->frames == end->stop_after)
        loop_stop(end->loop);
}

static inline void on_closed(void *context, const char *reason)
{
    struct end *end = context;
    end->closes++;
    end->reason = mem_strdup(reason);
    if (end->destroy_in_closed)
        drop_link(end);
    loop_stop(end->loop);
}

static inline void on_refused(void *context, const char *reason)
{
    struct end *end = context;
    assert_null(end->refusal);
    assert_int_equal(end->closes, 0);
    end->refusal = mem_strdup(reason);
    link_send(end->link, FRAME_LOG, 0, "why", 3);
}

static inline void on_drained(void *context)
{
    struct end *end = context;
    end->drains++;
    if (end->destroy_in_drained) {
        drop_link(end);
        loop_stop(end->loop);
    }
}

static const struct link_ops ops = {
    .frame = on_frame, .closed = on_closed, .drained = on_drained, .refused = on_refused};

static inline void end_open(struct end *end, struct loop *loop, int fd)
{
    *end = (struct end){.loop = loop, .bodies = BUF_INIT((size_t)100 << 20)};
    end->link = link_create(loop, fd, fd, &ops, end, NULL);
    assert_non_null(end->link);
}

static inline void end_close(struct end *end)
{
    link_destroy(end->link);
    buf_destroy(&end->bodies);
    free(end->reason);
    free(end->refusal);
}

static inline int setup(void **state)
{
    static struct fixture f;
    int pair[2];
    signal(SIGPIPE, SIG_IGN);
    f = (struct fixture){.loop = loop_create(NULL), .peer = -1};
    if (f.loop == NULL || fd_socketpair(pair) < 0)
        return -1;
    end_open(&f.a, f.loop, pair[0]);
    end_open(&f.b, f.loop, pair[1]);
    *state = &f;
    return 0;
}

/* `a` alone: the test itself writes and reads at its other end. */
static inline int setup_alone(void **state)
{
    static struct fixture f;
    int pair[2];
    signal(SIGPIPE, SIG_IGN);
    f = (struct fixture){.loop = loop_create(NULL)};
    if (f.loop == NULL || fd_socketpair(pair) < 0)
        return -1;
    end_open(&f.a, f.loop, pair[0]);
    f.peer = pair[1];
    *state = &f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    end_close(&f->a);
    end_close(&f->b);
    fd_close(&f->peer);
    run_turns(f->loop, 2); /* a link with a deferred flush is freed by it */
    loop_destroy(f->loop);
    return 0;
}

static inline void put_frame(struct buf *out, uint16_t number, uint8_t type, const void *body,
                             size_t length)
{
    const struct frame_header header = {.version = FRAME_VERSION,
                                        .type = type,
                                        .number = number,
                                        .length = (uint32_t)length,
                                        .node = 1,
                                        .epoch = 2};
    uint8_t bytes[FRAME_HEADER_SIZE];
    frame_header_put(&header, bytes);
    buf_append(out, bytes, sizeof(bytes));
    buf_append(out, body, length);
}

static inline void peer_writes(struct fixture *f, const struct buf *bytes)
{
    assert_int_equal(fd_write_all(f->peer, buf_text(bytes), bytes->length), 0);
}

#define PAIR(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define ALONE(name) cmocka_unit_test_setup_teardown(name, setup_alone, teardown)
