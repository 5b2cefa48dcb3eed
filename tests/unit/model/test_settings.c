/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "model/settings/settings.h"

static void set(struct settings *settings, enum option_id id, const char *text,
                enum setting_source source)
{
    struct error err = ERROR_INIT;
    if (settings_set(settings, id, text, source, "here", &err) < 0)
        fail_msg("%s", err.text);
}

static void refused(enum option_id id, const char *text, const char *expected)
{
    struct settings settings;
    struct error err = ERROR_INIT;
    settings_init(&settings);
    assert_int_equal(settings_set(&settings, id, text, SOURCE_FLAG, "here", &err), -1);
    assert_string_equal(err.text, expected);
    assert_false(settings_is_set(&settings, id));
    settings_destroy(&settings);
}

/* What settings_format() says of any option, settings_set() takes back unchanged. */
static void test_round_trip(void **state)
{
    (void)state;
    struct settings a, b;
    settings_init(&a);
    settings_init(&b);
    set(&a, OPT_np, "12", SOURCE_FLAG);
    set(&a, OPT_hosts, "a:1", SOURCE_FLAG);
    set(&a, OPT_timeout, "1.25", SOURCE_FLAG);
    set(&a, OPT_blacklist_cooldown_range, "500ms,1m", SOURCE_FLAG);
    set(&a, OPT_cycle_time_ms, "0.1", SOURCE_FLAG);
    set(&a, OPT_autotune, "off", SOURCE_FLAG);
    set(&a, OPT_stdin_, "all", SOURCE_FLAG);
    set(&a, OPT_log_level, "info", SOURCE_FLAG);
    set(&a, OPT_verbose, "yes", SOURCE_FLAG);
    for (int i = 0; i < OPT_TOTAL; i++) {
        enum option_id id = (enum option_id)i;
        struct buf first AUTO_BUF = BUF_INIT(4096), second AUTO_BUF = BUF_INIT(4096);
        if (settings_format(&a, id, &first) < 0) {
            assert_int_equal(first.length, 0);
            continue;
        }
        set(&b, id, buf_text(&first), SOURCE_FLAG);
        assert_int_equal(settings_format(&b, id, &second), 0);
        assert_string_equal(buf_text(&first), buf_text(&second));
    }
    assert_int_equal(b.timeout, 1250);
    assert_int_equal(b.blacklist_cooldown_range.min_ms, 500);
    assert_int_equal(b.stdin_, SET_RANK_ALL);
    assert_int_equal(b.log_level, SET_LOG_INFO);
    settings_destroy(&a);
    settings_destroy(&b);
}

static void test_lists(void **state)
{
    (void)state;
    struct settings settings;
    settings_init(&settings);
    set(&settings, OPT_network_interfaces, "a,b,,", SOURCE_FILE);
    set(&settings, OPT_network_interfaces, "c", SOURCE_FILE);
    assert_int_equal(settings.network_interfaces.count, 3);
    set(&settings, OPT_network_interfaces, "d", SOURCE_FLAG);
    assert_int_equal(settings.network_interfaces.count, 1);
    set(&settings, OPT_env, "A=1,2", SOURCE_FILE);
    set(&settings, OPT_env, "B=1", SOURCE_FLAG);
    assert_int_equal(settings.env.count, 2); /* a stronger source adds, and commas belong to it */
    assert_string_equal(settings.env.items[0], "A=1,2");
    settings_destroy(&settings);
    refused(OPT_env_file, "", "here: the value is empty");
}

static void test_count(void **state)
{
    (void)state;
    struct settings settings;
    settings_init(&settings);
    set(&settings, OPT_verbose, "3", SOURCE_FILE);
    set(&settings, OPT_verbose, "yes", SOURCE_FLAG);
    set(&settings, OPT_verbose, "yes", SOURCE_FLAG);
    assert_int_equal(settings.verbose, 2);
    set(&settings, OPT_verbose, "no", SOURCE_FLAG);
    assert_int_equal(settings.verbose, 0);
    settings_destroy(&settings);
    refused(OPT_verbose, "10", "here: 10 is out of range: expected 0 to 9");
}

static void test_reset(void **state)
{
    (void)state;
    struct settings settings;
    settings_init(&settings);
    set(&settings, OPT_label, "", SOURCE_FLAG);
    assert_string_equal(settings.label, "");
    assert_string_equal(settings_place(&settings, OPT_label), "here");
    settings_reset(&settings, OPT_label);
    assert_string_equal(settings.label, "[%r]<%s>:");
    assert_string_equal(settings_place(&settings, OPT_label), "default");
    assert_int_equal(settings_source(&settings, OPT_label), SOURCE_DEFAULT);
    settings_destroy(&settings);
    settings_destroy(&settings); /* twice does no harm */
}

