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
#include "stacks/stack.h"

#define SECOND ((int64_t)1000000000)
#define MANY 200

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
    stack_readers_run(items, MANY, clock_mono_ns() + 30 * SECOND);
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
    stack_readers_run(NULL, 0, 0);
    for (size_t i = 0; i < MANY; i++)
        items[i].pid = getpid();
    stack_readers_run(items, MANY, clock_mono_ns() - SECOND);
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
        rank_stacks_fill(pids, &message);
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
    kill(-shell, SIGKILL);
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
        rank_stacks_fill(&pid, &message);
        usleep(20000);
    }
    assert_in_range(text_of(&message), 30000, 65536);
    rank_stacks_free(&message);
    python_child_end(pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_processes),
        cmocka_unit_test(test_nothing_and_too_late),
        cmocka_unit_test(test_a_message),
        cmocka_unit_test(test_much_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
