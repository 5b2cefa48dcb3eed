/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "transport/ssh/sections.h"

/* What an Include names: texts, by their names. */
struct files {
    struct ssh_sections *sections;
    const char *(*texts)[2];
};

static void include(void *context, const char *value)
{
    const struct files *files = context;
    while (*value != '\0') {
        size_t length = strcspn(value, " ");
        for (size_t i = 0; files->texts[i][0] != NULL; i++) {
            const char *name = files->texts[i][0], *text = files->texts[i][1];
            if (strlen(name) == length && strncmp(name, value, length) == 0)
                ssh_sections_read(files->sections, text, strlen(text), include, context);
        }
        value += length + strspn(value + length, " ");
    }
}

static struct ssh_sections *sections_of(const char *text, const char *(*texts)[2])
{
    struct files files = {ssh_sections_create(), texts};
    ssh_sections_begin(files.sections);
    ssh_sections_read(files.sections, text, strlen(text), include, &files);
    return files.sections;
}

static bool alike(const char *text, const char *(*texts)[2], const char *a, const char *b)
{
    struct ssh_sections *sections = sections_of(text, texts);
    char *first AUTO_FREE = ssh_sections_class(sections, a);
    char *second AUTO_FREE = ssh_sections_class(sections, b);
    ssh_sections_destroy(sections);
    return first != NULL && second != NULL && strcmp(first, second) == 0;
}

static const struct {
    const char *text;
    bool alike; /* n1 and n2 */
} cases[] = {
    {"", true},
    {"User ann\n# Match all\n#%h\n", true},
    {"Host *\n User ann\n", true},
    {"Host n?\n User ann\nHost *\n Port 2222\n", true},
    {"Host n1\n User ann\n", false},
    {"Host N1\n User ann\n", false},
    {"Host n2 n1\n User ann\n", true},
    {"Host=n1\n User ann\n", false},
    {"Host other n1\n User ann\n", false},
    {"Host n* !n1\n User ann\n", false},
    {"Host n* !m1\n User ann\n", true},
    {"\tHost\tm1 \t m2\n User ann\n", true},
    {"Host [n]1\n", false}, /* fnmatch() would take it for n1 */
    {"Host \"n1\"\n", false},
    /* what names the host */
    {"HostName x\n", false},
    {"Host n*\n  hostname=%h.example\n", false},
    {"Host m*\n  HostName x\n", true},
    {"Host n* !n1 !n2\n  HostName x\n", true},
    {"Host *\n  IdentityFile ~/.ssh/%h\n", false},
    {"Host m*\n  IdentityFile ~/.ssh/%h\n", true},
    {"Host *\n  ControlPath ~/.ssh/%r@%h\n  HostKeyAlias all\n", true},
    /* what is not looked into */
    {"Match all\n", false},
    {"Host m\n  Match host n1\n", false},
    {"CanonicalizeHostname yes\n", false},
    {"\"Host\" n1\n", false},
    {"Host\n", false},
    /* Include */
    {"Include one\n", false},
    {"Host n*\n Include one\n", false},
    {"Include none\nHost *\n", true},
    {"Include mine\n", false},
    {"Host m\n Include plain\nHost *\n User ann\n", true},
    {"Host m\n Include host\nHostName x\n", true}, /* m's, and not that of the file */
    {"Host n*\n Include other\nHostName x\n", false},
    {"Include host mine\n", false}, /* mine is for all, and not host's section */
    {"Include other mine\n", false},
    {"Include other plain\n", true},
    /* what OpenSSH reads in its own way */
    {"Host n1 # n2\n Port 2\n", false},
    {"=Host n1\n Port 2\n", false},
    {"Ho\"st\" n1\n Port 2\n", false},
    {"Host\rn1\n Port 2\n", false},
};

static void test_alike(void **state)
{
    (void)state;
    static const char *texts[][2] = {
        {"one", "Host n1\n User bob\n"},     {"mine", "HostName y\n"}, {"plain", "User bob\n"},
        {"host", "Host n1 n2\n User bob\n"}, {"other", "Host m\n"},    {NULL, NULL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (alike(cases[i].text, texts, "n1", "n2") != cases[i].alike)
            fail_msg("%s", cases[i].text);
    }
}

static void test_names_that_openssh_may_change(void **state)
{
    (void)state;
    assert_false(alike("", NULL, "N1", "N1"));
    assert_false(alike("", NULL, "fe80::1%eth0", "fe80::1%eth0"));
    assert_true(alike("", NULL, "10.0.0.1", "fe80::1"));
}

static void test_a_long_line_is_a_doubt(void **state)
{
    (void)state;
    char *text = mem_alloc(10002);
    memset(text, 'x', 10000);
    text[10000] = '\n';
    assert_false(alike(text, NULL, "n1", "n2"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alike),
        cmocka_unit_test(test_names_that_openssh_may_change),
        cmocka_unit_test(test_a_long_line_is_a_doubt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
