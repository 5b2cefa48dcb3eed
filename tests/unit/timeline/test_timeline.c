/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/fd.h"
#include "base/mem.h"
#include "timeline/timeline.h"
#include "unit.h"

struct fixture {
    char folder[64];
    char *path;
    struct timeline *timeline;
    const struct trace *trace;
};

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    memcpy(f->folder, "/tmp/hvd-timeline-XXXXXX", sizeof("/tmp/hvd-timeline-XXXXXX"));
    assert_non_null(mkdtemp(f->folder));
    f->path = mem_printf("%s/timeline.json", f->folder);
    f->timeline = timeline_create(0);
    f->trace = timeline_trace(f->timeline);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    timeline_destroy(f->timeline);
    unlink(f->path);
    assert_int_equal(rmdir(f->folder), 0); /* nothing else was left there */
    free(f->path);
    free(f);
    return 0;
}

static void report(const struct trace *trace, enum trace_kind kind, const char *tensor)
{
    const int64_t shape[] = {1, 2};
    struct trace_event event = {.kind = kind,
                                .tensor = tensor,
                                .what = "allreduce",
                                .type = "float32",
                                .shape = shape,
                                .dims = 2,
                                .time_ns = unit_limit_ns(0)};
    trace_send(trace, &event);
}

static void operate(const struct trace *trace, const char *tensor)
{
    report(trace, TRACE_OPERATION_BEGIN, tensor);
    report(trace, TRACE_OPERATION_END, tensor);
}

static json_t *read_file(const char *path)
{
    json_error_t error;
    json_t *list = json_load_file(path, 0, &error);
    if (list == NULL)
        fail_msg("%s: %s in line %d", path, error.text, error.line);
    assert_true(json_is_array(list));
    return list;
}

/* NULL: a change of the file came between two reads. */
static json_t *try_torn(const char *path)
{
    AUTO_BUF struct buf text = BUF_INIT((size_t)256 << 20);
    if (fd_read_file(path, &text, NULL) < 0)
        return NULL;
    json_t *list = json_loads(buf_text(&text), 0, NULL);
    char *last = strrchr(buf_text(&text), '\n');
    while (list == NULL && last != NULL && last > buf_text(&text) && last[-1] != ',') {
        *last = '\0';
        last = strrchr(buf_text(&text), '\n');
    }
    if (list != NULL || last == NULL || last == buf_text(&text))
        return list;
    memcpy(last - 1, "]", 2);
    return json_loads(buf_text(&text), 0, NULL);
}

/* The file while it is written, or after a crash in a write: the last line may not be whole. */
static json_t *read_torn(const char *path)
{
    json_t *list = try_torn(path);
    for (int tries = 0; list == NULL && tries < 100; tries++) {
        usleep(10 * 1000);
        list = try_torn(path);
    }
    assert_non_null(list);
    return list;
}

static size_t count_in(const char *path, const char *phase, bool running)
{
    json_t *list = running ? read_torn(path) : read_file(path);
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_object_get(json_array_get(list, i), "ph"));
        count += strcmp(text, phase) == 0;
    }
    json_decref(list);
    return count;
}

static size_t count_phase(const char *path, const char *phase)
{
    return count_in(path, phase, false);
}

static void test_start_and_stop(void **state)
{
    struct fixture *f = *state;
    operate(f->trace, "before");
    assert_int_equal(timeline_stop(f->timeline, NULL), 0);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(timeline_start(f->timeline, f->path, false, NULL), 0);
        assert_int_equal(timeline_start(f->timeline, f->path, false, NULL), 0); /* the same */
        for (int i = 0; i < 10; i++)
            operate(f->trace, "a");
        report(f->trace, TRACE_CYCLE, NULL); /* not wanted */
        assert_int_equal(timeline_stop(f->timeline, NULL), 0);
        operate(f->trace, "after");
        assert_int_equal(count_phase(f->path, "B"), 10);
        assert_int_equal(count_phase(f->path, "E"), 10);
        assert_int_equal(count_phase(f->path, "i"), 0);
        assert_int_equal(count_phase(f->path, "M"), 4);
    }
}

static void test_an_empty_one(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(timeline_start(f->timeline, f->path, true, NULL), 0);
    assert_int_equal(timeline_stop(f->timeline, NULL), 0);
    assert_int_equal(count_phase(f->path, "M"), 2);
}

