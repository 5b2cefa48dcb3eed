/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/agent_fixture.h"
#include "io/pty.h"

struct source {
    struct worker_stream *stream;
    int fd; /* where the worker would write */
    int ended;
    bool destroy;
};

static void on_ended(void *context)
{
    struct source *source = context;
    source->ended++;
    if (source->destroy) {
        stream_destroy(source->stream);
        source->stream = NULL;
    }
}

/* In place, since the stream keeps its address. */
static void begin(struct source *source, struct bench *bench, uint8_t number)
{
    int ends[2];
    assert_int_equal(fd_pipe(ends), 0);
    fd_nonblock(ends[0]);
    *source = (struct source){.fd = ends[1]};
    source->stream =
        stream_create(&bench->pool, &bench->post, ends[0], HEARD_RANK, number, on_ended, source);
}

static void end(struct source *source)
{
    stream_destroy(source->stream);
    fd_close(&source->fd);
}

static void test_bytes_and_end(void **state)
{
    (void)state;
    struct bench bench;
    struct source out, errs;
    bench_open(&bench);
    begin(&out, &bench, 1);
    begin(&errs, &bench, 2);
    fd_write_all(out.fd, "hello ", 6);
    fd_write_all(errs.fd, "oops", 4);
    run_turns(bench.loop, 5);
    fd_write_all(out.fd, "a\0b", 3);
    run_turns(bench.loop, 5);
    assert_int_equal(out.ended, 0);
    fd_close(&out.fd);
    run_turns(bench.loop, 5);
    assert_int_equal(out.ended, 1);
    assert_int_equal(errs.ended, 0);
    assert_false(stream_missed(out.stream));
    assert_int_equal(bench.heard.streams[1].length, 9);
    assert_memory_equal(buf_text(&bench.heard.streams[1]), "hello a\0b", 9);
    assert_string_equal(buf_text(&bench.heard.streams[2]), "oops");
    assert_int_equal(bench.heard.ends[1], 1);
    assert_int_equal(bench.heard.ends[2], 0);
    assert_true(bench.heard.in_order);
    assert_int_equal(bench.pool.used, 13);
    stream_cut(out.stream); /* after its end: nothing */
    assert_int_equal(out.ended, 1);
    end(&out);
    end(&errs);
    bench_close(&bench);
}

static void test_destroyed_in_its_callback(void **state)
{
    (void)state;
    struct bench bench;
    struct source out;
    bench_open(&bench);
    begin(&out, &bench, 1);
    out.destroy = true;
    fd_close(&out.fd);
    run_turns(bench.loop, 5);
    assert_int_equal(out.ended, 1);
    assert_null(out.stream);
    assert_true(TAILQ_EMPTY(&bench.pool.streams));
    bench_close(&bench);
}

/* Full pipes of several streams, far more than the link takes at once: all of it, in order. */
static void test_much_at_once(void **state)
{
    enum { ROUNDS = 20, PIPE = 65536 };
    (void)state;
    struct bench bench;
    struct source sources[2];
    char chunk[PIPE];
    bench_open(&bench);
    for (uint8_t i = 0; i < 2; i++) {
        begin(&sources[i], &bench, (uint8_t)(i + 1));
        fd_nonblock(sources[i].fd);
    }
    for (int round = 0; round < ROUNDS; round++) {
        memset(chunk, 'a' + round, sizeof(chunk));
        for (int i = 0; i < 2; i++) {
            assert_int_equal(fd_write(sources[i].fd, chunk, PIPE), PIPE);
            if (round + 1 == ROUNDS)
                fd_close(&sources[i].fd);
        }
        uint64_t want = (uint64_t)(round + 1) * 2 * PIPE;
        for (int turn = 0; turn < 1000 && bench.pool.used < want; turn++)
            run_turns(bench.loop, 5);
        assert_int_equal(bench.pool.used, want);
    }
    run_turns(bench.loop, 50);
    for (int i = 0; i < 2; i++) {
        const struct buf *heard = &bench.heard.streams[i + 1];
        assert_int_equal(sources[i].ended, 1);
        assert_int_equal(heard->length, ROUNDS * PIPE);
        for (size_t at = 0; at < heard->length; at++)
            assert_int_equal(buf_text(heard)[at], 'a' + at / PIPE);
        end(&sources[i]);
    }
    assert_true(bench.heard.in_order);
    bench_close(&bench);
}

