/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/link.h"
#include "loop_fixture.h"
#include "wire/control.pb-c.h"

enum { PIPED = 65536 }; /* what a pipe holds */

/* One end of a connection and what it has heard. */
struct end {
    struct loop *loop;
    struct link *link;
    int frames, closes, drains;
    struct frame_header last;
    struct buf bodies; /* of all frames, in their order */
    char types[128];   /* a byte for each frame, in their order */
    char *reason;
    int stop_after; /* frames */
    bool destroy_in_frame, destroy_in_closed, destroy_in_drained, answer;
};

struct fixture {
    struct loop *loop;
    struct end a, b;
    int peer; /* the other side of `a` when it has no link; -1 */
};

static void drop_link(struct end *end)
{
    link_destroy(end->link);
    end->link = NULL;
}

static void on_frame(void *context, const struct frame_header *header, const uint8_t *body)
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

static void on_closed(void *context, const char *reason)
{
    struct end *end = context;
    end->closes++;
    end->reason = mem_strdup(reason);
    if (end->destroy_in_closed)
        drop_link(end);
    loop_stop(end->loop);
}

static void on_drained(void *context)
{
    struct end *end = context;
    end->drains++;
    if (end->destroy_in_drained) {
        drop_link(end);
        loop_stop(end->loop);
    }
}

static const struct link_ops ops = {.frame = on_frame, .closed = on_closed, .drained = on_drained};

static void end_open(struct end *end, struct loop *loop, int fd)
{
    *end = (struct end){.loop = loop, .bodies = BUF_INIT((size_t)100 << 20)};
    end->link = link_create(loop, fd, fd, &ops, end, NULL);
    assert_non_null(end->link);
}

static void end_close(struct end *end)
{
    link_destroy(end->link);
    buf_destroy(&end->bodies);
    free(end->reason);
}

static int setup(void **state)
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
static int setup_alone(void **state)
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

static int teardown(void **state)
{
    struct fixture *f = *state;
    end_close(&f->a);
    end_close(&f->b);
    fd_close(&f->peer);
    run_turns(f->loop, 2); /* a link with a deferred flush is freed by it */
    loop_destroy(f->loop);
    return 0;
}

static void put_frame(struct buf *out, uint8_t type, const void *body, size_t length)
{
    const struct frame_header header = {
        .version = FRAME_VERSION, .type = type, .length = (uint32_t)length, .node = 1, .epoch = 2};
    uint8_t bytes[FRAME_HEADER_SIZE];
    frame_header_put(&header, bytes);
    buf_append(out, bytes, sizeof(bytes));
    buf_append(out, body, length);
}

static void peer_writes(struct fixture *f, const struct buf *bytes)
{
    assert_int_equal(fd_write_all(f->peer, buf_text(bytes), bytes->length), 0);
}

static void test_order(void **state)
{
    struct fixture *f = *state;
    link_set_node(f->a.link, 42);
    for (int i = 0; i < 100; i++) {
        char text[16];
        int length = snprintf(text, sizeof(text), "%d,", i);
        link_send(f->a.link, i % 2 == 0 ? FRAME_LOG : FRAME_SIGNAL, (uint32_t)i, text,
                  (size_t)length);
    }
    f->b.stop_after = 100;
    assert_true(link_queued(f->a.link) > 0); /* written at the end of the turn */
    run_loop(f->loop);
    assert_int_equal(link_queued(f->a.link), 0);
    assert_memory_equal(buf_text(&f->b.bodies), "0,1,2,3,4,", 10);
    assert_string_equal(buf_text(&f->b.bodies) + f->b.bodies.length - 6, "98,99,");
    assert_int_equal(f->b.last.node, 42);
    assert_int_equal(f->b.last.epoch, 99);
    assert_int_equal(f->b.last.type, FRAME_SIGNAL);
    assert_int_equal(f->b.types[0], FRAME_LOG);
}

static void test_empty_and_answers(void **state)
{
    struct fixture *f = *state;
    f->b.answer = true;
    f->a.stop_after = 2;
    link_send(f->a.link, FRAME_QUIT, 7, NULL, 0);
    link_send(f->a.link, FRAME_QUIT, 8, NULL, 0);
    run_loop(f->loop);
    assert_int_equal(f->b.frames, 2);
    assert_int_equal(f->b.bodies.length, 0);
    assert_int_equal(f->b.last.node, FRAME_NODE_NONE);
    assert_string_equal(buf_text(&f->a.bodies), "answeranswer");
    assert_int_equal(f->a.last.epoch, 9);
}

