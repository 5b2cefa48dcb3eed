/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../stacks/python_child.h"
#include "agent/rank_stacks.h"
#include "agent/stack_readers.h"
#include "base/clock.h"
#include "base/mem.h"
#include "stacks/native.h"
#include "stacks/stack.h"

#define SECOND ((int64_t)1000000000)
#define MANY 200

/* As the agent does it, whose loop goes on meanwhile. */
static void read_all(struct stack_item *items, size_t count, int64_t deadline_ns)
{
    struct held_readers *held = held_readers_create();
    struct stack_readers *readers = stack_readers_create(items, count, held, NULL, deadline_ns);
    while (!stack_readers_advance(readers))
        usleep(1000);
    stack_readers_end(readers, items);
    held_readers_leave(held);
}

static void fill(const pid_t *pids, const struct unwind_module *module,
                 Hvdrun__StateReport *message)
{
    struct held_readers *held = held_readers_create();
    struct descendants_table *processes = descendants_table_read(1000);
    struct rank_stacks *stacks =
        rank_stacks_create(pids, message->n_seats, processes, held, module);
    while (!rank_stacks_advance(stacks))
        usleep(1000);
    rank_stacks_fill(stacks, message);
    rank_stacks_destroy(stacks);
    descendants_table_destroy(processes);
    held_readers_leave(held);
}

static void test_many_processes(void **state)
{
    (void)state;
    const char *python = python_program();
    pid_t pid = python != NULL ? python_child(python, PYTHON_PROGRAM, true) : -1;
    if (pid < 0)
        skip();
    struct stack_item items[MANY];
    for (size_t i = 0; i < MANY; i++)
        items[i] = (struct stack_item){.rank = i, .pid = i % 2 == 0 ? pid : getpid()};
    read_all(items, MANY, clock_mono_ns() + 30 * SECOND);
    for (size_t i = 0; i < MANY; i++) {
        assert_true(items[i].done);
        assert_int_equal(items[i].rank, i);
        assert_int_equal(items[i].python, i % 2 == 0);
        assert_int_equal(items[i].stacks.count, i % 2 == 0 ? 2 : 0);
        process_stacks_destroy(&items[i].stacks);
    }
    python_child_end(pid);
}

