/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "base/strv.h"
#include "cli/control_words.h"
#include "cli/texts.h"

static struct strv split(const char *line)
{
    struct strv words = STRV_INIT;
    for (const char *at = line; *at != '\0';) {
        size_t length = strcspn(at, " ");
        strv_add_n(&words, at, length);
        at += length + (at[length] == ' ');
    }
    return words;
}

/* "command|object|job|time|json"; without a time -1. */
static void expect(const char *line, const char *expected)
{
    struct strv argv AUTO_STRV = split(line);
    struct control_words words;
    struct error err = ERROR_INIT;
    char got[256];
    if (control_words_parse((int)argv.count, argv.items, &words, &err) != 1)
        fail_msg("'%s' was refused: %s", line, err.text);
    snprintf(got, sizeof(got), "%s|%s|%s|%lld|%d%s%s%s%s%s", argv.items[1],
             words.object == NULL ? "" : words.object, words.job == NULL ? "" : words.job,
             words.has_time ? (long long)words.time_ms : -1, words.json, words.all ? "|all" : "",
             words.once     ? "|once"
             : words.native ? "|native"
                            : "",
             words.ranks != NULL ? "|" : "", words.ranks != NULL ? words.ranks : "",
             words.help ? "|help" : "");
    assert_string_equal(got, expected);
}

static void refuse(const char *line, const char *part)
{
    struct strv argv AUTO_STRV = split(line);
    struct control_words words;
    struct error err = ERROR_INIT;
    if (control_words_parse((int)argv.count, argv.items, &words, &err) != -1)
        fail_msg("'%s' was accepted", line);
    if (strstr(err.text, part) == NULL)
        fail_msg("'%s': \"%s\" lacks '%s'", line, err.text, part);
    assert_int_equal(err.status, STATUS_USAGE);
}

static void is_a_job(const char *line)
{
    struct strv argv AUTO_STRV = split(line);
    struct control_words words;
    struct error err = ERROR_INIT;
    assert_int_equal(control_words_parse((int)argv.count, argv.items, &words, &err), 0);
    assert_string_equal(err.text, "");
}

static void test_commands(void **state)
{
    (void)state;
    expect("hvdrun status", "status|||-1|0");
    expect("hvdrun status hvdrun-a-1", "status||hvdrun-a-1|-1|0");
    expect("hvdrun status --json --job /x/y.control", "status||/x/y.control|-1|1");
    expect("hvdrun drain c", "drain|c||-1|0");
    expect("hvdrun drain c --within 2m --job=j", "drain|c|j|120000|0");
    expect("hvdrun drain --within=0 c", "drain|c||0|0");
    expect("hvdrun undrain --job j fe80::1%eth0", "undrain|fe80::1%eth0|j|-1|0");
    expect("hvdrun ps", "ps|||-1|0");
    expect("hvdrun ps -a --json", "ps|||-1|1|all");
    expect("hvdrun logs -f -n 20 --since=5m", "logs|||300000|0");
    expect("hvdrun attach -n 5", "attach|||-1|0");
    expect("hvdrun attach --lines=all 17", "attach||17|-1|0");
    expect("hvdrun top 17", "top||17|-1|0");
    expect("hvdrun top --once --json", "top|||-1|1|once");
    expect("hvdrun attach 17 --sig-proxy", "attach||17|-1|0");
    expect("hvdrun stacks", "stacks|||-1|0");
    expect("hvdrun stacks --native", "stacks|||-1|0|native");
    expect("hvdrun stacks 17 --ranks 0,4-7 --twice 5 --json", "stacks||17|5000|1|0,4-7");
    expect("hvdrun wait 17", "wait||17|-1|0");
    expect("hvdrun stop --grace 2m j", "stop||j|120000|0");
    expect("hvdrun signal USR1", "signal|USR1||-1|0");
    expect("hvdrun signal j usr1 --ranks 0,4-7", "signal|usr1|j|-1|0|0,4-7");
    expect("hvdrun stacks --ranks 9999999", "stacks|||-1|0|9999999");
    expect("hvdrun signal 9 --job j", "signal|9|j|-1|0");
    expect("hvdrun ps --slurm-job 41", "ps|||-1|0");
    expect("hvdrun stop j --slurm-job=41", "stop||j|-1|0");
    expect("hvdrun undrain c --json", "undrain|c||-1|1");
    expect("hvdrun add d:4,e[1-2]:2", "add|d:4,e[1-2]:2||-1|0");
    expect("hvdrun warm start --idle 2m --memory=100", "warm|start||120000|0");
    expect("hvdrun warm list", "warm|list||-1|0");
}

