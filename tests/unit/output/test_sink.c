/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that writes: many targets in one queue, and when their descriptors are open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include "output/sink.h"
#include "output_fixture.h"

struct bench {
    struct loop *loop;
    struct sink *sink;
    int drained, failures;
};

static void on_drained(void *context)
{
    struct bench *bench = context;
    bench->drained++;
    loop_stop(bench->loop);
}

static void on_failure(void *context, struct output_target *target, int errnum)
{
    (void)target, (void)errnum;
    struct bench *bench = context;
    bench->failures++;
}

static void bench_start(struct bench *bench)
{
    static const struct sink_ops ops = {.drained = on_drained, .failed = on_failure};
    *bench = (struct bench){.loop = loop_create(NULL)};
    bench->sink = sink_create(bench->loop, &ops, bench);
}

static void bench_end(struct bench *bench)
{
    assert_true(sink_destroy(bench->sink, LIMIT_MS));
    assert_int_equal(bench->failures, 0);
    loop_destroy(bench->loop);
}

/* Until everything that has been appended is written. */
static void settle(struct bench *bench)
{
    uint64_t ticket = sink_ticket(bench->sink);
    sink_submit(bench->sink);
    while (!sink_reached(bench->sink, ticket)) {
        sink_wake(bench->sink, 0, ticket);
        loop_run(bench->loop);
    }
    assert_int_equal(sink_queued(bench->sink), 0);
}

static struct output_target *file(struct bench *bench, const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return sink_keep(bench->sink, target_file(path, false, false));
}

/* Does this process have a descriptor of the target's file? */
static bool is_open(const struct output_target *target)
{
    bool found = false;
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char link[300], path[256] = "";
        snprintf(link, sizeof(link), "/proc/self/fd/%s", entry->d_name);
        if (readlink(link, path, sizeof(path) - 1) > 0)
            found |= strcmp(path, target->path) == 0;
    }
    closedir(dir);
    return found;
}

/* Each byte has another target than the one before: a block is full long before its bytes are. */
static void targets_in_turns(void **state)
{
    (void)state;
    enum { TURNS = 5000 };
    struct bench bench;
    bench_start(&bench);
    struct output_target *files[] = {file(&bench, "even"), file(&bench, "odd")};
    char wanted[2][TURNS / 2 + 1] = {"", ""};
    for (int i = 0; i < TURNS; i++) {
        char byte = (char)('a' + i / 2 % 26);
        sink_append(bench.sink, files[i % 2], &byte, 1);
        wanted[i % 2][i / 2] = byte;
        wanted[i % 2][i / 2 + 1] = '\0';
    }
    bench_end(&bench);
    expect_file("even", wanted[0]);
    expect_file("odd", wanted[1]);
}

static void a_descriptor_is_kept_until_it_is_given_back(void **state)
{
    (void)state;
    struct bench bench;
    bench_start(&bench);
    struct output_target *target = file(&bench, "kept");
    settle(&bench);
    assert_int_equal(access(target->path, F_OK), -1);
    sink_open(bench.sink, target);
    settle(&bench);
    expect_file("kept", "");
    assert_true(is_open(target));
    sink_append(bench.sink, target, "one", 3);
    sink_end(bench.sink, target, TARGET_REST);
    settle(&bench);
    assert_false(is_open(target));
    sink_append(bench.sink, target, " two", 4);
    settle(&bench);
    assert_true(is_open(target));
    sink_append(bench.sink, target, " three", 6);
    sink_end(bench.sink, target, TARGET_CLOSE);
    settle(&bench);
    assert_false(is_open(target));
    expect_file("kept", "one two three");
    bench_end(&bench);
}

/* A block that is full to its last byte, and one more byte than that. */
static void blocks_of_every_fill(void **state)
{
    (void)state;
    struct bench bench;
    bench_start(&bench);
    struct output_target *target = file(&bench, "full"), *other = file(&bench, "other");
    AUTO_BUF struct buf wanted = BUF_INIT(1 << 20);
    for (int i = 0; i < 4; i++) {
        size_t room;
        char *place = sink_place(bench.sink, target, &room);
        assert_true(room > 0);
        memset(place, 'a' + i, room);
        sink_placed(bench.sink, room);
        for (size_t j = 0; j < room; j++)
            buf_putc(&wanted, (char)('a' + i));
        if (i % 2 != 0) {
            sink_append(bench.sink, target, "+", 1);
            buf_putc(&wanted, '+');
        }
        sink_append(bench.sink, other, "x", 1);
    }
    bench_end(&bench);
    expect_file("full", buf_text(&wanted));
    expect_file("other", "xxxx");
}

/* The loop is woken when the queue is short enough, once for each time that it asks. */
static void a_wake_up_for_each_question(void **state)
{
    (void)state;
    struct bench bench;
    bench_start(&bench);
    struct output_target *target = file(&bench, "woken");
    for (int i = 1; i <= 3; i++) {
        sink_append(bench.sink, target, "x", 1);
        sink_submit(bench.sink);
        sink_wake(bench.sink, 0, 0);
        loop_run(bench.loop);
        assert_int_equal(bench.drained, i);
        assert_int_equal(sink_queued(bench.sink), 0);
    }
    bench_end(&bench);
    expect_file("woken", "xxx");
}

