/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/texts.h"

#include "cli_fixture.h"

#define TEXT_LIMIT ((size_t)1 << 20)

/* The lines of `option`, without the blanks that fill the columns. */
static char *lines_of(const char *option, const char *text)
{
    struct buf out = BUF_INIT(TEXT_LIMIT);
    size_t name = strlen(option);
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        bool ours = strncmp(text, option, name) == 0 && text[name] == ' ';
        for (size_t i = 0; ours && i < length; i++) {
            if (text[i] != ' ' || text[i + 1] != ' ')
                buf_putc(&out, text[i]);
        }
        buf_puts(&out, ours ? "\n" : "");
        text += length + (text[length] == '\n');
    }
    return buf_take(&out);
}

static void shows(const char *words, char *const *env, const char *option, const char *expected)
{
    struct buf text AUTO_BUF = BUF_INIT(TEXT_LIMIT);
    struct command_line line;
    must_parse(words, env, &line);
    assert_true(line.settings.show_config);
    show_config_text(&line.settings, &text);
    char *got AUTO_FREE = lines_of(option, buf_text(&text));
    if (strcmp(got, expected) != 0)
        fail_msg("'%s' shows\n%s, expected\n%s", words, got, expected);
    command_line_destroy(&line);
}

static void test_sources(void **state)
{
    (void)state;
    char *path = new_file("job.ini", "[launch]\n\ngrace = 2\n[output]\nlabel = \n[env]\nWHO = job\n"
                                     "JOB = 1\n[elastic]\nblacklist-cooldown-range = 1 2\n");
    char *words AUTO_FREE =
        mem_printf("--config-file %s -np 4 -x WHO=me -x |A=b c| --show-config prog", path);
    char *const env[] = {(char *)"HVDRUN_NODE_TIMEOUT=1m",
                         (char *)"HVDRUN_NETWORK_INTERFACES=eth0,ib*", NULL};
    char *grace AUTO_FREE = mem_printf("grace 2 %s:3\n", path);
    char *label AUTO_FREE = mem_printf("label \"\" %s:5\n", path);
    char *range AUTO_FREE = mem_printf("blacklist-cooldown-range \"1 2\" %s:10\n", path);
    char *variables AUTO_FREE = mem_printf("env JOB=1 %s:8\nenv WHO=me command line -x\n"
                                           "env \"A=b c\" command line -x\n",
                                           path);
    shows(words, env, "np", "np 4 command line -np\n");
    shows(words, env, "grace", grace);
    shows(words, env, "label", label);
    shows(words, env, "blacklist-cooldown-range", range);
    shows(words, env, "node-timeout", "node-timeout 60 variable HVDRUN_NODE_TIMEOUT\n");
    shows(words, env, "network-interfaces",
          "network-interfaces eth0 variable HVDRUN_NETWORK_INTERFACES\n"
          "network-interfaces ib* variable HVDRUN_NETWORK_INTERFACES\n");
    shows(words, env, "start-timeout", "start-timeout 30 default\n");
    shows(words, env, "hosts", "hosts - default\n");
    shows(words, env, "map-signal", "map-signal - default\n");
    shows(words, env, "env", variables);
    shows(words, env, "help", "");
    remove_file(path);
}

/* It needs no program, and still finds errors. A weaker source of hosts does not count. */
static void test_without_a_program(void **state)
{
    (void)state;
    char *const env[] = {(char *)"HVDRUN_HOSTFILE=f", NULL};
    shows("--show-config", env, "hostfile", "hostfile f variable HVDRUN_HOSTFILE\n");
    shows("--show-config -H a", env, "hostfile", "hostfile - default\n");
    shows("check --show-config -H a", env, "hosts", "hosts a command line -H\n");
    must_fail_env("--show-config -np x", NULL, "-np: 'x' is not a whole number");
    must_fail_env("--show-config --min-np 4 -np 2", NULL, "--min-np 4 is more than -np 2");
}

static void masked(const char *value, bool whole, const char *expected)
{
    struct buf text AUTO_BUF = BUF_INIT(4096);
    show_config_masked(value, whole, &text);
    assert_string_equal(buf_text(&text), expected);
}

static void test_secrets(void **state)
{
    (void)state;
    masked("GITHUB_TOKEN=abc def", true, "GITHUB_TOKEN=***");
    masked("aws_secret_access_key=x", true, "aws_secret_access_key=***");
    masked("PGPASSWORD=x", true, "PGPASSWORD=***");
    masked("MYSQL_PWD=x", true, "MYSQL_PWD=***");
    masked("API_KEY=x", true, "API_KEY=***");
    masked("PWD=/home", true, "PWD=/home");
    masked("MONKEY=1", true, "MONKEY=1");
    masked("AUTHOR=me", true, "AUTHOR=me");
    masked("TOKEN=", true, "TOKEN=");
    masked("TOKEN", true, "TOKEN");
    masked("HTTPS_PROXY=http://me:pw@proxy:80/", true, "HTTPS_PROXY=http://me:***@proxy:80/");
    masked("URL=http://h:80/a@b", true, "URL=http://h:80/a@b");
    masked("kubectl --token=abc exec  -i %h --", false, "kubectl --token=*** exec  -i %h --");
    masked("tool --password abc --user me", false, "tool --password *** --user me");
    masked("tool --password --user me", false, "tool --password --user me");
    masked("", false, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_without_a_program),
        cmocka_unit_test(test_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