static void test_jobs_to_start(void **state)
{
    (void)state;
    is_a_job("hvdrun");
    is_a_job("hvdrun -np 2 status");
    is_a_job("hvdrun -- status");
    is_a_job("hvdrun ./status");
    is_a_job("hvdrun statusx");
    is_a_job("hvdrun stat");
    is_a_job("hvdrun -- ps");
    is_a_job("hvdrun -np 1 wait");
    is_a_job("hvdrun ./train drain c");
}

static void test_refusals(void **state)
{
    (void)state;
    refuse("hvdrun status a b", "unexpected 'b': expected: hvdrun status [JOB] [--json]");
    refuse("hvdrun status --job a b", "unexpected 'b'");
    refuse("hvdrun status --jason",
           "unknown option '--jason': did you mean '--json'? 'hvdrun status "
           "--help' lists the options");
    refuse("hvdrun top --slurm-job 41+1",
           "--slurm-job: '41+1' is not a number; 'squeue --me -o %A' shows the number of each job");
    refuse("hvdrun top --slurm-job", "--slurm-job: expected: hvdrun top");
    refuse("hvdrun logs --rank 1", "did you mean '--ranks'?");
    refuse("hvdrun logs --rank=1", "unknown option '--rank': did you mean '--ranks'?");
    refuse("hvdrun logs --tail 3", "did you mean '--lines'?");
    refuse("hvdrun stop --tail 3", "'hvdrun stop' does not have the option '--tail'");
    refuse("hvdrun stop --all",
           "'hvdrun stop' does not have the option '--all': expected: hvdrun stop [JOB] [--grace");
    refuse("hvdrun logs --follow=1", "--follow=1: expected: hvdrun logs [JOB] [--follow]");
    refuse("hvdrun status --job", "expected");
    refuse("hvdrun drain", "expected: hvdrun drain HOST [--within TIME] [--json] [--job JOB]");
    refuse("hvdrun drain a b", "unexpected 'b'");
    refuse("hvdrun drain a --within", "--within");
    refuse("hvdrun drain a --within soon", "soon");
    refuse("hvdrun drain a --ranks 3", "'--ranks': expected");
    refuse("hvdrun logs -n many", "--lines: ");
    refuse("hvdrun logs -n", "--lines: ");
    refuse("hvdrun warm", "expected: hvdrun warm start|list|stop [--idle TIME]");
    refuse("hvdrun warm begin", "expected: hvdrun warm start|list|stop");
    refuse("hvdrun warm start stop", "unexpected 'stop'");
    refuse("hvdrun warm stop --memory 3", "are for 'hvdrun warm start'");
    refuse("hvdrun warm start --memory 0", "--memory: ");
    refuse("hvdrun warm start --memory", "--memory: ");
    refuse("hvdrun warm list --json", "'hvdrun warm' does not have the option '--json'");
    refuse("hvdrun attach -n al", "--lines: ");
    refuse("hvdrun wait -n 3", "'hvdrun wait' does not have the option '-n'");
    refuse("hvdrun stacks --ranks 4-1", "--ranks: ");
    refuse("hvdrun logs --ranks 0-2147483647",
           "--ranks: '0-2147483647': ranks go from 0 to 9999999,");
    refuse("hvdrun logs --ranks 10000000", "--ranks: '10000000': ranks go from 0 to 9999999,");
    refuse("hvdrun status --native", "--native");
    refuse("hvdrun stacks --twice soon", "--twice: ");
    refuse("hvdrun status --twice 5", "--twice");
    refuse("hvdrun attach -f",
           "'-f': expected: hvdrun attach [JOB] [--lines N] [--sig-proxy] [--json]");
    refuse("hvdrun status --once", "'--once': expected: hvdrun status [JOB] [--json]");
    refuse("hvdrun ps j", "unexpected 'j': expected: hvdrun ps [--all] [--quiet] [--all-users]");
    refuse("hvdrun ps --names", "ps: --names needs --quiet");
    refuse("hvdrun ps --job j", "'--job': expected: hvdrun ps");
    refuse("hvdrun status -a", "'-a': expected");
    refuse("hvdrun signal", "expected: hvdrun signal [JOB] SIGNAL [--ranks LIST] [--json]");
    refuse("hvdrun signal NOSUCH", "'NOSUCH' is not the name of a signal");
    refuse("hvdrun signal STOP", "SIGSTOP stops or continues processes");
    refuse("hvdrun signal USR1 --ranks a", "--ranks: ");
    refuse("hvdrun signal a USR1 b", "unexpected 'b'");
    refuse("hvdrun stop --within 3", "'--within': expected");
    refuse("hvdrun stop --grace soon", "--grace: ");
    refuse("hvdrun drain a;b", "not the name of a host");
    refuse("hvdrun undrain a --within 3", "'--within': expected");
    refuse("hvdrun drain -c", "'-c': expected");
    refuse("hvdrun add", "expected: hvdrun add HOSTS");
    refuse("hvdrun add d:x", "slot count");
    refuse("hvdrun add  --job j",
           "an argument is empty: expected: hvdrun add HOSTS [--json] [--job JOB]");
    refuse("hvdrun drain  x", "an argument is empty: expected: hvdrun drain HOST");
    refuse("hvdrun add --job a --job b d", "--job: expected");
}