static void test_bad_values(void **state)
{
    (void)state;
    refused(OPT_master_port, "65536", "here: 65536 is out of range: expected 1 to 65535");
    refused(OPT_master_port, "", "here: '' is not a whole number");
    refused(OPT_master_port, "99999999999999999999",
            "here: 99999999999999999999 is out of range: expected 1 to 65535");
    refused(OPT_autotune_gaussian_process_noise, "nan", "here: 'nan' is not a number");
    refused(OPT_autotune, "perhaps", "here: 'perhaps' is neither yes nor no");
    refused(OPT_hosts, "", "here: the value is empty");
    refused(OPT_label, "100%", "here: '100%' ends with a single % (write %% for a percent sign)");
    refused(OPT_ranks, "1,x", "here: '1,x' is not a list of ranks (example: 0,4-7)");
    refused(OPT_pty, "-1", "here: '-1' is not a rank: expected a number from 0, all, none or auto");
    refused(OPT_stdin_, "some",
            "here: 'some' is not a rank: expected a number from 0, all or none");
    refused(OPT_exit_policy, "last", "here: 'last' is not known: expected first, max or rank0");
    refused(OPT_exit_policy, "", "here: '' is not known: expected first, max or rank0");
}

static void test_words(void **state)
{
    (void)state;
    char word[OPTION_NAME_MAX];
    assert_int_equal(option_word(OPT_mpi, MPI_PMI1, word), 0);
    assert_string_equal(word, "pmi1");
    assert_int_equal(option_word(OPT_mpi, 4, word), -1);
    assert_int_equal(option_word(OPT_np, 0, word), 0); /* not a word list, but no overrun either */
    assert_int_equal(option_word(OPT_hosts, 0, word), -1);
    assert_int_equal(option_word_index(OPT_color, "NEVER"), SET_COLOR_NEVER);
    assert_int_equal(option_word_index(OPT_color, "nev"), -1);
    assert_string_equal(option_variable(OPT_stdin_, word), "HVDRUN_STDIN");
    assert_string_equal(option_name(OPT_stdin_, word), "stdin");
    assert_int_equal(option_of_variable("HVDRUN_BIND_TO=x", 14), OPT_bind_to);
    assert_int_equal(option_of_variable("HVDRUN_BIND_TO", 13), OPT_TOTAL);
    assert_int_equal(option_of_variable("HVDRUN_", 7), OPT_TOTAL);
    assert_int_equal(option_of_variable("HVDRUN_VERSION", 14), OPT_TOTAL);
}

/* Those that take no value on the command line. */
static void test_switches(void **state)
{
    (void)state;
    assert_true(option_is_switch(OPT_quiet));
    assert_true(option_is_switch(OPT_verbose));
    assert_true(option_is_switch(OPT_stall_check));
    assert_true(option_is_switch(OPT_autotune));
    assert_false(option_is_switch(OPT_np));
    assert_false(option_is_switch(OPT_label));
}

static int count_spelling(void *context, const char *spelling)
{
    assert_int_equal(spelling[0], '-');
    return --*(int *)context == 0 ? 7 : 0;
}

static void test_spellings(void **state)
{
    (void)state;
    int left = 100;
    assert_int_equal(option_each_spelling(OPT_np, count_spelling, &left), 0);
    assert_true(left < 99); /* more than one */
    left = 1;
    assert_int_equal(option_each_spelling(OPT_np, count_spelling, &left), 7); /* and stops there */
}

/* The shortest form that says the same. */
static void test_durations(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"90", "90"}, {"1m", "60"}, {"1.5", "1500ms"}, {"250ms", "250ms"}, {"1001ms", "1001ms"}};
    struct settings settings;
    settings_init(&settings);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct buf text AUTO_BUF = BUF_INIT(100);
        set(&settings, OPT_timeout, texts[i][0], SOURCE_FLAG);
        assert_int_equal(settings_format(&settings, OPT_timeout, &text), 0);
        assert_string_equal(buf_text(&text), texts[i][1]);
    }
    settings_destroy(&settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_lists),
        cmocka_unit_test(test_count),      cmocka_unit_test(test_reset),
        cmocka_unit_test(test_bad_values), cmocka_unit_test(test_words),
        cmocka_unit_test(test_switches),   cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_durations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
