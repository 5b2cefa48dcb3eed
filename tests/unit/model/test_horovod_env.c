/* SPDX-License-Identifier: Apache-2.0 */
/* Every horovodrun flag with a variable: option and value in, variables out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/env/horovod.h"

/* `more` is a second option that the first needs; `expected` holds all variables in order. */
static const struct {
    enum option_id id;
    const char *value;
    enum option_id more;
    const char *more_value;
    const char *expected;
} cases[] = {
#define ONE OPT_TOTAL, NULL
    {OPT_fusion_threshold_mb, "32", ONE, "HOROVOD_FUSION_THRESHOLD=33554432"},
    {OPT_fusion_threshold_mb, "0", ONE, "HOROVOD_FUSION_THRESHOLD=0"},
    {OPT_fusion_threshold_mb, "4096", ONE, "HOROVOD_FUSION_THRESHOLD=4294967296"},
    {OPT_cycle_time_ms, "2.5", ONE, "HOROVOD_CYCLE_TIME=2.5"},
    {OPT_cycle_time_ms, "5", ONE, "HOROVOD_CYCLE_TIME=5"},
    {OPT_cycle_time_ms, "0.1", ONE, "HOROVOD_CYCLE_TIME=0.1"},
    {OPT_cache_capacity, "2048", ONE, "HOROVOD_CACHE_CAPACITY=2048"},
    {OPT_cache_capacity, "0", ONE, "HOROVOD_CACHE_CAPACITY=0"},
    {OPT_hierarchical_allreduce, "yes", ONE, "HOROVOD_HIERARCHICAL_ALLREDUCE=1"},
    {OPT_hierarchical_allreduce, "no", ONE, "HOROVOD_HIERARCHICAL_ALLREDUCE=0"},
    {OPT_hierarchical_allgather, "yes", ONE, "HOROVOD_HIERARCHICAL_ALLGATHER=1"},
    {OPT_hierarchical_allgather, "no", ONE, "HOROVOD_HIERARCHICAL_ALLGATHER=0"},
    {OPT_torus_allreduce, "yes", ONE, "HOROVOD_TORUS_ALLREDUCE=1"},
    {OPT_torus_allreduce, "no", ONE, "HOROVOD_TORUS_ALLREDUCE=0"},
    {OPT_autotune, "yes", ONE, "HOROVOD_AUTOTUNE=1"},
    {OPT_autotune, "no", ONE, "HOROVOD_AUTOTUNE=0"},
    {OPT_autotune_log_file, "f.csv", ONE, ""},
    {OPT_autotune_log_file, "f.csv", OPT_autotune, "no", "HOROVOD_AUTOTUNE=0"},
    {OPT_autotune_log_file, "f.csv", OPT_autotune, "yes",
     "HOROVOD_AUTOTUNE=1 HOROVOD_AUTOTUNE_LOG=f.csv"},
    {OPT_autotune_warmup_samples, "5", OPT_autotune, "yes",
     "HOROVOD_AUTOTUNE=1 HOROVOD_AUTOTUNE_WARMUP_SAMPLES=5"},
    {OPT_autotune_steps_per_sample, "20", OPT_autotune, "yes",
     "HOROVOD_AUTOTUNE=1 HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE=20"},
    {OPT_autotune_bayes_opt_max_samples, "50", OPT_autotune, "yes",
     "HOROVOD_AUTOTUNE=1 HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES=50"},
    {OPT_autotune_gaussian_process_noise, "0.9", OPT_autotune, "yes",
     "HOROVOD_AUTOTUNE=1 HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE=0.9"},
    {OPT_timeline_filename, "t.json", ONE, "HOROVOD_TIMELINE=t.json"},
    {OPT_timeline_mark_cycles, "yes", ONE, ""},
    {OPT_timeline_mark_cycles, "yes", OPT_timeline_filename, "t.json",
     "HOROVOD_TIMELINE=t.json HOROVOD_TIMELINE_MARK_CYCLES=1"},
    {OPT_timeline_mark_cycles, "no", OPT_timeline_filename, "t.json",
     "HOROVOD_TIMELINE=t.json HOROVOD_TIMELINE_MARK_CYCLES=0"},
    {OPT_stall_check, "no", ONE, "HOROVOD_STALL_CHECK_DISABLE=1"},
    {OPT_stall_check, "yes", ONE, "HOROVOD_STALL_CHECK_DISABLE=0"},
    {OPT_stall_check_warning_time_seconds, "120", ONE, "HOROVOD_STALL_CHECK_TIME_SECONDS=120"},
    {OPT_stall_check_shutdown_time_seconds, "240", ONE, "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=240"},
    {OPT_mpi_threads_disable, "yes", ONE, "HOROVOD_MPI_THREADS_DISABLE=1"},
    {OPT_mpi_threads_disable, "no", ONE, "HOROVOD_MPI_THREADS_DISABLE=0"},
    {OPT_num_nccl_streams, "2", ONE, "HOROVOD_NUM_NCCL_STREAMS=2"},
    {OPT_tcp, "yes", ONE, "NCCL_IB_DISABLE=1 OMPI_MCA_pml=ob1 OMPI_MCA_btl=^openib"},
    {OPT_thread_affinity, "1", ONE, "HOROVOD_THREAD_AFFINITY=1"},
    {OPT_gloo_timeout_seconds, "60", ONE, "HOROVOD_GLOO_TIMEOUT_SECONDS=60"},
    {OPT_log_level, "TRACE", ONE, "HOROVOD_LOG_LEVEL=TRACE"},
    {OPT_log_level, "FATAL", ONE, "HOROVOD_LOG_LEVEL=FATAL"},
    {OPT_log_with_timestamp, "yes", ONE, "HOROVOD_LOG_HIDE_TIME=0"},
    {OPT_log_with_timestamp, "no", ONE, "HOROVOD_LOG_HIDE_TIME=1"},
    /* options of the launcher set nothing */
    {OPT_np, "4", ONE, ""},
    {OPT_start_timeout, "60", ONE, ""},
};