/* A pipe with `length` bytes that are those of their place. */
static int full_pipe(size_t length)
{
    int ends[2];
    assert_int_equal(fd_pipe(ends), 0);
    fd_nonblock(ends[0]);
    fd_nonblock(ends[1]);
    uint8_t bytes[PIPED];
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)(i % 251);
    assert_int_equal(fd_write_all(ends[1], bytes, length), 0);
    fd_close(&ends[1]);
    return ends[0];
}

static bool splice_all(struct end *end, int fd, size_t length)
{
    const struct frame_data data = {.rank = 3, .stream = 1, .offset = 7, .when_ns = 9};
    return link_data_splice(end->link, FRAME_OUTPUT, 2, &data, fd, length);
}

static void expect_piped(const uint8_t *body, size_t length)
{
    struct frame_data data;
    assert_int_equal(frame_data_get(body, FRAME_DATA_PREFIX, &data, NULL), 0);
    assert_int_equal(data.rank, 3);
    assert_int_equal(data.offset, 7);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(body[FRAME_DATA_PREFIX + i], i % 251);
}

/* Bytes go from a pipe into the link, far more than the kernel takes at once, in order with other
 * frames; nothing overtakes what is queued. */
static void test_splice(void **state)
{
    struct fixture *f = *state;
    int moved = 0, refused = 0;
    for (int i = 0; i < 40; i++) {
        int fd AUTO_FD = full_pipe(PIPED);
        if (splice_all(&f->a, fd, PIPED)) {
            moved++;
        } else {
            refused++;
            uint8_t *place = link_data_reserve(f->a.link, PIPED);
            const struct frame_data data = {.rank = 3, .stream = 1, .offset = 7};
            assert_int_equal(fd_read(fd, place, PIPED), PIPED); /* nothing was taken */
            link_data_commit(f->a.link, FRAME_OUTPUT, 2, &data, PIPED);
        }
        if (i == 20)
            link_send(f->a.link, FRAME_LOG, 1, "between", 7);
    }
    assert_true(moved > 0);
    assert_true(refused > 0); /* the kernel took no more, so something was queued */
    assert_false(link_ready(f->a.link));
    f->b.stop_after = 41;
    run_loop(f->loop);
    assert_int_equal(f->b.closes, 0);
    assert_int_equal(f->b.types[21], FRAME_LOG);
    const uint8_t *body = (const uint8_t *)buf_text(&f->b.bodies);
    for (int i = 0; i < 40; i++) {
        expect_piped(body, PIPED);
        body += FRAME_DATA_PREFIX + PIPED;
        if (i == 20) {
            assert_memory_equal(body, "between", 7);
            body += 7;
        }
    }
    run_turns(f->loop, 5);
    assert_true(link_ready(f->a.link));
    assert_int_equal(link_queued(f->a.link), 0);
}

/* A full link is not ready, says when it is, and then takes a whole pipe without queueing. */
static void test_ready_again(void **state)
{
    struct fixture *f = *state;
    assert_true(link_ready(f->a.link));
    while (link_ready(f->a.link)) {
        int fd AUTO_FD = full_pipe(PIPED);
        assert_true(splice_all(&f->a, fd, PIPED));
    }
    int before = f->a.drains;
    run_turns(f->loop, 5);
    assert_int_equal(f->a.drains, before); /* nobody reads */
    uint8_t bytes[PIPED];
    while (fd_read(f->peer, bytes, sizeof(bytes)) > 0 && f->a.drains == before)
        run_turns(f->loop, 2);
    assert_true(f->a.drains > before);
    assert_true(link_ready(f->a.link));
    int fd AUTO_FD = full_pipe(PIPED);
    assert_true(splice_all(&f->a, fd, PIPED));
    assert_int_equal(link_queued(f->a.link), 0);
}

/* Somebody else has read from the pipe: the frame keeps its length, and the link its frames. */
static void test_splice_of_bytes_that_are_gone(void **state)
{
    struct fixture *f = *state;
    int fd AUTO_FD = full_pipe(1000);
    assert_true(splice_all(&f->a, fd, 3000));
    link_send(f->a.link, FRAME_LOG, 1, "after", 5);
    f->b.stop_after = 2;
    run_loop(f->loop);
    const uint8_t *body = (const uint8_t *)buf_text(&f->b.bodies);
    assert_int_equal(f->b.bodies.length, FRAME_DATA_PREFIX + 3000 + 5);
    expect_piped(body, 1000);
    for (size_t i = 1000; i < 3000; i++)
        assert_int_equal(body[FRAME_DATA_PREFIX + i], 0);
    assert_memory_equal(body + FRAME_DATA_PREFIX + 3000, "after", 5);
}

