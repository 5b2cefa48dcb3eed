/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a stack is in a call of torch.distributed, or certainly in none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "features/hang/place_frame.h"

#define DIST "/usr/lib/python3/dist-packages/torch/distributed/"
#define RECORD DIST "elastic/multiprocessing/errors/__init__.py"
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static enum torch_call call(const struct stack_frame *frames, size_t count, const char *doing)
{
    return torch_call_of(
        &(struct stack){.role = STACK_MAIN, .doing = doing, .frames = frames, .count = count});
}

static void test_waits(void **state)
{
    (void)state;
    const struct stack_frame frames[] = {{"<module>", "/x/train.py", 9, false},
                                         {"wrapper", DIST "c10d_logger.py", 81, false},
                                         {"all_reduce", DIST "distributed_c10d.py", 2810, false},
                                         {"poll", "/lib/libc.so.6", 0, true}};
    assert_int_equal(call(frames, 3, "calls futex"), TORCH_CALL_WAITS);
    assert_int_equal(call(frames, 3, "running"), TORCH_CALL_WAITS);
    assert_int_equal(call(frames, 4, "calls poll"), TORCH_CALL_WAITS);
    assert_int_equal(call(frames, 3, "calls clock_nanosleep, waits in x"), TORCH_CALL_WAITS);
    assert_int_equal(call(frames, 2, "calls futex"), TORCH_CALL_UNKNOWN);
    const struct stack_frame import[] = {
        frames[0], frames[2], {"_find", "<frozen importlib._bootstrap>", 1, false}};
    assert_int_equal(call(import, 3, "calls openat on nfs4"), TORCH_CALL_UNKNOWN);
    assert_int_equal(call(import, 3, "calls openat2"), TORCH_CALL_UNKNOWN);
    const struct stack_frame other[] = {
        frames[0], {"all_reduce", "/x/torch/distributed/nn/distributed_c10d.py", 1, false}};
    assert_int_equal(call(other, 2, "calls futex"), TORCH_CALL_UNKNOWN);
    const struct stack_frame reducer[] = {frames[0], frames[2], {"op", "/x/train.py", 3, false}};
    assert_int_equal(call(reducer, 3, "calls futex"), TORCH_CALL_UNKNOWN);
    const struct stack_frame held = frames[2];
    assert_int_equal(torch_call_of(&(struct stack){
                         .doing = "stopped (SIGSTOP)", .held = true, .frames = &held, .count = 1}),
                     TORCH_CALL_UNKNOWN);
}

static void test_none(void **state)
{
    (void)state;
    const struct stack_frame frames[] = {{"wrapper", RECORD, 346, false},
                                         {"load", "/x/train.py", 9, false}};
    static const char *const certain[] = {"calls clock_nanosleep, waits in hrtimer_nanosleep",
                                          "calls openat", "calls openat2", "calls read on nfs4",
                                          "calls pread64"};
    /* in compiled code, they may be in a call of it */
    static const char *const unknown[] = {"running",
                                          "calls futex",
                                          "calls recvfrom",
                                          "calls poll",
                                          "calls readv",
                                          "calls wait4",
                                          "",
                                          "waits in x",
                                          "stopped (SIGSTOP)",
                                          "calls futex_waitv",
                                          "calls readahead",
                                          "calls openat3"};
    for (size_t i = 0; i < COUNT(certain); i++)
        assert_int_equal(call(frames, 2, certain[i]), TORCH_CALL_NONE);
    for (size_t i = 0; i < COUNT(unknown); i++)
        assert_int_equal(call(frames, 2, unknown[i]), TORCH_CALL_UNKNOWN);
    const struct stack_frame part[] = {{STACK_MORE_FRAMES, "", 0, false}, frames[1]};
    assert_int_equal(call(part, 2, certain[0]), TORCH_CALL_UNKNOWN);
    const struct stack_frame gap[] = {frames[0], {"(7 frames)", "", 0, false}, frames[1]};
    assert_int_equal(call(gap, 3, certain[0]), TORCH_CALL_UNKNOWN);
    assert_int_equal(call(frames, 0, certain[0]), TORCH_CALL_UNKNOWN);
    const struct stack_frame hook[] = {frames[1],
                                       {"broadcast_object_list", DIST "distributed_c10d.py", 1, 0},
                                       {"reduce", "/x/data.py", 3, false}};
    assert_int_equal(call(hook, 3, certain[0]), TORCH_CALL_UNKNOWN);
    const struct stack_frame process = {"process train", "", 0, false};
    assert_int_equal(torch_call_of(&(struct stack){
                         .doing = certain[0], .bare = true, .frames = &process, .count = 1}),
                     TORCH_CALL_UNKNOWN);
}

static void test_other_threads(void **state)
{
    (void)state;
    const struct stack_frame frames[] = {{"wait", "/usr/lib/python3.11/threading.py", 9, false},
                                         {"barrier", DIST "distributed_c10d.py", 3, false}};
    struct stack stack = {
        .role = STACK_OTHER, .doing = "calls futex", .frames = frames, .count = 1};
    assert_false(torch_call_is_possible(&stack));
    stack.count = 2;
    assert_true(torch_call_is_possible(&stack));
    stack.count = 0; /* it could not be read */
    assert_true(torch_call_is_possible(&stack));
}

/* Such as work.wait() or loss.backward(). */
static void test_compiled_code_of_other_threads(void **state)
{
    (void)state;
    const struct stack_frame run = {"run", "/usr/lib/python3.11/threading.py", 9, false};
    const struct stack_frame frames[] = {run, {"step", "/x/train.py", 3, false}};
    const struct stack_frame idle[] = {run, {"get", "/usr/lib/python3.11/queue.py", 5, false}};
    static const struct {
        const char *doing;
        bool possible;
    } cases[] = {{"calls futex", true},   {"running", true},     {"", true},
                 {"calls poll", true},    {"calls read", false}, {"calls clock_nanosleep", false},
                 {"calls recvfrom", true}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct stack stack = {
            .role = STACK_CHILD, .doing = cases[i].doing, .frames = frames, .count = 2};
        assert_int_equal(torch_call_is_possible(&stack), cases[i].possible);
        stack.count = 1; /* Thread(target=work.wait) */
        assert_int_equal(torch_call_is_possible(&stack), cases[i].possible);
        stack.count = 2;
        stack.frames = idle;
        assert_false(torch_call_is_possible(&stack));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_other_threads),
        cmocka_unit_test(test_compiled_code_of_other_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