/* Without credit nothing is read, so a worker that writes more blocks in its pipe. */
static void test_credit(void **state)
{
    (void)state;
    struct bench bench;
    struct source out;
    char chunk[40000];
    memset(chunk, 'c', sizeof(chunk));
    bench_open(&bench);
    bench.pool.granted = 0;
    begin(&out, &bench, 1);
    fd_write_all(out.fd, chunk, sizeof(chunk));
    run_turns(bench.loop, 5);
    assert_int_equal(bench.heard.streams[1].length, 0);
    bench.pool.granted = 1; /* one byte: one chunk */
    stream_pool_resume(&bench.pool);
    run_turns(bench.loop, 5);
    assert_int_equal(bench.heard.streams[1].length, sizeof(chunk));
    fd_write_all(out.fd, chunk, sizeof(chunk));
    fd_close(&out.fd);
    bench.pool.granted = bench.pool.used;
    stream_pool_resume(&bench.pool);
    run_turns(bench.loop, 5);
    assert_int_equal(bench.heard.streams[1].length, sizeof(chunk));
    assert_int_equal(out.ended, 0); /* not before its bytes */
    bench.pool.granted = UINT64_MAX;
    stream_pool_resume(&bench.pool);
    run_turns(bench.loop, 5);
    assert_int_equal(bench.heard.streams[1].length, 2 * sizeof(chunk));
    assert_int_equal(out.ended, 1);
    assert_true(bench.heard.in_order);
    end(&out);
    bench_close(&bench);
}

/* Credit is the node's: one stream's bytes use up the other's. */
static void test_shared_credit(void **state)
{
    (void)state;
    struct bench bench;
    struct source one, two;
    bench_open(&bench);
    bench.pool.granted = 10;
    begin(&one, &bench, 1);
    begin(&two, &bench, 2);
    fd_write_all(one.fd, "0123456789", 10);
    run_turns(bench.loop, 5);
    fd_write_all(two.fd, "later", 5);
    run_turns(bench.loop, 5);
    assert_int_equal(bench.heard.streams[2].length, 0);
    bench.pool.granted = 20;
    stream_pool_resume(&bench.pool);
    run_turns(bench.loop, 5);
    assert_string_equal(buf_text(&bench.heard.streams[2]), "later");
    end(&one);
    end(&two);
    bench_close(&bench);
}

/* Writes until the pipe is full; how many bytes it took. */
static size_t fill(int fd)
{
    static const char chunk[4096] = "";
    size_t filled = 0;
    while (fd_write(fd, chunk, sizeof(chunk)) == (ssize_t)sizeof(chunk))
        filled += sizeof(chunk);
    return filled;
}

/* A worker that made its pipe larger than we would keeps it so. */
static void test_a_pipe_of_its_own_size(void **state)
{
    (void)state;
    struct bench bench;
    struct source out;
    bench_open(&bench);
    begin(&out, &bench, 1);
    fd_nonblock(out.fd);
    int size = fcntl(out.fd, F_SETPIPE_SZ, 1 << 20);
    assert_true(size >= 1 << 20);
    for (int round = 0; round < 2; round++) {
        fill(out.fd);
        run_turns(bench.loop, 20);
    }
    assert_int_equal(fcntl(out.fd, F_GETPIPE_SZ), size);
    fd_close(&out.fd);
    run_turns(bench.loop, 50);
    end(&out);
    bench_close(&bench);
}

/* Who writes much gets a larger pipe, for as long as it has one at all; and much goes in one frame,
 * but no more than there is credit for. */
static void test_wide_pipe(void **state)
{
    enum { CREDIT = 100000 };
    (void)state;
    struct bench bench;
    struct source out;
    bench_open(&bench);
    begin(&out, &bench, 1);
    fd_nonblock(out.fd);
    int before = fcntl(out.fd, F_GETPIPE_SZ);
    fd_write_all(out.fd, "little", 6);
    run_turns(bench.loop, 5);
    assert_int_equal(fcntl(out.fd, F_GETPIPE_SZ), before);
    for (int round = 0; round < 2; round++) { /* the first time it may be chance */
        fill(out.fd);
        run_turns(bench.loop, 20);
    }
    assert_true(fcntl(out.fd, F_GETPIPE_SZ) > before);
    assert_int_equal(bench.pool.wide, 1);
    bench.pool.granted = bench.pool.used;
    size_t filled = fill(out.fd);
    assert_true(filled > (size_t)before);
    uint64_t used = bench.pool.used;
    bench.pool.granted = used + CREDIT;
    stream_pool_resume(&bench.pool);
    run_turns(bench.loop, 20);
    assert_int_equal(bench.pool.used - used, CREDIT);
    bench.pool.granted = UINT64_MAX;
    stream_pool_resume(&bench.pool);
    fd_close(&out.fd);
    run_turns(bench.loop, 50);
    assert_int_equal(bench.pool.used - used, filled);
    assert_int_equal(bench.heard.streams[1].length, bench.pool.used);
    assert_int_equal(out.ended, 1);
    assert_int_equal(bench.pool.wide, 0);
    assert_true(bench.heard.in_order);
    end(&out);
    bench_close(&bench);
}

