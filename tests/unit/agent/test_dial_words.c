/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of an agent that a user starts, its look-up, and its limit of time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent_main/dial_out.h"
#include "base/fd.h"
#include "base/mem.h"
#include "io/dial_ends.h"

static char secret[] = "/tmp/hvdrun-test-XXXXXX";

static int set_up(void **state)
{
    static const char text[] = "0123456789abcdef\n";
    (void)state;
    int fd = mkstemp(secret);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, sizeof(text) - 1), 0);
    close(fd);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(secret);
}

static int clear(void **state)
{
    (void)state;
    unsetenv("HVDRUN_DIAL");
    unsetenv("HVDRUN_DIAL_SECRET");
    unsetenv("HVDRUN_DIAL_ID");
    unsetenv("HVDRUN_DIAL_NAME");
    unsetenv("JOB_COMPLETION_INDEX");
    unsetenv("PET_NODE_RANK");
    unsetenv("HVDRUN_DIAL_GRACE");
    unsetenv("HVDRUN_START_TIMEOUT");
    unsetenv("HVDRUN_AGENT_DIAL");
    return 0;
}

#define WORDS(...) ((char *[]){__VA_ARGS__, NULL})
#define WORD(text) ((char *)(text))

static void test_options(void **state)
{
    struct dial_out dial;
    struct error err = ERROR_INIT;
    (void)state;
    char **words = WORDS(WORD("--dial"), WORD("pod-0.svc:4000"), WORD("--dial-secret"), secret,
                         WORD("--name=pod-1"), WORD("--dial-id"), WORD("run:7"),
                         WORD("--start-timeout"), WORD("2m"), WORD("--grace=30s"),
                         WORD("--slots=3"), WORD("--line=--nnodes 2 a.py --slots 4"));
    assert_int_equal(dial_words_read(words, &dial, &err), 0);
    assert_string_equal(dial.server, "pod-0.svc:4000");
    assert_string_equal(dial.node, "pod-1");
    assert_string_equal(dial.identity, "hvdrun:run:7:pod-1");
    assert_int_equal(dial.limit_ms, 120000);
    assert_int_equal(dial.term_grace_ms, 30000);
    assert_int_equal(dial.slots, 3);
    assert_string_equal(dial.line, "--nnodes 2 a.py --slots 4");
    assert_int_equal(dial.addresses.count, 0);
    dial_out_clear(&dial);
}

static void test_variables_are_weaker(void **state)
{
    struct dial_out dial;
    struct error err = ERROR_INIT;
    (void)state;
    setenv("HVDRUN_DIAL", "[fd00::1]:4000", 1);
    setenv("HVDRUN_DIAL_SECRET", secret, 1);
    setenv("HVDRUN_DIAL_NAME", "pod-1", 1);
    setenv("HVDRUN_DIAL_GRACE", "1m", 1);
    setenv("HVDRUN_START_TIMEOUT", "", 1); /* as if it were not set */
    assert_int_equal(
        dial_words_read(WORDS(WORD("--dial"), WORD("--name"), WORD("pod-2")), &dial, &err), 0);
    assert_string_equal(dial.server, "[fd00::1]:4000");
    assert_string_equal(dial.identity, "hvdrun:hvdrun:pod-2");
    assert_int_equal(dial.limit_ms, DIAL_WORDS_LIMIT_MS);
    assert_int_equal(dial.term_grace_ms, 60000);
    dial_out_clear(&dial);
    assert_int_equal(dial_words_read(WORDS(WORD("--dial")), &dial, &err), 0);
    assert_string_equal(dial.node, "pod-1");
    dial_out_clear(&dial);
}

