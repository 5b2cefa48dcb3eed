/* SPDX-License-Identifier: Apache-2.0 */
/* Native frames that come to Python frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "stacks/native_test.h"
#include "stacks/tasks.h"

/* From a list of functions, the innermost first, that ends with NULL. */
static struct native_thread thread_of(pid_t tid, bool whole, const char *const *functions)
{
    struct native_thread thread = {.tid = tid, .whole = whole};
    for (; functions[thread.count] != NULL; thread.count++) {
        thread.frames = mem_resize_array(thread.frames, thread.count + 1, sizeof(*thread.frames));
        thread.frames[thread.count] =
            (struct stack_frame){.function = mem_strdup(functions[thread.count]),
                                 .file = mem_strdup("/lib/x.so"),
                                 .native = true};
    }
    return thread;
}

static struct native_stacks stacks_of(struct native_thread thread)
{
    return (struct native_stacks){.threads = mem_dup(&thread, sizeof(thread)), .count = 1};
}

static void add_python_thread(struct process_stacks *stacks, pid_t tid, const char *function)
{
    struct stack_frame frame = {.function = mem_strdup(function), .file = mem_strdup("a.py")};
    struct process_thread thread = {
        .tid = tid, .main = true, .frames = mem_dup(&frame, sizeof(frame)), .count = 1};
    stacks->threads = mem_dup(&thread, sizeof(thread));
    stacks->count = 1;
}

static void check(const struct process_thread *thread, const char *expected)
{
    char text[4096] = "";
    for (size_t i = 0; i < thread->count; i++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof(text) - length, "%s%s", i > 0 ? " " : "",
                 thread->frames[i].function);
    }
    assert_string_equal(text, expected);
}

static void test_above_the_interpreter(void **state)
{
    (void)state;
    static const char *const functions[] = {
        "futex", "wait", "_PyEval_EvalFrameDefault", "call", "_PyEval_EvalFrameDefault",
        "main",  NULL};
    struct process_stacks stacks = {.minor = 11};
    struct native_stacks native = stacks_of(thread_of(getpid(), true, functions));
    add_python_thread(&stacks, getpid(), "step");
    process_native_add(&rights_own, getpid(), &native, &stacks);
    assert_int_equal(stacks.count, 1);
    check(&stacks.threads[0], "step wait futex");
    assert_false(stacks.threads[0].frames[0].native);
    assert_true(stacks.threads[0].frames[1].native);
    native_stacks_destroy(&native);
    process_stacks_destroy(&stacks);
}

static void test_an_interpreter_without_names(void **state)
{
    (void)state;
    static const char *const functions[] = {"futex", "+0x10", "+0x20", NULL};
    struct process_stacks stacks = {.minor = 11};
    struct native_stacks native = stacks_of(thread_of(getpid(), false, functions));
    add_python_thread(&stacks, getpid(), "step");
    process_native_add(&rights_own, getpid(), &native, &stacks);
    check(&stacks.threads[0], "step (more frames) +0x20 +0x10 futex");
    native_stacks_destroy(&native);
    process_stacks_destroy(&stacks);
}

static void test_no_python(void **state)
{
    (void)state;
    static const char *const functions[] = {"MPI_Barrier", "main", "__libc_start_main", "_start",
                                            NULL};
    struct process_stacks stacks = {.minor = -1};
    struct native_stacks native = stacks_of(thread_of(getpid(), true, functions));
    native.trouble = mem_strdup("a thread that runs cannot be stopped");
    process_native_add(&rights_own, getpid(), &native, &stacks);
    assert_int_equal(stacks.count, 1);
    assert_true(stacks.threads[0].main);
    check(&stacks.threads[0], "main MPI_Barrier");
    assert_string_equal(stacks.remark, "a thread that runs cannot be stopped");
    native_stacks_destroy(&native);
    process_stacks_destroy(&stacks);
}

static void test_a_long_stack(void **state)
{
    (void)state;
    const char *functions[102] = {NULL};
    char names[101][16];
    for (int i = 0; i <= 100; i++) {
        snprintf(names[i], sizeof(names[i]), "f%d", i);
        functions[i] = names[i];
    }
    struct process_stacks stacks = {.minor = -1};
    struct native_stacks native = stacks_of(thread_of(getpid(), true, functions));
    process_native_add(&rights_own, getpid(), &native, &stacks);
    const struct process_thread *thread = &stacks.threads[0];
    assert_int_equal(thread->count, PROCESS_NATIVE_FRAMES_MAX + 1);
    assert_string_equal(thread->frames[0].function, "f100");
    assert_string_equal(thread->frames[10].function, "(61 frames)");
    assert_string_equal(thread->frames[11].function, "f29");
    assert_string_equal(thread->frames[thread->count - 1].function, "f0");
    native_stacks_destroy(&native);
    process_stacks_destroy(&stacks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_above_the_interpreter),
        cmocka_unit_test(test_an_interpreter_without_names),
        cmocka_unit_test(test_no_python),
        cmocka_unit_test(test_a_long_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