/* Bodies around the limit of a frame, and much larger ones: they arrive whole, as one. */
static void test_large_bodies(void **state)
{
    struct fixture *f = *state;
    static const size_t sizes[] = {FRAME_BODY_MAX - 1, FRAME_BODY_MAX,         FRAME_BODY_MAX + 1,
                                   2 * FRAME_BODY_MAX, 7 * FRAME_BODY_MAX + 3, 1};
    uint8_t *body = malloc(8 * FRAME_BODY_MAX);
    for (size_t i = 0; i < 8 * FRAME_BODY_MAX; i++)
        body[i] = (uint8_t)(i % 251);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        link_send(f->a.link, FRAME_PREPARE, (uint32_t)i, body, sizes[i]);
        f->b.stop_after = f->b.frames + 1;
        run_loop(f->loop);
        assert_int_equal(f->b.frames, i + 1);
        assert_int_equal(f->b.last.type, FRAME_PREPARE);
        assert_int_equal(f->b.last.length, sizes[i]);
        assert_int_equal(f->b.bodies.length, sizes[i]);
        assert_memory_equal(buf_text(&f->b.bodies), body, sizes[i]);
        buf_clear(&f->b.bodies);
    }
    free(body);
}

static void test_large_message(void **state)
{
    struct fixture *f = *state;
    static const size_t sizes[] = {3, 5 * FRAME_BODY_MAX};
    for (size_t i = 0; i < 2; i++) {
        uint8_t *value = mem_alloc(sizes[i]);
        value[sizes[i] - 1] = 'z';
        Hvdrun__KvReply message = HVDRUN__KV_REPLY__INIT;
        message.token = 5;
        message.body.data = value;
        message.body.len = sizes[i];
        link_send_message(f->a.link, FRAME_KV_REPLY, 1, &message.base);
        f->b.stop_after = f->b.frames + 1;
        run_loop(f->loop);
        Hvdrun__KvReply *back = hvdrun__kv_reply__unpack(NULL, f->b.bodies.length,
                                                         (const uint8_t *)buf_text(&f->b.bodies));
        assert_non_null(back);
        assert_int_equal(back->token, 5);
        assert_int_equal(back->body.len, sizes[i]);
        assert_memory_equal(back->body.data, value, sizes[i]);
        hvdrun__kv_reply__free_unpacked(back, NULL);
        buf_clear(&f->b.bodies);
        free(value);
    }
}

/* However the bytes are torn: the same frames. */
static void test_bytewise(void **state)
{
    struct fixture *f = *state;
    struct buf bytes = BUF_INIT(100000);
    put_frame(&bytes, FRAME_LOG, "first", 5);
    put_frame(&bytes, FRAME_PART, "second in ", 10);
    put_frame(&bytes, FRAME_PART, "three ", 6);
    put_frame(&bytes, FRAME_EXITED, "parts", 5);
    put_frame(&bytes, FRAME_QUIT, NULL, 0);
    for (size_t piece = 1; piece < 40; piece += piece < 5 ? 1 : 7) {
        for (size_t at = 0; at < bytes.length; at += piece) {
            size_t left = bytes.length - at;
            assert_int_equal(
                fd_write_all(f->peer, buf_text(&bytes) + at, left < piece ? left : piece), 0);
            run_turns(f->loop, 1);
        }
        run_turns(f->loop, 2);
        assert_int_equal(f->a.frames, 3);
        assert_string_equal(buf_text(&f->a.bodies), "firstsecond in three parts");
        assert_int_equal(f->a.types[0], FRAME_LOG);
        assert_int_equal(f->a.types[1], FRAME_EXITED);
        assert_int_equal(f->a.types[2], FRAME_QUIT);
        assert_int_equal(f->a.last.node, 1);
        assert_int_equal(f->a.last.epoch, 2);
        f->a.frames = 0;
        buf_clear(&f->a.bodies);
    }
    buf_destroy(&bytes);
}

