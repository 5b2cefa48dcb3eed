/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of workers on a link: written in place, moved from a pipe, and what waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/link_fixture.h"

enum { PIPED = 65536 }; /* what a pipe holds */

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
    const struct frame_data data = {.seat = 3, .stream = 1, .offset = 7, .when_ns = 9};
    return link_data_splice(end->link, FRAME_OUTPUT, 2, &data, fd, length);
}

static void expect_piped(const uint8_t *body, size_t length)
{
    struct frame_data data;
    assert_int_equal(frame_data_get(body, FRAME_DATA_PREFIX, &data, NULL), 0);
    assert_int_equal(data.seat, 3);
    assert_int_equal(data.offset, 7);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(body[FRAME_DATA_PREFIX + i], i % 251);
}

static void test_data_in_place(void **state)
{
    struct fixture *f = *state;
    struct frame_data data = {.seat = 3, .stream = 2, .offset = 77, .when_ns = 88};
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
    assert_int_equal(back.seat, 3);
    assert_int_equal(back.stream, 2);
    assert_int_equal(back.offset, 77);
    assert_int_equal(back.when_ns, 88);
    assert_memory_equal(body + FRAME_DATA_PREFIX, "hello", 5);
    assert_memory_equal(body + f->b.bodies.length - 6, "behind", 6);
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
            const struct frame_data data = {.seat = 3, .stream = 1, .offset = 7};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR(test_data_in_place),          PAIR(test_splice),
        ALONE(test_ready_again),           PAIR(test_splice_of_bytes_that_are_gone),
        ALONE(test_drained_after_waiting), PAIR(test_drained_at_once),
        ALONE(test_queue_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