/* Credit for one chunk at a time, and all pipes always full: everybody has a turn. */
static void test_turns(void **state)
{
    enum { STREAMS = 5 };
    (void)state;
    struct bench bench;
    struct source sources[STREAMS];
    int turns[STREAMS] = {0};
    bench_open(&bench);
    bench.pool.granted = 0;
    bench.pool.wide = INT_MAX; /* more room in a pipe would look like a turn */
    for (int i = 0; i < STREAMS; i++) {
        begin(&sources[i], &bench, 1);
        fd_nonblock(sources[i].fd);
        assert_true(fill(sources[i].fd) > 0);
    }
    run_turns(bench.loop, 3);
    for (int round = 0; round < 4 * STREAMS; round++) {
        bench.pool.granted = bench.pool.used + 1;
        stream_pool_resume(&bench.pool);
        run_turns(bench.loop, 10);
        for (int i = 0; i < STREAMS; i++)
            turns[i] += fill(sources[i].fd) > 0;
    }
    for (int i = 0; i < STREAMS; i++) {
        assert_int_equal(turns[i], 4);
        end(&sources[i]);
    }
    bench_close(&bench);
}

static void test_cut_while_held(void **state)
{
    (void)state;
    struct bench bench;
    struct source out;
    bench_open(&bench);
    begin(&out, &bench, 1);
    fd_write_all(out.fd, "there", 5);
    stream_cut(out.stream);
    stream_cut(out.stream);
    assert_int_equal(out.ended, 0); /* there is something to read first */
    run_turns(bench.loop, 5);
    assert_int_equal(out.ended, 1);
    assert_true(stream_missed(out.stream));
    assert_string_equal(buf_text(&bench.heard.streams[1]), "there");
    assert_int_equal(bench.heard.ends[1], 1);
    end(&out);
    struct source silent;
    begin(&silent, &bench, 2);
    stream_cut(silent.stream); /* nothing there: at once */
    assert_int_equal(silent.ended, 1);
    assert_true(stream_missed(silent.stream));
    end(&silent);
    bench_close(&bench);
}

/* Nobody holds it any more: that is an end of file like any other. */
static void test_cut_at_the_end(void **state)
{
    (void)state;
    struct bench bench;
    struct source out, empty;
    bench_open(&bench);
    begin(&out, &bench, 1);
    begin(&empty, &bench, 2);
    fd_write_all(out.fd, "all", 3);
    fd_close(&out.fd);
    fd_close(&empty.fd);
    stream_cut(out.stream);
    stream_cut(empty.stream);
    run_turns(bench.loop, 5);
    assert_int_equal(out.ended, 1);
    assert_int_equal(empty.ended, 1);
    assert_false(stream_missed(out.stream));
    assert_false(stream_missed(empty.stream));
    assert_string_equal(buf_text(&bench.heard.streams[1]), "all");
    end(&out);
    end(&empty);
    bench_close(&bench);
}

static void test_cut_waits_for_credit(void **state)
{
    (void)state;
    struct bench bench;
    struct source out;
    bench_open(&bench);
    bench.pool.granted = 0;
    begin(&out, &bench, 1);
    fd_write_all(out.fd, "kept", 4);
    stream_cut(out.stream);
    run_turns(bench.loop, 5);
    assert_int_equal(out.ended, 0);
    bench.pool.granted = 100;
    stream_pool_resume(&bench.pool);
    run_turns(bench.loop, 5);
    assert_int_equal(out.ended, 1);
    assert_string_equal(buf_text(&bench.heard.streams[1]), "kept");
    end(&out);
    bench_close(&bench);
}

static void stop_at_show(struct bench *bench, uint8_t type)
{
    if (type == FRAME_OUTPUT_SHOW)
        loop_stop(bench->loop);
}