/* Frames before the rubbish are handed out; then one closed() with the reason, and nothing more. */
static void test_rubbish(void **state)
{
    struct fixture *f = *state;
    struct buf bytes = BUF_INIT(1000);
    put_frame(&bytes, FRAME_LOG, "good", 4);
    buf_puts(&bytes, "GET / HTTP/1.1\r\n\r\n");
    put_frame(&bytes, FRAME_LOG, "too late", 8);
    peer_writes(f, &bytes);
    run_loop(f->loop);
    assert_int_equal(f->a.closes, 1);
    assert_non_null(strstr(f->a.reason, "protocol"));
    assert_string_equal(buf_text(&f->a.bodies), "good");
    /* the other side sees the end, what is sent now goes nowhere, and nothing is called again */
    link_send(f->a.link, FRAME_LOG, 0, "x", 1);
    assert_null(link_data_reserve(f->a.link, 10));
    assert_int_equal(link_queued(f->a.link), 0);
    assert_true(link_flush(f->a.link));
    run_turns(f->loop, 3);
    assert_int_equal(f->a.closes, 1);
    assert_int_equal(f->a.drains, 0);
    buf_destroy(&bytes);
}

static void test_unknown_type_and_too_long(void **state)
{
    struct fixture *f = *state;
    struct buf bytes = BUF_INIT(1000);
    put_frame(&bytes, 250, "?", 1);
    peer_writes(f, &bytes);
    run_loop(f->loop);
    assert_int_equal(f->a.closes, 1);
    assert_non_null(strstr(f->a.reason, "unknown frame type 250"));
    buf_destroy(&bytes);
}

/* A sender of endless parts is stopped at the limit of a whole message. */
static void test_endless_parts(void **state)
{
    struct fixture *f = *state;
    struct end *b = &f->b;
    uint8_t *body = mem_alloc(FRAME_BODY_MAX);
    for (int i = 0; i < 70 && b->closes == 0; i++) {
        link_send(f->a.link, FRAME_PART, 0, body, FRAME_BODY_MAX);
        run_turns(f->loop, 30);
    }
    assert_int_equal(b->closes, 1);
    assert_non_null(strstr(b->reason, "too large"));
    assert_int_equal(b->frames, 0);
    free(body);
}

static void test_clean_end(void **state)
{
    struct fixture *f = *state;
    struct buf bytes = BUF_INIT(1000);
    put_frame(&bytes, FRAME_LOG, "last words", 10);
    peer_writes(f, &bytes);
    fd_close(&f->peer);
    run_loop(f->loop);
    assert_string_equal(buf_text(&f->a.bodies), "last words");
    assert_int_equal(f->a.closes, 1);
    assert_null(f->a.reason);
    buf_destroy(&bytes);
}

/* Cut after any byte of a frame, or between the parts of a message: that is not a clean end. */
static void test_end_inside_a_message(void **state)
{
    struct fixture *f = *state;
    struct buf bytes = BUF_INIT(1000);
    put_frame(&bytes, FRAME_PART, "ab", 2);
    put_frame(&bytes, FRAME_LOG, "cd", 2);
    for (size_t cut = 1; cut < bytes.length; cut++) {
        struct end end;
        int pair[2];
        assert_int_equal(fd_socketpair(pair), 0);
        end_open(&end, f->loop, pair[0]);
        assert_int_equal(fd_write_all(pair[1], buf_text(&bytes), cut), 0);
        fd_close(&pair[1]);
        run_loop(f->loop);
        assert_int_equal(end.frames, 0);
        assert_int_equal(end.closes, 1);
        assert_non_null(end.reason);
        assert_non_null(strstr(end.reason, "inside a message"));
        end_close(&end);
    }
    buf_destroy(&bytes);
}

static void test_peer_resets(void **state)
{
    struct fixture *f = *state;
    link_send(f->a.link, FRAME_LOG, 0, "never read", 10);
    run_turns(f->loop, 2);
    fd_close(&f->peer); /* with unread bytes: a reset */
    link_send(f->a.link, FRAME_LOG, 0, "more", 4);
    run_loop(f->loop);
    assert_int_equal(f->a.closes, 1);
    assert_string_equal(f->a.reason, "connection reset");
    assert_int_equal(f->a.frames, 0);
}