static void test_debug_and_shell(void **state)
{
    struct strv argv AUTO_STRV = split("hvdrun shell j --rank 3 -- ls --host -l");
    struct control_words words;
    (void)state;
    assert_int_equal(control_words_parse((int)argv.count, argv.items, &words, NULL), 1);
    assert_string_equal(words.job, "j");
    assert_int_equal(words.rank, 3);
    assert_null(words.host);
    assert_ptr_equal(words.argv, argv.items + 6);
    expect("hvdrun shell --host b j", "shell||j|-1|0");
    expect("hvdrun debug --rank 0 --with gdb", "debug|||-1|0");
    expect("hvdrun debug j --continue", "debug||j|-1|0");
    expect("hvdrun debug --continue --rank=5", "debug|||-1|0");
    refuse("hvdrun debug", "debug needs --rank: expected: hvdrun debug [JOB] [--rank N]");
    refuse("hvdrun debug --rank -1", "--rank: ");
    refuse("hvdrun debug --rank 1 --host a", "'--host': expected");
    refuse("hvdrun debug --rank 1 --json", "'--json': expected");
    refuse("hvdrun debug --rank 1 --with", "--with: expected");
    refuse("hvdrun debug --rank 1 -- ls", "'--'");
    refuse("hvdrun debug --continue --with gdb", "--continue opens no debugger");
    refuse("hvdrun shell", "shell needs --rank or --host: expected: hvdrun shell [JOB] [--rank N] "
                           "[--host HOST] [-- COMMAND...]");
    refuse("hvdrun shell --rank 1 --host a", "shell needs --rank or --host");
    refuse("hvdrun shell --rank 1 --", "a command must follow '--'");
    refuse("hvdrun shell --rank 1 j ls", "unexpected 'ls'");
}

static void check_width(const char *text)
{
    for (; *text != '\0'; text += strcspn(text, "\n") + 1) {
        if (strcspn(text, "\n") > 80)
            fail_msg("wider than a terminal: %.*s", (int)strcspn(text, "\n"), text);
    }
}

static void test_help(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(65536);
    expect("hvdrun drain --help", "drain|||-1|0|help");
    expect("hvdrun status -h", "status|||-1|0|help");
    control_help(CONTROL_LOGS, &text);
    assert_non_null(strstr(buf_text(&text), "Usage: hvdrun logs [OPTIONS] [JOB]\n"));
    assert_non_null(strstr(buf_text(&text), "\n  -f, --follow  "));
    assert_non_null(strstr(buf_text(&text), "\n  -n, --lines N  "));
    assert_non_null(strstr(buf_text(&text), "TIME is in seconds"));
    assert_null(strstr(buf_text(&text), "undrain"));
    for (int i = 0; i < CONTROL_COMMANDS; i++) {
        buf_clear(&text);
        control_help((enum control_command)i, &text);
        check_width(buf_text(&text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands), cmocka_unit_test(test_jobs_to_start),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_debug_and_shell),
        cmocka_unit_test(test_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