/* A line without its end is to be shown after a while; one with it, or its rest, never. */
static void test_unfinished_line(void **state)
{
    (void)state;
    struct bench bench;
    struct source out, errs;
    bench_open(&bench);
    bench.frame = stop_at_show;
    begin(&out, &bench, 1);
    begin(&errs, &bench, 2);
    fd_write_all(out.fd, "whole\nName: ", 12);
    fd_write_all(errs.fd, "begun", 5);
    run_turns(bench.loop, 5);
    fd_write_all(errs.fd, " and ended\n", 11);
    run_loop(bench.loop);
    assert_int_equal(bench.heard.shows[1], 1);
    fd_write_all(out.fd, "Bob\nplace: ", 11);
    run_loop(bench.loop);
    assert_int_equal(bench.heard.shows[1], 2);
    fd_write_all(errs.fd, "50%\r", 4); /* the \n of a \r\n may follow */
    run_loop(bench.loop);
    assert_int_equal(bench.heard.shows[1], 2); /* once */
    assert_int_equal(bench.heard.shows[2], 1);
    end(&out);
    end(&errs);
    bench_close(&bench);
}

/* The rest of a line is there and waits for credit: however long that takes, it is not shown in
 * parts. The other stream's line, which began after it, tells that the time has passed. */
static void test_rest_waits_for_credit(void **state)
{
    (void)state;
    struct bench bench;
    struct source out, errs;
    bench_open(&bench);
    bench.frame = stop_at_show;
    begin(&out, &bench, 1);
    begin(&errs, &bench, 2);
    fd_write_all(out.fd, "first ha", 8);
    run_turns(bench.loop, 5);
    fd_write_all(errs.fd, "prompt", 6);
    run_turns(bench.loop, 5);
    bench.pool.granted = bench.pool.used;
    fd_write_all(out.fd, "lf", 2);
    run_loop(bench.loop);
    assert_string_equal(buf_text(&bench.heard.streams[1]), "first ha");
    assert_int_equal(bench.heard.shows[1], 0);
    assert_int_equal(bench.heard.shows[2], 1);
    bench.pool.granted = UINT64_MAX; /* nothing more comes: now it is due */
    stream_pool_resume(&bench.pool);
    run_loop(bench.loop);
    assert_string_equal(buf_text(&bench.heard.streams[1]), "first half");
    assert_int_equal(bench.heard.shows[1], 1);
    end(&out);
    end(&errs);
    bench_close(&bench);
}

/* Whole pipes are moved without being looked at, and end somewhere in a line. */
static void test_unfinished_line_of_moved_bytes(void **state)
{
    enum { PIPE = 65536 };
    (void)state;
    struct bench bench;
    struct source out;
    char chunk[PIPE] = "";
    bench_open(&bench);
    bench.frame = stop_at_show;
    begin(&out, &bench, 1);
    fd_nonblock(out.fd);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(fd_write(out.fd, chunk, PIPE), PIPE);
        run_loop(bench.loop);
        assert_int_equal(bench.heard.streams[1].length, (round + 1) * PIPE);
        assert_int_equal(bench.heard.shows[1], round + 1);
    }
    end(&out);
    assert_null(bench.pool.timer);
    bench_close(&bench);
}

static void write_more(struct bench *bench, uint8_t type)
{
    struct source *source = bench->context;
    if (type == FRAME_OUTPUT && source->ended == 0)
        fd_write_all(source->fd, "and more ", 9);
}

/* Whoever holds the other end goes on writing, and faster than it is read: it ends all the same. */
static void test_cut_of_an_endless_writer(void **state)
{
    (void)state;
    struct bench bench;
    struct source out;
    char chunk[60000] = "";
    bench_open(&bench);
    begin(&out, &bench, 1);
    bench.context = &out;
    bench.frame = write_more;
    fd_write_all(out.fd, "first ", 6);
    run_turns(bench.loop, 20); /* it answers every frame, so it would never stop by itself */
    assert_int_equal(out.ended, 0);
    fd_write_all(out.fd, chunk, sizeof(chunk));
    stream_cut(out.stream);
    fd_write_all(out.fd, "too late", 8);
    run_turns(bench.loop, 20);
    assert_int_equal(out.ended, 1);
    assert_true(stream_missed(out.stream));
    assert_true(bench.heard.streams[1].length >= sizeof(chunk) + 6);
    assert_int_equal(bench.heard.ends[1], 1);
    end(&out);
    bench_close(&bench);
}