static void test_names(void **state)
{
    char own[256] = "";
    struct dial_out dial;
    struct error err = ERROR_INIT;
    (void)state;
    char **words =
        WORDS(WORD("--dial=a:1"), WORD("--dial-secret"), secret, WORD("--name"), WORD("auto"));
    assert_int_equal(dial_words_read(words, &dial, &err), 0);
    assert_string_equal(dial.identity, "hvdrun:hvdrun:*"); /* no host has this name */
    assert_int_equal(dial.slots, 0);
    assert_null(dial.line);
    dial_out_clear(&dial);
    FILE *file = fopen("/proc/sys/kernel/hostname", "re");
    assert_non_null(file);
    assert_non_null(fgets(own, sizeof(own), file));
    fclose(file);
    own[strcspn(own, "\n")] = '\0';
    words[3] = NULL;
    assert_int_equal(dial_words_read(words, &dial, &err), 0);
    assert_string_equal(dial.node, own);
    dial_out_clear(&dial);
}

static void pod(const char *own, const char *index, const char *server, const char *expected)
{
    char *name AUTO_FREE = dial_words_pod_name(own, index, server);
    assert_string_equal(name, expected);
}

static void test_names_of_pods(void **state)
{
    struct dial_out dial;
    struct error err = ERROR_INIT;
    (void)state;
    pod("train-3", "3", "train-0.train:4000", "train-3");
    pod("worker-3", "3", "driver-0.driver:4000", "worker-3"); /* it is its own job's */
    pod("node17.cluster", "3", "train-0.train:4000", "train-3");
    pod("gpu-13", "3", "train-0.train:4000", "train-3");
    pod("x", "12", "train-pod-0-0.train:4000", "train-pod-0-12");
    pod("x", NULL, "train-0.train:4000", "x");
    pod("x", "3", "driver:4000", "x"); /* hvdrun's pod is not one of many */
    pod("x", "3", "host0:4000", "x");
    pod("x", "3", "10.0.0.1:4000", "x");
    pod("x", "3", "[fd00::1]:4000", "x");
    pod("x", "3", "", "x");
    setenv("PET_NODE_RANK", "5", 1);
    setenv("JOB_COMPLETION_INDEX", "4x", 1);
    setenv("HVDRUN_DIAL_SECRET", secret, 1);
    assert_int_equal(dial_words_read(WORDS(WORD("--dial=train-node-0-0.train:4000")), &dial, &err),
                     0);
    assert_string_equal(dial.node, "train-node-0-5");
    dial_out_clear(&dial);
    setenv("JOB_COMPLETION_INDEX", "4", 1);
    assert_int_equal(dial_words_read(WORDS(WORD("--dial=train-node-0-0.train:4000")), &dial, &err),
                     0);
    assert_string_equal(dial.node, "train-node-0-4");
    dial_out_clear(&dial);
}

static void test_no_secret(void **state)
{
    struct dial_out dial;
    struct error err = ERROR_INIT;
    uint8_t key[TLS_KEY_SIZE];
    (void)state;
    setenv("HVDRUN_DIAL_SECRET", secret, 1);
    dial_secret_key(NULL, "77", key, &err);
    char **words = WORDS(WORD("--dial=a:1"), WORD("--dial-id=77"), WORD("--no-secret"));
    assert_int_equal(dial_words_read(words, &dial, &err), 0);
    assert_memory_equal(dial.key, key, sizeof(key));
    dial_out_clear(&dial);
    words[2] = NULL;
    assert_int_equal(dial_words_read(words, &dial, &err), 0);
    assert_memory_not_equal(dial.key, key, sizeof(key));
    dial_out_clear(&dial);
}

static void refuse(char **words, const char *why)
{
    struct dial_out dial;
    struct error err = ERROR_INIT;
    assert_int_equal(dial_words_read(words, &dial, &err), -1);
    if (strstr(err.text, why) == NULL)
        fail_msg("'%s' does not say '%s'", err.text, why);
    dial_out_clear(&dial);
}