static void test_destroy_in_frame(void **state)
{
    struct fixture *f = *state;
    f->b.destroy_in_frame = true;
    f->b.answer = true; /* and something is still queued */
    link_send(f->a.link, FRAME_LOG, 0, "one", 3);
    link_send(f->a.link, FRAME_LOG, 0, "two", 3);
    run_loop(f->loop); /* a sees that b has gone */
    assert_int_equal(f->b.frames, 1);
    assert_int_equal(f->b.closes, 0);
    assert_int_equal(f->a.closes, 1);
}

static void test_destroy_in_frame_of_parts(void **state)
{
    struct fixture *f = *state;
    uint8_t *body = mem_alloc(2 * FRAME_BODY_MAX);
    f->b.destroy_in_frame = true;
    link_send(f->a.link, FRAME_LOG, 0, body, 2 * FRAME_BODY_MAX);
    run_loop(f->loop);
    assert_int_equal(f->b.frames, 1);
    free(body);
}

static void test_destroy_in_closed(void **state)
{
    struct fixture *f = *state;
    f->a.destroy_in_closed = true;
    link_send(f->a.link, FRAME_LOG, 0, "x", 1);
    drop_link(&f->b);
    run_loop(f->loop);
    assert_int_equal(f->a.closes, 1);
    assert_null(f->a.link);
    assert_null(f->a.reason);
}

static void test_destroy_in_drained(void **state)
{
    struct fixture *f = *state;
    f->a.destroy_in_drained = true;
    link_send(f->a.link, FRAME_LOG, 0, "x", 1);
    run_loop(f->loop);
    assert_int_equal(f->a.drains, 1);
    run_turns(f->loop, 3);
    assert_int_equal(f->b.frames, 1);
    assert_int_equal(f->b.closes, 1);
}

static void test_destroy_with_a_queue(void **state)
{
    struct fixture *f = *state;
    link_send(f->a.link, FRAME_LOG, 0, "lost", 4);
    drop_link(&f->a);
    run_loop(f->loop);
    assert_int_equal(f->b.frames, 0); /* what is queued is lost */
    assert_int_equal(f->b.closes, 1);
    assert_null(f->b.reason);
    link_destroy(NULL);
}

static void test_flush_before_destroy(void **state)
{
    struct fixture *f = *state;
    link_send(f->a.link, FRAME_QUIT, 3, NULL, 0);
    assert_true(link_flush(f->a.link));
    drop_link(&f->a);
    run_loop(f->loop);
    assert_int_equal(f->b.frames, 1);
    assert_int_equal(f->b.last.epoch, 3);
}

static void test_data_in_place(void **state)
{
    struct fixture *f = *state;
    struct frame_data data = {.rank = 3, .stream = 2, .offset = 77, .when_ns = 88};
    uint8_t *place = link_data_reserve(f->a.link, 65536);
    assert_non_null(place);
    memcpy(place, "hello", 5);
    link_data_commit(f->a.link, FRAME_OUTPUT, 9, &data, 5);
    assert_non_null(link_data_reserve(f->a.link, 65536)); /* and then nothing came: no frame */
    assert_non_null(link_data_reserve(f->a.link, 0));
    link_data_commit(f->a.link, FRAME_OUTPUT, 9, &data, 0);
    link_send(f->a.link, FRAME_LOG, 0, "behind", 6);
    f->b.stop_after = 3;
    run_loop(f->loop);
    assert_int_equal(f->b.bodies.length, FRAME_DATA_PREFIX + 5 + FRAME_DATA_PREFIX + 6);
    const uint8_t *body = (const uint8_t *)buf_text(&f->b.bodies);
    struct frame_data back;
    assert_int_equal(frame_data_get(body, FRAME_DATA_PREFIX + 5, &back, NULL), 0);
    assert_int_equal(back.rank, 3);
    assert_int_equal(back.stream, 2);
    assert_int_equal(back.offset, 77);
    assert_int_equal(back.when_ns, 88);
    assert_memory_equal(body + FRAME_DATA_PREFIX, "hello", 5);
    assert_memory_equal(body + f->b.bodies.length - 6, "behind", 6);
}