static void join(const struct strv *out, struct buf *text)
{
    for (size_t i = 0; i < out->count; i++)
        assert_int_equal(buf_printf(text, "%s%s", i > 0 ? " " : "", out->items[i]), 0);
}

static void test_each_flag(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct settings settings;
        struct error err = ERROR_INIT;
        struct strv out AUTO_STRV = STRV_INIT;
        struct buf text AUTO_BUF = BUF_INIT(4096);
        settings_init(&settings);
        assert_int_equal(
            settings_set(&settings, cases[i].id, cases[i].value, SOURCE_FLAG, "test", &err), 0);
        if (cases[i].more != OPT_TOTAL)
            assert_int_equal(settings_set(&settings, cases[i].more, cases[i].more_value,
                                          SOURCE_FLAG, "test", &err),
                             0);
        horovod_env_build(&settings, &out);
        join(&out, &text);
        assert_string_equal(buf_text(&text), cases[i].expected);
        settings_destroy(&settings);
    }
}

/* Each option of the two Horovod groups is in the table above: a new one needs its variable. */
static void test_all_flags_are_in_the_table(void **state)
{
    (void)state;
    for (enum option_id id = 0; id < OPT_TOTAL; id++) {
        enum option_group group = option_info(id)->group;
        size_t i = 0;
        while (i < sizeof(cases) / sizeof(cases[0]) && cases[i].id != id)
            i++;
        if ((group == GROUP_TUNE || group == GROUP_HOROVOD) &&
            i == sizeof(cases) / sizeof(cases[0]))
            fail_msg("--%s has no case", option_info(id)->field);
    }
}

static void test_nothing_given(void **state)
{
    (void)state;
    struct settings settings;
    struct strv out AUTO_STRV = STRV_INIT;
    settings_init(&settings);
    horovod_env_build(&settings, &out);
    assert_int_equal(out.count, 0);
    settings_destroy(&settings);
}

static void assert_package(const char *word, const char *expected)
{
    struct settings settings;
    struct strv out AUTO_STRV = STRV_INIT;
    struct buf text AUTO_BUF = BUF_INIT(4096);
    struct error err = ERROR_INIT;
    settings_init(&settings);
    if (word != NULL)
        assert_int_equal(settings_set(&settings, OPT_horovod, word, SOURCE_FLAG, "test", &err), 0);
    horovod_env_package(&settings, "/m", &out);
    join(&out, &text);
    assert_string_equal(buf_text(&text), expected);
    settings_destroy(&settings);
}

static void test_package(void **state)
{
    (void)state;
    assert_package(NULL, "HVDRUN_HOROVOD=auto HVDRUN_HOROVOD_PATH=/m/python");
    assert_package("bundled", "HVDRUN_HOROVOD=bundled HVDRUN_HOROVOD_PATH=/m/python");
    assert_package("none", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_flag),
        cmocka_unit_test(test_all_flags_are_in_the_table),
        cmocka_unit_test(test_nothing_given),
        cmocka_unit_test(test_package),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