static void test_mistakes(void **state)
{
    static const char *const servers[] = {"a",   "a:",      ":1",   "a:0",   "a:65536",
                                          "a:b", "fd00::1", "-a:1", "a b:1", "a:1x"};
    (void)state;
    for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++)
        refuse(WORDS(WORD("--dial"), WORD(servers[i]), WORD("--dial-secret"), secret),
               "is not HOST:PORT");
    refuse(WORDS(WORD("--dial")), "--dial needs a value");
    refuse(WORDS(WORD("--name"), WORD("x")), "is not HOST:PORT");
    refuse(WORDS(WORD("--dial"), WORD("a:1"), WORD("--name")), "--name needs a value");
    refuse(WORDS(WORD("--dial"), WORD("a:1"), WORD("--name"), WORD("--dial-secret"), secret),
           "--name needs a value");
    refuse(WORDS(WORD("--dial"), WORD("a:1"), WORD("--nam"), WORD("x")), "unknown option '--nam'");
    refuse(WORDS(WORD("--dial"), WORD("a:1"), WORD("--name"), WORD("a b")),
           "'a b' is not the name");
    refuse(WORDS(WORD("--dial"), WORD("a:1"), WORD("--name"), WORD("*")), "'*' is not the name");
    refuse(WORDS(WORD("--dial"), WORD("a:1")), "--dial-secret FILE is missing");
    refuse(WORDS(WORD("--dial"), WORD("a:1"), WORD("--dial-secret=")), "cannot read the secret");
    refuse(WORDS(WORD("--dial"), WORD("a:1"), WORD("--dial-secret"), WORD("/nowhere")), "/nowhere");
    refuse(WORDS(WORD("--dial"), WORD("a:1"), WORD("--dial-secret"), secret,
                 WORD("--start-timeout"), WORD("soon")),
           "--start-timeout");
    refuse(WORDS(WORD("--dial"), WORD("a:1"), WORD("--dial-secret"), secret,
                 WORD("--start-timeout"), WORD("0")),
           "--start-timeout must be longer than 0");
}

static void test_whose_words(void **state)
{
    (void)state;
    assert_true(dial_words_are_ours(3, WORDS(WORD("x"), WORD("--dial"), WORD("a:1"))));
    assert_true(dial_words_are_ours(2, WORDS(WORD("x"), WORD("--name=y"))));
    assert_true(dial_words_are_ours(2, WORDS(WORD("x"), WORD("--dial"))));
    setenv("HVDRUN_AGENT_DIAL", "10.0.0.1:1", 1);
    assert_false(dial_words_are_ours(2, WORDS(WORD("x"), WORD("--dial"))));
    assert_true(dial_words_are_ours(3, WORDS(WORD("x"), WORD("--dial"), WORD("a:1"))));
    assert_false(dial_words_are_ours(1, WORDS(WORD("x"))));
    setenv("HVDRUN_DIAL", "a:1", 1);
    assert_true(dial_words_are_ours(1, WORDS(WORD("x"))));
    assert_false(dial_words_are_ours(3, WORDS(WORD("x"), WORD("--marker"), WORD("y"))));
}

static void test_lookup(void **state)
{
    struct strv found = STRV_INIT;
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(dial_lookup("127.0.0.1:4000", 60000, &found, &err), 0);
    assert_int_equal(found.count, 1);
    assert_string_equal(found.items[0], "127.0.0.1:4000");
    strv_destroy(&found);
    assert_int_equal(dial_lookup("[::1]:4000", 60000, &found, &err), 0);
    assert_string_equal(found.items[0], "[::1]:4000");
    strv_destroy(&found);
    assert_int_equal(dial_lookup("a..b:4000", 60000, &found, &err), -1);
    assert_non_null(strstr(err.text, "a..b:4000"));
    assert_int_equal(dial_lookup("127.0.0.1:4000", 0, &found, &err), -1);
    assert_non_null(strstr(err.text, "no resolver answers"));
    assert_int_equal(found.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_options, clear),
        cmocka_unit_test_setup(test_variables_are_weaker, clear),
        cmocka_unit_test_setup(test_names, clear),
        cmocka_unit_test_setup(test_names_of_pods, clear),
        cmocka_unit_test_setup(test_no_secret, clear),
        cmocka_unit_test_setup(test_mistakes, clear),
        cmocka_unit_test_setup_teardown(test_whose_words, clear, clear),
        cmocka_unit_test(test_lookup),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