/* A full socket: the queue waits, and drained() tells when it is empty, not before. */
static void test_drained_after_waiting(void **state)
{
    struct fixture *f = *state;
    uint8_t *body = mem_alloc(FRAME_BODY_MAX);
    for (int i = 0; i < 8; i++)
        link_send(f->a.link, FRAME_LOG, 0, body, FRAME_BODY_MAX);
    run_turns(f->loop, 5); /* nobody reads */
    assert_int_equal(f->a.drains, 0);
    assert_true(link_queued(f->a.link) > 4 * FRAME_BODY_MAX);
    assert_false(link_flush(f->a.link));
    end_open(&f->b, f->loop, f->peer);
    f->peer = -1;
    f->b.stop_after = 8;
    run_loop(f->loop);
    run_turns(f->loop, 3);
    assert_int_equal(link_queued(f->a.link), 0);
    assert_int_equal(f->a.drains, 1);
    free(body);
}

/* A queue that the kernel takes at once is drained too: somebody may have paused because of it. */
static void test_drained_at_once(void **state)
{
    struct fixture *f = *state;
    link_send(f->a.link, FRAME_LOG, 0, "x", 1);
    link_send(f->a.link, FRAME_LOG, 0, "y", 1);
    run_turns(f->loop, 3);
    assert_int_equal(f->a.drains, 1);
    run_turns(f->loop, 3);
    assert_int_equal(f->a.drains, 1);
}

/* A peer that does not read while more and more is sent: given up, once, and no frame is ever left
 * out in the middle. All in one turn, so that a flush is already on its way. */
static void test_queue_limit(void **state)
{
    struct fixture *f = *state;
    const size_t part = 512 << 10;
    uint8_t *body = mem_alloc(part);
    size_t sent = 0;
    while (sent <= LINK_QUEUE_MAX) {
        link_send(f->a.link, FRAME_LOG, 0, body, part);
        sent += part;
    }
    size_t queued = link_queued(f->a.link);
    assert_true(queued <= LINK_QUEUE_MAX);
    link_send(f->a.link, FRAME_LOG, 0, body, 1); /* small enough, but one before it is missing */
    assert_int_equal(link_queued(f->a.link), queued);
    run_loop(f->loop);
    assert_int_equal(f->a.closes, 1);
    assert_non_null(strstr(f->a.reason, "does not read"));
    free(body);
}

static void test_two_descriptors(void **state)
{
    struct fixture *f = *state;
    int there[2], back[2];
    assert_int_equal(fd_pipe(there), 0);
    assert_int_equal(fd_pipe(back), 0);
    struct end a = {.loop = f->loop, .bodies = BUF_INIT(1000), .stop_after = 1};
    struct end b = {.loop = f->loop, .bodies = BUF_INIT(1000), .answer = true};
    a.link = link_create(f->loop, back[0], there[1], &ops, &a, NULL);
    b.link = link_create(f->loop, there[0], back[1], &ops, &b, NULL);
    link_send(a.link, FRAME_QUIT, 1, NULL, 0);
    run_loop(f->loop);
    assert_string_equal(buf_text(&a.bodies), "answer");
    drop_link(&b); /* both of its descriptors */
    run_loop(f->loop);
    assert_int_equal(a.closes, 1);
    assert_int_equal(fcntl(there[0], F_GETFD), -1);
    assert_int_equal(fcntl(back[1], F_GETFD), -1);
    end_close(&a);
    end_close(&b);
}

static void test_bad_descriptor(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    assert_null(link_create(f->loop, -1, -1, &ops, NULL, &err));
    assert_non_null(strstr(err.text, "link"));
}

#define PAIR(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define ALONE(name) cmocka_unit_test_setup_teardown(name, setup_alone, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR(test_order),
        PAIR(test_splice),
        ALONE(test_ready_again),
        PAIR(test_splice_of_bytes_that_are_gone),
        PAIR(test_empty_and_answers),
        PAIR(test_large_bodies),
        PAIR(test_large_message),
        ALONE(test_bytewise),
        ALONE(test_rubbish),
        ALONE(test_unknown_type_and_too_long),
        PAIR(test_endless_parts),
        ALONE(test_clean_end),
        ALONE(test_end_inside_a_message),
        ALONE(test_peer_resets),
        PAIR(test_destroy_in_frame),
        PAIR(test_destroy_in_frame_of_parts),
        PAIR(test_destroy_in_closed),
        PAIR(test_destroy_in_drained),
        PAIR(test_destroy_with_a_queue),
        PAIR(test_flush_before_destroy),
        PAIR(test_data_in_place),
        ALONE(test_drained_after_waiting),
        PAIR(test_drained_at_once),
        ALONE(test_queue_limit),
        PAIR(test_two_descriptors),
        PAIR(test_bad_descriptor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
