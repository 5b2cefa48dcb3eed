/* SPDX-License-Identifier: Apache-2.0 */
/* How a link ends: by the other side, inside a message, and from within its own callbacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/socket.h>

#include "io/link_fixture.h"

static void test_clean_end(void **state)
{
    struct fixture *f = *state;
    struct buf bytes = BUF_INIT(1000);
    put_frame(&bytes, 0, FRAME_LOG, "last words", 10);
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
    put_frame(&bytes, 0, FRAME_PART, "ab", 2);
    put_frame(&bytes, 1, FRAME_LOG, "cd", 2);
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

/* After a write that failed, it only reads. Whoever asks whether it takes more hears no. */
static void test_a_link_that_cannot_write_is_not_ready(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(shutdown(f->peer, SHUT_RD), 0);
    link_send(f->a.link, FRAME_LOG, 0, "nobody reads", 12);
    run_turns(f->loop, 2);
    assert_int_equal(f->a.closes, 0);
    assert_false(link_ready(f->a.link));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALONE(test_clean_end),           ALONE(test_end_inside_a_message),
        ALONE(test_peer_resets),         ALONE(test_a_link_that_cannot_write_is_not_ready),
        PAIR(test_destroy_in_frame),     PAIR(test_destroy_in_frame_of_parts),
        PAIR(test_destroy_in_closed),    PAIR(test_destroy_in_drained),
        PAIR(test_destroy_with_a_queue), PAIR(test_flush_before_destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