static void test_terminal(void **state)
{
    (void)state;
    struct bench bench;
    struct source out = {.ended = 0};
    int master, slave;
    bench_open(&bench);
    assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
    fd_nonblock(master);
    out.stream = stream_create(&bench.pool, &bench.post, master, HEARD_RANK, 1, on_ended, &out);
    out.fd = slave;
    fd_write_all(slave, "screen", 6);
    run_until(bench.loop, bench.heard.streams[1].length >= 6);
    assert_string_equal(buf_text(&bench.heard.streams[1]), "screen");
    fd_close(&out.fd);
    run_until(bench.loop, out.ended > 0); /* EIO: its last user has gone */
    assert_int_equal(bench.heard.ends[1], 1);
    end(&out);
    bench_close(&bench);
}

/* In place, since the stream keeps its address. Writes to `source->fd` do not wait. */
static void begin_terminal(struct source *source, struct bench *bench)
{
    int ends[2];
    *source = (struct source){.ended = 0};
    assert_int_equal(pty_open_output(ends, 24, 80), 0);
    fd_nonblock(ends[0]);
    fd_nonblock(ends[1]);
    source->fd = ends[1];
    source->stream =
        stream_create(&bench->pool, &bench->post, ends[0], HEARD_RANK, 1, on_ended, source);
}

/* More waits than the line discipline has (4 KiB), which is all that FIONREAD counts. */
static void test_cut_of_a_terminal(void **state)
{
    (void)state;
    struct bench bench;
    struct source out;
    char chunk[7000];
    memset(chunk, 'x', sizeof(chunk));
    bench_open(&bench);
    begin_terminal(&out, &bench);
    ssize_t count = fd_write(out.fd, chunk, sizeof(chunk)); /* what fits while nobody reads */
    assert_true(count > 4096);
    stream_cut(out.stream);
    run_until(bench.loop, bench.heard.ends[1] > 0);
    assert_int_equal(bench.heard.streams[1].length, count);
    assert_true(stream_missed(out.stream));
    end(&out);
    bench_close(&bench);
}

static void test_cut_of_a_terminal_without_bytes(void **state)
{
    (void)state;
    struct bench bench;
    struct source out;
    bench_open(&bench);
    begin_terminal(&out, &bench);
    stream_cut(out.stream);
    assert_int_equal(out.ended, 1);
    assert_true(stream_missed(out.stream));
    end(&out);
    bench_close(&bench);
}

static void fill_up(const struct source *source)
{
    static const char chunk[64];
    while (fd_write(source->fd, chunk, sizeof(chunk)) > 0)
        continue;
}

/* So that there is room for what comes next. */
static void test_take_from_a_full_terminal(void **state)
{
    (void)state;
    struct bench bench;
    struct source out;
    char chunk[2000] = "";
    bench_open(&bench);
    begin_terminal(&out, &bench);
    fill_up(&out);
    bench.pool.granted = 0;
    stream_take(out.stream);
    assert_int_equal(fd_write(out.fd, chunk, sizeof(chunk)), -1);
    bench.pool.granted = UINT64_MAX;
    stream_take(out.stream);
    assert_int_equal(fd_write(out.fd, chunk, sizeof(chunk)), sizeof(chunk));
    size_t taken = bench.pool.used;
    stream_take(out.stream);
    assert_int_equal(bench.pool.used, taken + sizeof(chunk));
    stream_take(out.stream);
    assert_int_equal(out.ended, 0);
    fd_close(&out.fd);
    stream_take(out.stream);
    assert_int_equal(out.ended, 0);
    run_until(bench.loop, bench.heard.ends[1] > 0);
    assert_int_equal(bench.heard.streams[1].length, bench.pool.used);
    assert_true(bench.heard.in_order);
    stream_take(out.stream); /* after its end: nothing */
    end(&out);
    bench_close(&bench);
}

/* Credit for one read at a time, so that the terminal is full before each. */
static void keep_full(struct bench *bench, uint8_t type)
{
    const struct source *source = bench->context;
    assert_true(bench->pool.used <= (128 + 64) << 10); /* what a terminal may hold, and a chunk */
    if (type != FRAME_OUTPUT || source->ended > 0)
        return;
    fill_up(source);
    bench->pool.granted = bench->pool.used + 1;
    stream_pool_resume(&bench->pool);
}

