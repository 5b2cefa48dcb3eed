/* SPDX-License-Identifier: Apache-2.0 */
/* The helper is hvdrun-agent; scripts take its place for what a helper must not do. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../stacks/python_child.h"
#include "base/fd.h"
#include "base/mem.h"
#include "features/stacks/stack_pool_agent.h"
#include "features/stacks/state_desk_agent_test.h"
#include "helpers_fixture.h"
#include "stacks/stack.h"

#define FOLDER "/tmp/hvdrun-stacks-XXXXXX"
#define MANY 200
#define LONG_MS 120000
#define SHORT_MS 300

struct bench {
    char folder[sizeof(FOLDER)];
    char *program, *mark;
    struct helper_loop children;
    struct stack_pool *pool;
    struct stack_item items[MANY];
    int finished;
};

static int open_bench(void **state)
{
    struct bench *bench = mem_alloc(sizeof(*bench));
    *bench = (struct bench){.folder = FOLDER};
    signal(SIGPIPE, SIG_IGN);
    assert_non_null(mkdtemp(bench->folder));
    bench->program = mem_printf("%s/helper", bench->folder);
    bench->mark = mem_printf("%s/starts", bench->folder);
    helper_loop_open(&bench->children);
    *state = bench;
    return 0;
}

static int close_bench(void **state)
{
    struct bench *bench = *state;
    for (size_t i = 0; i < MANY; i++)
        stack_item_clear(&bench->items[i]);
    stack_pool_destroy(bench->pool);
    helper_loop_close(&bench->children);
    unlink(bench->program);
    unlink(bench->mark);
    rmdir(bench->folder);
    free(bench->program);
    free(bench->mark);
    free(bench);
    return python_children_end(state);
}

/* The real helper; or a script, to which $mark is a file, and $real the helper. */
static void use(struct bench *bench, const char *script)
{
    const char *program = HVDRUN_AGENT_PROGRAM;
    if (script != NULL) {
        char *text AUTO_FREE = mem_printf("#!/bin/sh\nmark=%s\nreal=%s\n%s\n", bench->mark,
                                          HVDRUN_AGENT_PROGRAM, script);
        int fd AUTO_FD = fd_open(bench->program, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
        assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
        program = bench->program;
    }
    bench->pool = stack_pool_create(bench->children.loop, bench->children.helpers, program);
}

static void finish(void *context)
{
    struct bench *bench = context;
    bench->finished++;
    loop_stop(bench->children.loop);
}

static void look(struct bench *bench, size_t count, bool native, int64_t limit_ms)
{
    bench->finished = 0;
    struct stack_look *look =
        stack_pool_look(bench->pool, bench->items, count, native, limit_ms, finish, bench);
    run_loop(bench->children.loop);
    assert_int_equal(bench->finished, 1);
    stack_look_destroy(look);
}

static void fill(struct bench *bench, const pid_t *pids, bool native, Hvdrun__StateReport *message)
{
    struct descendants_table *processes = descendants_table_read(1000);
    struct rank_stacks *stacks =
        rank_stacks_create(bench->pool, pids, message->n_seats, processes, native, finish, bench);
    descendants_table_destroy(processes);
    run_loop(bench->children.loop);
    rank_stacks_fill(stacks, message);
    rank_stacks_destroy(stacks);
}

static void test_many_processes(void **state)
{
    struct bench *bench = *state;
    pid_t pid = python_child_start(PYTHON_PROGRAM, true);
    if (pid < 0)
        skip();
    use(bench, NULL);
    for (size_t i = 0; i < MANY; i++)
        bench->items[i].pid = i % 2 == 0 ? pid : getpid();
    look(bench, MANY, false, LONG_MS);
    for (size_t i = 0; i < MANY; i++) {
        const Hvdrun__StackAnswer *answer = bench->items[i].answer;
        assert_non_null(answer);
        assert_int_equal(answer->item, i);
        assert_int_equal(answer->python, i % 2 == 0);
        assert_int_equal(answer->n_stacks, i % 2 == 0 ? 2 : 1);
        assert_int_equal(answer->stacks[0]->bare, i % 2 != 0);
    }
}

static void test_nothing_and_too_late(void **state)
{
    struct bench *bench = *state;
    use(bench, NULL);
    look(bench, 0, false, LONG_MS);
    for (size_t i = 0; i < MANY; i++)
        bench->items[i].pid = getpid();
    look(bench, MANY, false, -1000);
    for (size_t i = 0; i < MANY; i++) {
        assert_null(bench->items[i].answer);
        assert_null(bench->items[i].why);
    }
}

/* The two threads of seat 7, the second of which waits, as it does for long, and the process of
 * seat 8, which is a shell at first. */
static bool has_all(const Hvdrun__StateReport *message)
{
    return message->n_stacks == 3 && !message->stacks[0]->bare && message->stacks[2]->bare &&
           message->stacks[1]->n_frames > 0 &&
           strcmp(message->stacks[1]->doing, "calls futex") == 0 &&
           strcmp(message->stacks[2]->frames[0]->function, "process sleep") == 0 &&
           strstr(message->stacks[2]->doing, "nanosleep") != NULL;
}

/* Seat 7 runs Python below a shell, seat 8 is no Python, seat 9 has ended. */
static void test_a_message(void **state)
{
    struct bench *bench = *state;
    const char *python = python_program();
    if (python == NULL)
        skip();
    char *command AUTO_FREE =
        mem_printf("%s -I -c \"$1\" >/dev/null & echo; wait", python); /* `sh` stays above it */
    pid_t shell = python_child_run("/bin/sh", "-c", command, PYTHON_PROGRAM);
    pid_t sleeper = python_child_run("/bin/sh", "-c", "echo; exec sleep 1000", "");
    assert_true(shell > 0 && sleeper > 0);
    uint32_t seats[] = {7, 8, 9};
    const pid_t pids[] = {shell, sleeper, 0};
    Hvdrun__StateReport message = HVDRUN__STATE_REPORT__INIT;
    message.seats = seats;
    message.n_seats = 3;
    use(bench, NULL);
    for (int i = 0; i < 500 && !has_all(&message); i++) {
        rank_stacks_free(&message);
        fill(bench, pids, false, &message);
        usleep(20000);
    }
    assert_true(has_all(&message));
    assert_int_equal(message.stacks[0]->seat, 7);
    assert_int_equal(message.stacks[0]->role, STACK_MAIN);
    assert_int_equal(message.stacks[1]->role, STACK_OTHER);
    assert_string_equal(message.stacks[1]->doing, "calls futex");
    assert_string_equal(message.stacks[1]->frames[0]->function, "wait");
    assert_string_equal(message.stacks[1]->trouble, "");
    assert_int_equal(message.stacks[2]->seat, 8);
    assert_int_equal(message.stacks[2]->role, STACK_MAIN);
    assert_int_equal(message.stacks[2]->n_frames, 1);
    rank_stacks_free(&message);
    assert_int_equal(message.n_stacks, 0);
}

/* Many threads with deep stacks: more text than one worker may send. */
#define DEEP_PROGRAM                                                            \
    "import _thread, os, time\n"                                                \
    "lock = _thread.allocate_lock()\n"                                          \
    "def a_function_with_a_name_of_some_length_that_calls_itself(n):\n"         \
    "    if n == 0:\n"                                                          \
    "        lock.acquire()\n"                                                  \
    "    a_function_with_a_name_of_some_length_that_calls_itself(n-1)\n"        \
    "lock.acquire()\n"                                                          \
    "for i in range(24):\n"                                                     \
    "    _thread.start_new_thread(\n"                                           \
    "        a_function_with_a_name_of_some_length_that_calls_itself, (70,))\n" \
    "time.sleep(0.2); os.write(1, b'.'); time.sleep(1000)\n"

static size_t text_of(const Hvdrun__StateReport *message)
{
    size_t bytes = 0;
    for (size_t i = 0; i < message->n_stacks; i++) {
        const Hvdrun__PythonStack *stack = message->stacks[i];
        for (size_t j = 0; j < stack->n_frames; j++)
            bytes += strlen(stack->frames[j]->function) + strlen(stack->frames[j]->file);
    }
    return bytes;
}

static void test_much_text(void **state)
{
    struct bench *bench = *state;
    pid_t pid = python_child_start(DEEP_PROGRAM, true);
    if (pid < 0)
        skip();
    uint32_t seat = 7;
    Hvdrun__StateReport message = HVDRUN__STATE_REPORT__INIT;
    message.seats = &seat;
    message.n_seats = 1;
    use(bench, NULL);
    for (int i = 0; i < 500 && text_of(&message) < 30000; i++) {
        rank_stacks_free(&message);
        fill(bench, &pid, false, &message);
        usleep(20000);
    }
    assert_in_range(text_of(&message), 30000, 65536);
    rank_stacks_free(&message);
}

/* The answer can be given up at any time, and so can the pool. */
static void test_given_up(void **state)
{
    struct bench *bench = *state;
    for (size_t i = 0; i < MANY; i++)
        bench->items[i].pid = getpid();
    for (int i = 0; i < 20; i++) {
        use(bench, NULL);
        struct stack_look *one =
            stack_pool_look(bench->pool, bench->items, MANY, false, LONG_MS, finish, bench);
        struct stack_look *two =
            stack_pool_look(bench->pool, bench->items + 1, 0, true, LONG_MS, finish, bench);
        run_turns(bench->children.loop, i);
        stack_look_destroy(one);
        run_turns(bench->children.loop, i);
        stack_look_destroy(two);
        stack_pool_destroy(bench->pool);
        for (size_t j = 0; j < MANY; j++)
            stack_item_clear(&bench->items[j]);
    }
    bench->pool = NULL;
    helper_loop_expect_idle(&bench->children);
}

/* Since glibc 2.41, it calls functions of its own for the system call. */
static bool sleeps(const Hvdrun__PythonStack *stack)
{
    bool found = false;
    for (size_t i = 0; i < stack->n_frames && !found; i++)
        found = stack->frames[i]->native && strstr(stack->frames[i]->function, "nanosleep") != NULL;
    return found;
}

/* All of a rank, with the process below a shell; but not with more than anybody reads. */
static void test_what_is_whole(void **state)
{
    struct bench *bench = *state;
    static const char *const commands[] = {"sleep 1000 & echo; wait",
                                           "for i in $(seq 40); do sleep 1000 & done; echo; wait"};
    use(bench, NULL);
    for (size_t i = 0; i < 2; i++) {
        pid_t shell = python_child_run("/bin/sh", "-c", commands[i], "");
        assert_true(shell > 0);
        uint32_t seat = 7;
        Hvdrun__StateReport message = HVDRUN__STATE_REPORT__INIT;
        message.seats = &seat;
        message.n_seats = 1;
        for (int k = 0; k < 500 && message.n_whole == 0 && (k == 0 || i == 0); k++) {
            rank_stacks_free(&message);
            fill(bench, &shell, true, &message);
        }
        assert_int_equal(message.n_whole, i == 0);
        assert_true(message.n_stacks >= 2);
        rank_stacks_free(&message);
    }
}

/* Seat 7 is Python, seat 8 is not. The first waits in C below its Python frame. */
static void test_native_frames(void **state)
{
    struct bench *bench = *state;
    pid_t pid = python_child_start(PYTHON_PROGRAM, true);
    if (pid < 0)
        skip();
    pid_t sleeper = python_child_run("/bin/sh", "-c", "echo; exec sleep 1000", "");
    assert_true(sleeper > 0 && python_child_settle(sleeper));
    uint32_t seats[] = {7, 8};
    const pid_t pids[] = {pid, sleeper};
    Hvdrun__StateReport message = HVDRUN__STATE_REPORT__INIT;
    message.seats = seats;
    message.n_seats = 2;
    use(bench, NULL);
    fill(bench, pids, true, &message);
    assert_int_equal(message.n_remarks, 0);
    assert_int_equal(message.n_stacks, 3);
    const Hvdrun__PythonStack *first = message.stacks[0], *last = message.stacks[2];
    assert_true(first->n_frames > 4);
    assert_string_equal(first->frames[3]->function, "inner");
    assert_false(first->frames[3]->native);
    for (size_t i = 4; i < first->n_frames; i++) {
        assert_true(first->frames[i]->native);
        assert_null(strstr(first->frames[i]->function, "_PyEval_EvalFrame"));
    }
    assert_true(sleeps(first));
    assert_true(last->bare && last->n_frames > 1);
    assert_string_equal(last->frames[0]->function, "process sleep");
    assert_true(sleeps(last));
    assert_int_equal(message.n_whole, 1); /* not Python */
    assert_int_equal(message.whole[0], 8);
    rank_stacks_free(&message);
    fill(bench, pids, false, &message);
    assert_int_equal(message.n_whole, 0);
    rank_stacks_free(&message);
}

/* Each process gets two tries with native frames, one without, and then a word. */
static void test_helpers_that_die(void **state)
{
    struct bench *bench = *state;
    use(bench, "echo >>$mark; kill -BUS $$");
    bench->items[0].pid = bench->items[1].pid = getpid();
    look(bench, 2, true, LONG_MS);
    for (size_t i = 0; i < 2; i++) {
        assert_null(bench->items[i].answer);
        assert_string_equal(
            bench->items[i].why,
            "its stack cannot be read: hvdrun's helper process was killed by SIGBUS");
        assert_non_null(strstr(bench->items[i].remark,
                               ": hvdrun's helper process was killed by SIGBUS; most likely, a "
                               "file of this process changed"));
        stack_item_clear(&bench->items[i]);
    }
    uint32_t seat = 7;
    Hvdrun__StateReport message = HVDRUN__STATE_REPORT__INIT;
    message.seats = &seat;
    message.n_seats = 1;
    pid_t pid = getpid();
    fill(bench, &pid, false, &message);
    assert_int_equal(message.n_stacks, 1);
    assert_non_null(strstr(message.stacks[0]->trouble,
                           "its stack cannot be read: hvdrun's helper process was killed by"));
    rank_stacks_free(&message);
}

/* What the first two helpers had goes to the next ones. */
static void test_a_helper_that_dies_once(void **state)
{
    struct bench *bench = *state;
    use(bench, "test -s $mark || { echo >$mark; kill -BUS $$; }; exec $real \"$@\"");
    for (size_t i = 0; i < MANY; i++)
        bench->items[i].pid = getpid();
    look(bench, MANY, true, LONG_MS);
    size_t remarks = 0;
    for (size_t i = 0; i < MANY; i++) {
        assert_non_null(bench->items[i].answer);
        remarks += bench->items[i].remark != NULL ? 1 : 0;
    }
    assert_in_range(remarks, 1, 2);
}

/* How many processes have no answer at the deadline. One of the helpers says nothing. */
static size_t count_late(struct bench *bench, int64_t limit_ms)
{
    use(bench, "mkdir $mark 2>/dev/null && exec sleep 1000; exec $real \"$@\"");
    for (size_t i = 0; i < MANY; i++)
        bench->items[i].pid = getpid();
    look(bench, MANY, false, limit_ms);
    size_t late = 0;
    for (size_t i = 0; i < MANY; i++) {
        assert_null(bench->items[i].why);
        late += bench->items[i].answer == NULL ? 1 : 0;
        stack_item_clear(&bench->items[i]);
    }
    stack_pool_destroy(bench->pool);
    bench->pool = NULL;
    helper_loop_expect_idle(&bench->children);
    rmdir(bench->mark);
    return late;
}

/* Whoever is silent keeps one process; it is killed at the deadline. On a busy machine, the other
 * helpers need a later one. */
static void test_a_helper_that_is_silent(void **state)
{
    size_t late = 0;
    for (int64_t limit_ms = 1000; late != 1 && limit_ms < LONG_MS; limit_ms *= 2) {
        late = count_late(*state, limit_ms);
        assert_true(late > 0);
    }
    assert_int_equal(late, 1);
}

static void test_helpers_that_talk_nonsense(void **state)
{
    struct bench *bench = *state;
    use(bench, "printf '\\004\\000\\000\\000\\377\\377\\377\\377'; exec sleep 1000");
    bench->items[0].pid = getpid();
    look(bench, 1, false, SHORT_MS);
    assert_null(bench->items[0].answer);
    stack_item_clear(&bench->items[0]);
    stack_pool_destroy(bench->pool);
    use(bench, "printf '\\377\\377\\377\\377\\377'; exec sleep 1000");
    look(bench, 1, false, SHORT_MS);
    assert_null(bench->items[0].answer);
}

static void test_no_program(void **state)
{
    struct bench *bench = *state;
    bench->pool = stack_pool_create(bench->children.loop, bench->children.helpers, bench->program);
    bench->items[0].pid = getpid();
    look(bench, 1, false, LONG_MS);
    assert_null(bench->items[0].answer);
    assert_non_null(strstr(bench->items[0].why, "cannot execute"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_many_processes, open_bench, close_bench),
        cmocka_unit_test_setup_teardown(test_nothing_and_too_late, open_bench, close_bench),
        cmocka_unit_test_setup_teardown(test_a_message, open_bench, close_bench),
        cmocka_unit_test_setup_teardown(test_much_text, open_bench, close_bench),
        cmocka_unit_test_setup_teardown(test_given_up, open_bench, close_bench),
        cmocka_unit_test_setup_teardown(test_native_frames, open_bench, close_bench),
        cmocka_unit_test_setup_teardown(test_what_is_whole, open_bench, close_bench),
        cmocka_unit_test_setup_teardown(test_helpers_that_die, open_bench, close_bench),
        cmocka_unit_test_setup_teardown(test_a_helper_that_dies_once, open_bench, close_bench),
        cmocka_unit_test_setup_teardown(test_a_helper_that_is_silent, open_bench, close_bench),
        cmocka_unit_test_setup_teardown(test_helpers_that_talk_nonsense, open_bench, close_bench),
        cmocka_unit_test_setup_teardown(test_no_program, open_bench, close_bench),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