/* Runs the loop for a while and then says how often it was woken. */
static void on_pause(void *context)
{
    loop_stop(context);
}

static int drained_meanwhile(struct bench *bench)
{
    struct loop_timer *timer = loop_timer_create(bench->loop, on_pause, bench->loop);
    int before = bench->drained;
    loop_timer_set(timer, 50);
    while (loop_timer_is_set(timer))
        loop_run(bench->loop);
    loop_timer_destroy(timer);
    return bench->drained - before;
}

/* More blocks than the pipe takes: one is written, others wait for the reader. */
static void not_before_the_ticket_is_reached(void **state)
{
    (void)state;
    struct bench bench;
    bench_start(&bench);
    int ends[2];
    assert_int_equal(fd_pipe(ends), 0);
    struct output_target *target = sink_keep(bench.sink, target_descriptor(ends[1], "a pipe"));
    size_t total = 0, first = 0;
    for (int i = 0; i < 8; i++) {
        size_t room;
        char *place = sink_place(bench.sink, target, &room);
        memset(place, 'x', room);
        sink_placed(bench.sink, room);
        total += room;
        if (i == 0)
            first = room;
        sink_append(bench.sink, target, "y", 1); /* hands the full block over */
        total++;
    }
    sink_wake(bench.sink, 0, sink_ticket(bench.sink));
    sink_submit(bench.sink);
    char *bytes = malloc(total);
    for (size_t got = 0; got < first + 1;)
        got += (size_t)fd_read(ends[0], bytes, first + 1 - got);
    assert_int_equal(drained_meanwhile(&bench), 0);
    struct reader reader = {.fd = ends[0], .text = BUF_INIT(1 << 20)};
    pthread_create(&reader.thread, NULL, read_all, &reader);
    settle(&bench);
    bench_end(&bench);
    fd_close(&ends[1]);
    pthread_join(reader.thread, NULL);
    assert_int_equal(reader.text.length, total - first - 1);
    fd_close(&ends[0]);
    buf_destroy(&reader.text);
    free(bytes);
}

static void nobody_is_woken_without_a_question(void **state)
{
    (void)state;
    struct bench bench;
    bench_start(&bench);
    struct output_target *target = file(&bench, "quiet");
    sink_append(bench.sink, target, "x", 1);
    settle(&bench);
    drained_meanwhile(&bench);
    for (int i = 0; i < 3; i++) {
        sink_append(bench.sink, target, "x", 1);
        sink_submit(bench.sink);
        assert_int_equal(drained_meanwhile(&bench), 0);
        assert_int_equal(sink_queued(bench.sink), 0);
    }
    bench_end(&bench);
}

static void on_told(void *context, struct output_target *target, int errnum)
{
    on_failure(context, target, errnum);
    loop_stop(((struct bench *)context)->loop);
}

static void a_failure_is_told_without_a_question(void **state)
{
    (void)state;
    struct bench bench = {.loop = loop_create(NULL)};
    const struct sink_ops ops = {.drained = on_drained, .failed = on_told};
    bench.sink = sink_create(bench.loop, &ops, &bench);
    struct output_target *full = sink_keep(bench.sink, target_file("/dev/full", true, false));
    sink_append(bench.sink, full, "x", 1);
    sink_submit(bench.sink);
    drained_meanwhile(&bench);
    for (int i = 0; i < 100 && bench.failures == 0; i++)
        drained_meanwhile(&bench);
    assert_int_equal(bench.failures, 1);
    bench.failures = 0;
    bench_end(&bench);
}

/* No descriptor for the thread's wake-up, so the loop itself writes. */
static void without_a_thread(void **state)
{
    (void)state;
    struct bench bench;
    struct rlimit usual, none;
    int ends[2];
    char text[16] = "";
    bench_start(&bench);
    assert_int_equal(fd_pipe(ends), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = usual;
    none.rlim_cur = 0;
    struct output_target *pipe = sink_keep(bench.sink, target_descriptor(ends[1], "a pipe"));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    sink_append(bench.sink, pipe, "one", 3);
    sink_submit(bench.sink);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_int_equal(sink_queued(bench.sink), 0);
    sink_append(bench.sink, pipe, " two", 4);
    bench_end(&bench);
    assert_int_equal(fd_read(ends[0], text, sizeof(text)), 7);
    assert_string_equal(text, "one two");
    fd_close(&ends[0]);
    fd_close(&ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_in_turns),
        cmocka_unit_test(a_descriptor_is_kept_until_it_is_given_back),
        cmocka_unit_test(blocks_of_every_fill),
        cmocka_unit_test(a_wake_up_for_each_question),
        cmocka_unit_test(not_before_the_ticket_is_reached),
        cmocka_unit_test(nobody_is_woken_without_a_question),
        cmocka_unit_test(a_failure_is_told_without_a_question),
        cmocka_unit_test(without_a_thread),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