/* It is never empty, and ends all the same. */
static void test_cut_of_a_terminal_with_an_endless_writer(void **state)
{
    (void)state;
    struct bench bench;
    struct source out;
    bench_open(&bench);
    begin_terminal(&out, &bench);
    bench.context = &out;
    bench.frame = keep_full;
    bench.pool.granted = 1;
    fill_up(&out);
    stream_cut(out.stream);
    assert_int_equal(out.ended, 0);
    run_until(bench.loop, bench.heard.ends[1] > 0);
    assert_int_equal(out.ended, 1);
    assert_true(stream_missed(out.stream));
    end(&out);
    bench_close(&bench);
}

/* The driver has gone: bytes are swallowed, whatever the credit says, so that no worker blocks. */
static void test_without_a_driver(void **state)
{
    (void)state;
    struct bench bench;
    struct source out;
    char chunk[50000] = "";
    bench_open(&bench);
    bench.pool.granted = 0;
    begin(&out, &bench, 1);
    fd_write_all(out.fd, chunk, sizeof(chunk));
    run_turns(bench.loop, 5);
    struct link *link = bench.post.link;
    bench.post.link = NULL;
    stream_pool_resume(&bench.pool);
    for (int i = 0; i < 10; i++) {
        run_turns(bench.loop, 30);
        fd_write_all(out.fd, chunk, sizeof(chunk)); /* would block if it were not read */
    }
    fd_close(&out.fd);
    run_turns(bench.loop, 30);
    assert_int_equal(out.ended, 1);
    assert_int_equal(bench.heard.streams[1].length, 0);
    bench.post.link = link;
    end(&out);
    bench_close(&bench);
}

/* More streams than the link's queue takes in one turn, and a kernel that takes the whole queue at
 * once: the streams that paused go on. (A file never makes a writer wait.) */
static void test_congestion_that_ends_at_once(void **state)
{
    (void)state;
    enum { STREAMS = 30, CHUNK = 60000 };
    static const struct link_ops file_ops = {
        .frame = bench_ignore, .closed = bench_closed, .drained = bench_drained};
    struct bench bench;
    struct source sources[STREAMS];
    char chunk[CHUNK] = "";
    int pair[2];
    bench_open(&bench);
    struct link *before = bench.post.link;
    assert_int_equal(fd_socketpair(pair), 0);
    int file = memfd_create("driver", MFD_CLOEXEC);
    int copy AUTO_FD = fcntl(file, F_DUPFD_CLOEXEC, 3);
    bench.post.link = link_create(bench.loop, pair[0], file, &file_ops, &bench, NULL);
    for (int i = 0; i < STREAMS; i++) {
        begin(&sources[i], &bench, 1);
        fd_write_all(sources[i].fd, chunk, sizeof(chunk));
        fd_close(&sources[i].fd);
    }
    run_turns(bench.loop, 50);
    for (int i = 0; i < STREAMS; i++)
        assert_int_equal(sources[i].ended, 1);
    assert_int_equal(bench.pool.used, STREAMS * CHUNK);
    assert_int_equal(lseek(copy, 0, SEEK_END),
                     STREAMS * (CHUNK + 2 * (FRAME_HEADER_SIZE + FRAME_DATA_PREFIX)));
    for (int i = 0; i < STREAMS; i++)
        end(&sources[i]);
    link_destroy(bench.post.link);
    bench.post.link = before;
    fd_close(&pair[1]);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_and_end),
        cmocka_unit_test(test_destroyed_in_its_callback),
        cmocka_unit_test(test_much_at_once),
        cmocka_unit_test(test_credit),
        cmocka_unit_test(test_shared_credit),
        cmocka_unit_test(test_wide_pipe),
        cmocka_unit_test(test_a_pipe_of_its_own_size),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_cut_while_held),
        cmocka_unit_test(test_cut_at_the_end),
        cmocka_unit_test(test_cut_waits_for_credit),
        cmocka_unit_test(test_unfinished_line),
        cmocka_unit_test(test_rest_waits_for_credit),
        cmocka_unit_test(test_unfinished_line_of_moved_bytes),
        cmocka_unit_test(test_cut_of_an_endless_writer),
        cmocka_unit_test(test_terminal),
        cmocka_unit_test(test_cut_of_a_terminal),
        cmocka_unit_test(test_take_from_a_full_terminal),
        cmocka_unit_test(test_cut_of_a_terminal_without_bytes),
        cmocka_unit_test(test_cut_of_a_terminal_with_an_endless_writer),
        cmocka_unit_test(test_without_a_driver),
        cmocka_unit_test(test_congestion_that_ends_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