static void test_another_file(void **state)
{
    struct fixture *f = *state;
    AUTO_FREE char *second = mem_printf("%s/second.json", f->folder);
    assert_int_equal(timeline_start(f->timeline, f->path, false, NULL), 0);
    operate(f->trace, "a");
    assert_int_equal(timeline_start(f->timeline, second, true, NULL), 0);
    assert_int_equal(count_phase(f->path, "B"), 1); /* closed */
    operate(f->trace, "a");
    report(f->trace, TRACE_CYCLE, NULL);
    assert_int_equal(timeline_stop(f->timeline, NULL), 0);
    assert_int_equal(count_phase(second, "B"), 1);
    assert_int_equal(count_phase(second, "i"), 1);
    assert_int_equal(count_phase(second, "M"), 4); /* the row is introduced again */
    unlink(second);
}

static void test_a_file_that_cannot_be_created(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    AUTO_FREE char *bad = mem_printf("%s/missing/x.json", f->folder);
    assert_int_equal(timeline_start(f->timeline, bad, false, &err), -1);
    assert_non_null(strstr(err.text, "missing/x.json"));
    operate(f->trace, "a");
    assert_int_equal(timeline_start(f->timeline, f->path, false, NULL), 0); /* it can go on */
    assert_int_equal(timeline_stop(f->timeline, NULL), 0);
}

/* Nobody needs to stop the timeline for that. */
static void test_readable_at_any_time(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(timeline_start(f->timeline, f->path, false, NULL), 0);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 200; i++)
            operate(f->trace, "a");
        json_decref(read_torn(f->path));
    }
    for (int tries = 0; count_in(f->path, "E", true) < 10000; tries++) {
        assert_in_range(tries, 0, 2000);
        usleep(10 * 1000);
    }
    assert_int_equal(timeline_stop(f->timeline, NULL), 0);
    assert_int_equal(count_phase(f->path, "E"), 10000);
}

/* A process that is killed leaves a file that can be read. */
static void test_a_crash(void **state)
{
    struct fixture *f = *state;
    int ready[2], status = 0;
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it writes without end */
        struct timeline *own = timeline_create(0);
        timeline_start(own, f->path, false, NULL);
        for (int i = 0;; i++) {
            operate(timeline_trace(own), "a");
            if (i == 50000 && write(ready[1], "x", 1) != 1)
                _exit(1);
            if (i > 50000)
                usleep(1); /* a slow reader must not see a file of any size */
        }
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    for (int tries = 0; count_in(f->path, "B", true) == 0;
         tries++) { /* it is in the middle of it */
        assert_in_range(tries, 0, 2000);
        usleep(10 * 1000);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    close(ready[0]);
    close(ready[1]);
    assert_true(count_in(f->path, "B", true) > 0);
}

/* More than the queue holds while the file does not move: it is counted, the caller never waits,
 * and what the file has is balanced. */
static void test_dropped_events(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    struct timeline *small = timeline_create(4096);
    char name[1000];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(timeline_start(small, f->path, false, NULL), 0);
    for (int i = 0; i < 100000; i++)
        operate(timeline_trace(small), name);
    assert_int_equal(timeline_stop(small, &err), -1);
    assert_non_null(strstr(err.text, "lacks"));
    timeline_destroy(small);
    size_t begun = count_phase(f->path, "B"), ended = count_phase(f->path, "E");
    assert_in_range(begun - ended, 0, 1);
    assert_true(begun < 100000);
    assert_true(count_phase(f->path, "i") > 0); /* the marks */
}

/* A full disk ends the writing, not the program, and what was written stays. */
static void test_a_full_disk(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    assert_int_equal(timeline_start(f->timeline, "/dev/full", false, &err), -1);
    assert_non_null(strstr(err.text, "/dev/full"));
}

#define THREADS 8
#define EACH 2000

static void *thread(void *context)
{
    const struct trace *trace = context;
    static atomic_int next;
    char name[16];
    snprintf(name, sizeof(name), "t%d", atomic_fetch_add(&next, 1));
    for (int i = 0; i < EACH; i++)
        operate(trace, name);
    return NULL;
}

static void test_many_threads(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[THREADS];
    assert_int_equal(timeline_start(f->timeline, f->path, false, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, thread, (void *)f->trace), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(timeline_stop(f->timeline, NULL), 0);
    assert_int_equal(count_phase(f->path, "B"), THREADS * EACH);
    assert_int_equal(count_phase(f->path, "E"), THREADS * EACH);
}

/* Threads report events while others start and stop the timeline. */
static void test_starts_and_stops_under_load(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, thread, (void *)f->trace), 0);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(timeline_start(f->timeline, f->path, false, NULL), 0);
        assert_int_equal(timeline_stop(f->timeline, NULL), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    json_decref(read_file(f->path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_start_and_stop, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_empty_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_file_that_cannot_be_created, setup, teardown),
        cmocka_unit_test_setup_teardown(test_readable_at_any_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_crash, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dropped_events, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_full_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_threads, setup, teardown),
        cmocka_unit_test_setup_teardown(test_starts_and_stops_under_load, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
