/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/status.h"
#include "model/exit/signal_rules.h"

static void give(struct settings *settings, enum option_id id, const char *text)
{
    struct error err = ERROR_INIT;
    assert_int_equal(settings_set(settings, id, text, SOURCE_FLAG, "--it", &err), 0);
}

/* The rules for these values; NULL: not given. */
static int rules_of(const char *warn, const char *map, bool requeue, bool in_slurm,
                    struct signal_rules *rules, struct error *err)
{
    struct settings settings;
    settings_init(&settings);
    if (warn != NULL)
        give(&settings, OPT_warn_signal, warn);
    if (map != NULL)
        give(&settings, OPT_map_signal, map);
    if (requeue)
        give(&settings, OPT_slurm_requeue, "yes");
    int result = signal_rules_from(&settings, in_slurm, rules, err);
    settings_destroy(&settings);
    return result;
}

static void test_names(void **state)
{
    (void)state;
    assert_int_equal(signal_number("USR1"), SIGUSR1);
    assert_int_equal(signal_number("SIGUSR1"), SIGUSR1);
    assert_int_equal(signal_number("sigterm"), SIGTERM);
    assert_int_equal(signal_number("10"), SIGUSR1);
    assert_int_equal(signal_number("XCPU"), SIGXCPU);
    const char *const wrong[] = {"",   "SIG", "FOO",  "USR",   "USR11", "0",
                                 "-1", "65",  "1000", " USR1", "USR1 "};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(signal_number(wrong[i]), 0);
    for (int number = 1; number <= SIGNAL_NUMBER_MAX; number++) {
        const char *name = signal_short_name(number);
        assert_true(name == NULL || signal_number(name) == number);
        assert_false(signal_is_passed(number) && signal_is_barred(number));
    }
    assert_string_equal(signal_short_name(SIGUSR2), "USR2");
    assert_null(signal_short_name(0));
    assert_null(signal_short_name(1000));
    assert_memory_equal(signal_passed_names(), "SIGHUP, SIGINT, ", 16);
}

static void test_the_warning(void **state)
{
    (void)state;
    struct signal_rules rules;
    struct error err = ERROR_INIT;
    assert_int_equal(rules_of(NULL, NULL, false, false, &rules, &err), 0);
    assert_int_equal(rules.warn, 0);
    assert_false(rules.warn_ends);
    assert_int_equal(rules_of(NULL, NULL, false, true, &rules, &err), 0);
    assert_int_equal(rules.warn, SIGUSR1);
    assert_false(rules.warn_ends); /* it may mean something else to the program */
    assert_int_equal(rules_of(NULL, NULL, true, true, &rules, &err), 0);
    assert_int_equal(rules.warn, SIGUSR1);
    assert_true(rules.warn_ends && rules.requeue);
    assert_int_equal(rules_of("SIGHUP", NULL, false, false, &rules, &err), 0);
    assert_int_equal(rules.warn, SIGHUP);
    assert_true(rules.warn_ends && !rules.requeue);
    assert_int_equal(rules_of("none", NULL, true, true, &rules, &err), 0);
    assert_int_equal(rules.warn, 0);
    assert_true(!rules.warn_ends && rules.requeue);
}

static void test_the_map(void **state)
{
    (void)state;
    struct signal_rules rules;
    struct error err = ERROR_INIT;
    assert_int_equal(rules_of(NULL, "USR1:TERM,INT:usr2,ALRM:ALRM", false, false, &rules, &err), 0);
    assert_int_equal(signal_rules_sent(&rules, SIGUSR1), SIGTERM);
    assert_int_equal(signal_rules_sent(&rules, SIGINT), SIGUSR2);
    assert_int_equal(signal_rules_sent(&rules, SIGTERM), SIGTERM);
    assert_int_equal(signal_rules_sent(&rules, 0), 0);
    assert_int_equal(signal_rules_sent(&rules, 1000), 1000);
    assert_true(signal_rules_name(&rules, SIGALRM));
    assert_false(signal_rules_name(&rules, SIGTERM));
    assert_int_equal(rules_of("HUP", "USR1:TERM,USR1:SIGTERM", false, false, &rules, &err), 0);
    assert_true(signal_rules_name(&rules, SIGHUP));
}

static void test_what_cannot_be(void **state)
{
    (void)state;
    const struct {
        const char *warn, *map, *text;
    } cases[] = {
        {"FOO", NULL, "--it: 'FOO' is not a signal; expected one of SIGHUP, "},
        {"KILL", NULL,
         "--it: hvdrun does not pass SIGKILL on to workers; expected one of SIGHUP, "},
        {"CHLD", NULL, "--it: hvdrun does not pass SIGCHLD on"},
        {"SEGV", NULL, "--it: hvdrun does not pass SIGSEGV on"},
        {NULL, "USR1", "--it: 'USR1': expected FROM:TO, as in USR1:TERM"},
        {NULL, "USR1:", "--it: 'USR1:': expected FROM:TO"},
        {NULL, ":TERM", "--it: ':TERM': expected FROM:TO"},
        {NULL, "USR1:TERM:INT", "--it: 'USR1:TERM:INT': expected FROM:TO"},
        {NULL, "FOO:TERM", "--it: 'FOO' is not a signal; expected one of "},
        {NULL, "USR1:FOO", "--it: 'FOO' is not a signal; expected a name such as TERM"},
        {NULL, "USR1:KILL", "--it: SIGKILL cannot be passed on, "},
        {NULL, "USR1:STOP", "--it: SIGSTOP cannot be passed on, "},
        {NULL, "TSTP:TERM", "--it: hvdrun does not pass SIGTSTP on"},
        {NULL, "USR1:TERM,USR1:INT", "--it: SIGUSR1 is mapped twice, to SIGTERM and to SIGINT"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct signal_rules rules;
        struct error err = ERROR_INIT;
        assert_int_equal(rules_of(cases[i].warn, cases[i].map, false, true, &rules, &err), -1);
        assert_int_equal(err.status, STATUS_USAGE);
        if (strncmp(err.text, cases[i].text, strlen(cases[i].text)) != 0)
            assert_string_equal(err.text, cases[i].text);
    }
}

static void test_requeue_is_slurms(void **state)
{
    (void)state;
    struct signal_rules rules;
    struct error err = ERROR_INIT;
    assert_int_equal(rules_of(NULL, NULL, true, false, &rules, &err), -1);
    assert_int_equal(err.status, STATUS_USAGE);
    assert_non_null(strstr(err.text, "--it: this is not a Slurm job"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_the_warning),
        cmocka_unit_test(test_the_map),
        cmocka_unit_test(test_what_cannot_be),
        cmocka_unit_test(test_requeue_is_slurms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