static void test_nothing_and_too_late(void **state)
{
    (void)state;
    struct stack_item items[MANY] = {{.pid = 0}};
    read_all(items, 0, clock_mono_ns() + SECOND);
    for (size_t i = 0; i < MANY; i++)
        items[i].pid = getpid();
    read_all(items, MANY, clock_mono_ns() - SECOND);
    for (size_t i = 0; i < MANY; i++)
        assert_false(items[i].done);
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
    (void)state;
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
    for (int i = 0; i < 500 && !has_all(&message); i++) {
        rank_stacks_free(&message);
        fill(pids, NULL, &message);
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
    python_child_end(shell);
    python_child_end(sleeper);
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
    (void)state;
    const char *python = python_program();
    pid_t pid = python != NULL ? python_child(python, DEEP_PROGRAM, true) : -1;
    if (pid < 0)
        skip();
    uint32_t seat = 7;
    Hvdrun__StateReport message = HVDRUN__STATE_REPORT__INIT;
    message.seats = &seat;
    message.n_seats = 1;
    for (int i = 0; i < 500 && text_of(&message) < 30000; i++) {
        rank_stacks_free(&message);
        fill(&pid, NULL, &message);
        usleep(20000);
    }
    assert_in_range(text_of(&message), 30000, 65536);
    rank_stacks_free(&message);
    python_child_end(pid);
}

/* The answer can be given up at any time, also in an ended agent. */
static void test_given_up(void **state)
{
    (void)state;
    const char *python = python_program();
    pid_t pid = python != NULL ? python_child(python, PYTHON_PROGRAM, true) : -1;
    if (pid < 0)
        skip();
    for (int i = 0; i < 20; i++) {
        struct held_readers *held = held_readers_create();
        struct descendants_table *processes = descendants_table_read(1000);
        struct rank_stacks *stacks = rank_stacks_create(&pid, 1, processes, held, NULL);
        usleep((useconds_t)(i * 50));
        rank_stacks_destroy(stacks);
        descendants_table_destroy(processes);
        held_readers_leave(held);
    }
    python_child_end(pid);
}

/* As if the kernel held a reader: it began, and is late. */
static void test_a_held_reader(void **state)
{
    (void)state;
    struct held_readers *held = held_readers_create();
    const int64_t past = clock_mono_ns() - 1, later = clock_mono_ns() + 1000 * SECOND;
    pid_t pid = python_child_run("/bin/sh", "-c", "echo; exec sleep 1000", "");
    int place = held_readers_begin(held, pid, past);
    assert_int_equal(place, 0);
    assert_int_equal(held_readers_begin(held, pid, later), -1);
    uint32_t seats[] = {7};
    Hvdrun__StateReport message = HVDRUN__STATE_REPORT__INIT;
    message.seats = seats;
    message.n_seats = 1;
    struct descendants_table *processes = descendants_table_read(1000);
    struct rank_stacks *stacks = rank_stacks_create(&pid, 1, processes, held, NULL);
    descendants_table_destroy(processes);
    while (!rank_stacks_advance(stacks)) /* at once: nobody waits for it */
        usleep(1000);
    rank_stacks_fill(stacks, &message);
    rank_stacks_destroy(stacks);
    assert_int_equal(message.n_stacks, 1);
    assert_string_equal(strrchr(message.stacks[0]->trouble, ';'),
                        "; its memory cannot be read, most likely because a file system or swap "
                        "space does not answer");
    rank_stacks_free(&message);
    held_readers_done(held, place);
    assert_int_equal(held_readers_begin(held, pid, later), 0);
    assert_int_equal(held_readers_begin(held, pid, later), 1); /* two looks at a time */
    for (int i = 2; i < HELD_READERS_MAX; i++)
        assert_int_equal(held_readers_begin(held, pid + i, past), i);
    assert_int_equal(held_readers_begin(held, pid - 1, later), -1);
    held_readers_leave(held_readers_share(held));
    held_readers_leave(held);
    held_readers_leave(NULL);
    python_child_end(pid);
}

/* Seat 7 is Python, seat 8 is not. The first waits in C below its Python frame. */
/* Since glibc 2.41, it calls functions of its own for the system call. */
static bool sleeps(const Hvdrun__PythonStack *stack)
{
    bool found = false;
    for (size_t i = 0; i < stack->n_frames && !found; i++)
        found = stack->frames[i]->native && strstr(stack->frames[i]->function, "nanosleep") != NULL;
    return found;
}

static void test_native_frames(void **state)
{
    (void)state;
    const struct unwind_module *module = native_load(HVDRUN_UNWIND_MODULE, NULL);
    const char *python = python_program();
    pid_t pid = python != NULL ? python_child(python, PYTHON_PROGRAM, true) : -1;
    if (pid < 0)
        skip();
    pid_t sleeper = python_child_run("/bin/sh", "-c", "echo; exec sleep 1000", "");
    python_child_settle(sleeper);
    uint32_t seats[] = {7, 8};
    const pid_t pids[] = {pid, sleeper};
    Hvdrun__StateReport message = HVDRUN__STATE_REPORT__INIT;
    message.seats = seats;
    message.n_seats = 2;
    fill(pids, module, &message);
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
    rank_stacks_free(&message);
    python_child_end(pid);
    python_child_end(sleeper);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_many_processes, python_children_end),
        cmocka_unit_test_teardown(test_nothing_and_too_late, python_children_end),
        cmocka_unit_test_teardown(test_a_message, python_children_end),
        cmocka_unit_test_teardown(test_much_text, python_children_end),
        cmocka_unit_test_teardown(test_given_up, python_children_end),
        cmocka_unit_test_teardown(test_a_held_reader, python_children_end),
        cmocka_unit_test_teardown(test_native_frames, python_children_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
