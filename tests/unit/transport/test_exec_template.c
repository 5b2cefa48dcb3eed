/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/status.h"
#include "transport/exec/words.h"

static const struct transport_target plain = {.host = "c7", .node = 3};

/* The words, each in brackets; or the error. */
static const char *parsed(const char *text, struct buf *out)
{
    AUTO_STRV struct strv words = STRV_INIT;
    struct error err = ERROR_INIT;
    buf_clear(out);
    if (exec_template_parse(text, &words, &err) < 0) {
        assert_int_equal(err.status, STATUS_USAGE);
        buf_printf(out, "error: %s", err.text);
    }
    for (size_t i = 0; out->length < 7 || strncmp(buf_text(out), "error: ", 7) != 0; i++) {
        if (i == words.count)
            break;
        buf_printf(out, "[%s]", words.items[i]);
    }
    return buf_text(out);
}

static const char *filled(const char *text, const struct transport_target *target,
                          const char *last_word, struct buf *out)
{
    AUTO_STRV struct strv words = STRV_INIT, argv = STRV_INIT;
    struct error err = ERROR_INIT;
    buf_clear(out);
    assert_int_equal(exec_template_parse(text, &words, &err), 0);
    if (exec_template_fill(&words, target, last_word, &argv, &err) < 0) {
        buf_printf(out, "error: %s", err.text);
        return buf_text(out);
    }
    for (size_t i = 0; i < argv.count; i++)
        buf_printf(out, "[%s]", argv.items[i]);
    return buf_text(out);
}

static void test_words(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT(65536);
    assert_string_equal(parsed("  ssh -x\t%h ", &out), "[ssh][-x][%h]");
    assert_string_equal(parsed("a 'b c' d\"e f\"g ''", &out), "[a][b c][de fg][]");
    assert_string_equal(parsed("a\\ b \"c\\\"d\\n\" 'e\\'", &out), "[a b][c\"d\\n][e\\]");
    /* no shell: these are just letters */
    assert_string_equal(parsed("a $HOME `id` ; x > y *", &out), "[a][$HOME][`id`][;][x][>][y][*]");
}

static void test_bad_templates(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT(65536);
    assert_non_null(strstr(parsed("ssh 'x", &out), "within a quote"));
    assert_non_null(strstr(parsed("ssh \"x\\\"", &out), "within a quote"));
    assert_non_null(strstr(parsed("ssh x\\", &out), "backslash"));
    assert_non_null(strstr(parsed("ssh %q", &out), "%q"));
    assert_non_null(strstr(parsed("ssh %", &out), "error: "));
    assert_non_null(strstr(parsed("ssh %%%", &out), "error: "));
    assert_non_null(strstr(parsed("  ", &out), "empty"));
    assert_non_null(strstr(parsed("'' x", &out), "empty"));
}

static void test_fill(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT(65536);
    struct transport_target target = plain;
    assert_string_equal(filled("ssh -x %h", &target, "/bin/sh", &out), "[ssh][-x][c7][/bin/sh]");
    assert_string_equal(filled("kubectl exec -i %h --", &target, "/bin/sh", &out),
                        "[kubectl][exec][-i][c7][--][/bin/sh]");
    /* as other launchers call their agents: the host comes after */
    assert_string_equal(filled("/etc/mpi/kubexec.sh", &target, "/bin/sh", &out),
                        "[/etc/mpi/kubexec.sh][c7][/bin/sh]");
    assert_string_equal(filled("x -p%p --n=%n 100%% %h.d", &target, "s", &out),
                        "[x][-p22][--n=3][100%][c7.d][s]");
    assert_string_equal(filled("agent", &target, NULL, &out), "[agent]");
    target.port = 2022;
    target.user = "ann";
    target.address = "10.0.0.7";
    assert_string_equal(filled("ssh -p %p %u@%h", &target, "s", &out),
                        "[ssh][-p][2022][ann@10.0.0.7][s]");
}

/* A port of 1 is a port, and words of other callers may end with a percent sign. */
static void test_odd_values(void **state)
{
    (void)state;
    const struct transport_target target = {.host = "c7", .port = 1};
    AUTO_STRV struct strv words = STRV_INIT, argv = STRV_INIT;
    struct error err = ERROR_INIT;
    strv_add(&words, "-p%p");
    strv_add(&words, "%h%");
    assert_int_equal(exec_template_fill(&words, &target, NULL, &argv, &err), 0);
    assert_string_equal(argv.items[0], "-p1");
    assert_string_equal(argv.items[1], "c7%");
}

static void test_unsafe_names(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT(65536);
    static const char *const bad[] = {"-oProxyCommand=x", "a b", "a;b", "$(x)", "", "a\nb"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct transport_target target = {.host = bad[i]};
        assert_int_equal(strncmp(filled("ssh %h", &target, "s", &out), "error: ", 7), 0);
        assert_int_equal(strncmp(filled("ssh", &target, "s", &out), "error: ", 7), 0);
        target = (struct transport_target){.host = "ok", .user = bad[i]};
        assert_int_equal(strncmp(filled("ssh %u@%h", &target, "s", &out), "error: ", 7), 0);
    }
}

static void the_refusal_names_the_letter(void **state)
{
    (void)state;
    static const char *const texts[][2] = {{"ssh %x", "%x in the command '%x'"},
                                           {"ssh %h-%z", "%z in the command '%h-%z'"},
                                           {"ssh %%%q", "%q in the command '%%%q'"}};
    for (size_t i = 0; i < 3; i++) {
        AUTO_STRV struct strv words = STRV_INIT;
        struct error err = ERROR_INIT;
        assert_int_equal(exec_template_parse(texts[i][0], &words, &err), -1);
        assert_non_null(strstr(err.text, texts[i][1]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),        cmocka_unit_test(test_bad_templates),
        cmocka_unit_test(test_fill),         cmocka_unit_test(test_odd_values),
        cmocka_unit_test(test_unsafe_names), cmocka_unit_test(the_refusal_names_the_letter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
