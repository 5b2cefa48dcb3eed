/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "features/warm/kind.h"

/* `python3 -u a.py x` with this environment. */
static struct child_spec spec_of(const char *const *envp, const char *wdir)
{
    static const char *const argv[] = {"python3", "-u", "a.py", "x", NULL};
    return (struct child_spec){.path = "/usr/bin/python3",
                               .argv = (char *const *)argv,
                               .envp = (char *const *)envp,
                               .wdir = wdir};
}

static const char *read_kind(const char *const *envp, const char *wdir, struct warm_kind *out)
{
    struct warm_command command;
    struct child_spec spec = spec_of(envp, wdir);
    assert_null(warm_command_read(spec.path, spec.argv, &command));
    return warm_kind_read(&spec, &command, out);
}

static bool is_kind(const struct warm_kind *kind, const struct child_spec *spec)
{
    struct warm_command command;
    assert_null(warm_command_read(spec->path, spec->argv, &command));
    return warm_kind_is(kind, spec, &command);
}

static bool is_same(const char *const *a, const char *const *b, const char *wdir)
{
    struct warm_kind one;
    struct child_spec other = spec_of(b, wdir);
    assert_null(read_kind(a, "/w", &one));
    bool same = is_kind(&one, &other);
    warm_kind_destroy(&one);
    return same;
}

#define ENV(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_ranks_of_one_kind(void **state)
{
    (void)state;
    const char *const *first = ENV("HOME=/h", "RANK=0", "LOCAL_RANK=0", "MASTER_PORT=1",
                                   "CUDA_VISIBLE_DEVICES=0", "PMI_FD=4", "SHLVL=1");
    const char *const *second =
        ENV("HOME=/h", "RANK=1", "LOCAL_RANK=1", "MASTER_PORT=2", "CUDA_VISIBLE_DEVICES=1");
    assert_true(is_same(first, second, "/w"));
    assert_false(is_same(first, second, "/other"));
    assert_false(is_same(first, second, NULL));
    assert_false(is_same(first, ENV("HOME=/h", "RANK=1", "OMP_NUM_THREADS=2"), "/w"));
    assert_false(is_same(first, ENV("HOME=/other", "RANK=1"), "/w"));
    assert_false(is_same(first, ENV("RANK=1"), "/w"));
    assert_false(is_same(first, ENV("HOME=/h", "OMP_PLACES=cores"), "/w"));
}

static void test_other_command_lines(void **state)
{
    static const char *const lines[][6] = {{"python3", "a.py", "x"},
                                           {"python3", "-O", "a.py", "x"},
                                           {"python3", "-u", "-O", "a.py"},
                                           {"python3", "-u", "b.py", "x"},
                                           {"python3", "-u", "-m", "a.py"}};
    struct warm_kind kind;
    struct child_spec spec = spec_of(ENV("HOME=/h"), "/w");
    (void)state;
    assert_null(read_kind(ENV("HOME=/h"), "/w", &kind));
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        spec.argv = (char *const *)(uintptr_t)lines[i];
        assert_false(is_kind(&kind, &spec));
    }
    spec.argv = (char *const *)(uintptr_t)ENV("python3", "-u", "a.py", "y", "z");
    assert_true(is_kind(&kind, &spec));
    spec.path = "/opt/python3";
    assert_false(is_kind(&kind, &spec));
    warm_kind_destroy(&kind);
}

/* What the mother must not have: with it, a module would see the rank of another one. */
static void test_variables_of_ranks(void **state)
{
    struct warm_kind kind;
    (void)state;
    assert_null(read_kind(
        ENV("A=1", "HVDRUN_RANK=3", "TORCHELASTIC_ERROR_FILE=/x", "SLURM_PROCID=3"), NULL, &kind));
    assert_int_equal(kind.env.count, 1);
    assert_string_equal(kind.env.items[0], "A=1");
    assert_true(kind.names.count > 3); /* with those of shells */
    assert_string_equal(kind.names.items[0], "HVDRUN_RANK");
    assert_int_equal(kind.interpreter.count, 2);
    assert_string_equal(kind.target, "a.py");
    warm_kind_destroy(&kind);
}

static void test_variables_that_bind_the_interpreter(void **state)
{
    struct warm_kind kind;
    (void)state;
    assert_non_null(read_kind(ENV("OMP_PROC_BIND=true"), NULL, &kind));
    assert_non_null(read_kind(ENV("PYTHONINSPECT=1"), NULL, &kind));
}

static void test_a_kind_goes_through_bytes(void **state)
{
    AUTO_BUF struct buf bytes = BUF_INIT(1000), again = BUF_INIT(1000);
    struct warm_kind kind, copy;
    struct child_spec spec = spec_of(ENV("A=1", "B=", "RANK=3"), "/w");
    (void)state;
    assert_null(read_kind((const char *const *)spec.envp, "/w", &kind));
    warm_kind_write(&kind, &bytes);
    struct field_reader fields = {buf_text(&bytes), buf_text(&bytes) + bytes.length};
    warm_kind_take(&fields, &copy);
    assert_ptr_equal(fields.at, fields.end);
    assert_true(is_kind(&copy, &spec));
    warm_kind_write(&copy, &again);
    assert_int_equal(again.length, bytes.length);
    assert_memory_equal(buf_text(&again), buf_text(&bytes), bytes.length);
    for (size_t cut = 0; cut < bytes.length; cut++) { /* it is never read behind its end */
        warm_kind_destroy(&copy);
        fields = (struct field_reader){buf_text(&bytes), buf_text(&bytes) + cut};
        warm_kind_take(&fields, &copy);
    }
    warm_kind_destroy(&copy);
    warm_kind_destroy(&kind);
}

/* Another job has a variable of ranks more: a module could have read it, unseen. */
static void test_variables_that_it_does_not_know(void **state)
{
    struct warm_kind kind;
    struct child_spec spec = spec_of(ENV("A=1", "LOCAL_RANK=0"), NULL);
    (void)state;
    assert_null(read_kind(ENV("A=1", "RANK=3", "LOCAL_RANK=1"), NULL, &kind));
    assert_true(warm_kind_knows(&kind, &spec));
    spec.envp = (char *const *)(uintptr_t)ENV("A=1", "OLDPWD=/", "LOCAL_RANK=0");
    assert_true(warm_kind_knows(&kind, &spec));
    spec.envp = (char *const *)(uintptr_t)ENV("A=1", "LOCAL_RANK=0", "SLURM_PROCID=1");
    assert_true(is_kind(&kind, &spec));
    assert_false(warm_kind_knows(&kind, &spec));
    warm_kind_destroy(&kind);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranks_of_one_kind),
                                       cmocka_unit_test(test_other_command_lines),
                                       cmocka_unit_test(test_variables_of_ranks),
                                       cmocka_unit_test(test_variables_that_bind_the_interpreter),
                                       cmocka_unit_test(test_a_kind_goes_through_bytes),
                                       cmocka_unit_test(test_variables_that_it_does_not_know)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
