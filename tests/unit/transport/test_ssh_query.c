/* SPDX-License-Identifier: Apache-2.0 */
/* What is found out about many hosts is what `ssh -G` says of each. It is run once when the files
 * say the same about all hosts, and once for each otherwise. A script that counts comes before ssh
 * in PATH. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ssh_fixture.h"
#include "transport/ssh/parts.h"

#define HOSTS 12

struct asked {
    struct rig *rig;
    struct ssh_question *question;
    int *left;
    const struct ssh_config *config;
    char *why;
};

static void answered(void *context, const struct ssh_config *config, const char *why)
{
    struct asked *asked = context;
    assert_null(asked->config); /* once */
    asked->config = config;
    asked->why = mem_strdup(why);
    if (--*asked->left == 0)
        loop_stop(asked->rig->loop);
}

/* A rig without a server. */
static void begin(struct rig *rig)
{
    *rig = (struct rig){.port = 22};
    snprintf(rig->root, sizeof(rig->root), "/tmp/hvd-ssh-XXXXXX");
    assert_non_null(mkdtemp(rig->root));
    rig->config = rig_path(rig, "config");
    rig->loop = loop_create(NULL);
    rig->reaper = reaper_create(rig_exited, rig);
    rig->signals = loop_signals_create(rig->loop, (int[]){SIGCHLD, 0}, rig_signal, rig, NULL);
    rig->helpers = helpers_create();
    rig->room =
        (struct transport_room){.loop = rig->loop, .helpers = rig->helpers, .limit_ms = 30000};
    char *script AUTO_FREE = mem_printf("#!/bin/sh\necho x >>%s/runs\nPATH=${PATH#*:}\n"
                                        "exec ssh \"$@\"\n",
                                        rig->root);
    rig_write(rig, "ssh", script);
    char *program AUTO_FREE = rig_path(rig, "ssh");
    char *path AUTO_FREE = mem_printf("%s:%s", rig->root, getenv("PATH"));
    assert_int_equal(chmod(program, 0700), 0);
    assert_int_equal(setenv("PATH", path, 1), 0);
}

static void finish(struct rig *rig)
{
    setenv("PATH", strchr(getenv("PATH"), ':') + 1, 1);
    rig_close(rig);
}

static size_t runs(const struct rig *rig)
{
    char *log AUTO_FREE = rig_read(rig, "runs");
    return strlen(log) / 2;
}

static void print_config(const struct asked *asked, struct buf *out)
{
    const struct ssh_config *config = asked->config;
    if (config == NULL) {
        buf_printf(out, "%s\n", asked->why);
        return;
    }
    buf_printf(out, "%s %s %d %d %d %d %d", config->host_name, config->user, config->port,
               config->connect_timeout_s, config->identities_only, (int)config->policy,
               config->hash_names);
    buf_printf(out, " %s %s %s %s", config->host_key_alias == NULL ? "-" : config->host_key_alias,
               config->proxy_jump == NULL ? "-" : config->proxy_jump,
               config->proxy_command == NULL ? "-" : config->proxy_command,
               config->not_ours == NULL ? "-" : config->not_ours);
    for (size_t i = 0; i < config->identities.count; i++)
        buf_printf(out, " %s", config->identities.items[i]);
    for (size_t i = 0; i < config->known_hosts.count; i++)
        buf_printf(out, " %s", config->known_hosts.items[i]);
    buf_putc(out, '\n');
}

/* Asks about n0, n1... at once, or one after the other; with queries of their own, each by itself.
 * What is known of all of them. */
static void ask(struct rig *rig, bool at_once, bool alone, struct buf *out)
{
    struct ssh_settings settings = {.room = &rig->room, .config_file = rig->config};
    struct ssh_queries *queries[HOSTS];
    struct asked asked[HOSTS];
    int left = HOSTS;
    for (int i = 0; i < HOSTS; i++) {
        char *host AUTO_FREE = mem_printf("n%d", i);
        queries[i] = i == 0 || alone ? ssh_queries_create(&settings) : queries[0];
        asked[i] = (struct asked){.rig = rig, .left = &left};
        struct ssh_wanted wanted = {.host = host, .user = i % 4 == 3 ? "bob" : NULL};
        if (!at_once)
            left = 1;
        asked[i].question = ssh_query_ask(queries[i], &wanted, answered, &asked[i]);
        if (!at_once)
            run_loop(rig->loop);
    }
    if (at_once)
        run_loop(rig->loop);
    for (int i = 0; i < HOSTS; i++) {
        print_config(&asked[i], out);
        ssh_question_destroy(asked[i].question);
        free(asked[i].why);
    }
    for (int i = 0; i < HOSTS; i++) {
        if (i == 0 || alone)
            ssh_queries_destroy(queries[i]);
    }
}

static const struct {
    const char *text;
    size_t runs; /* for the 12 hosts, of which three are asked for as bob's */
} cases[] = {
    {"Host *\n  Port 2222\n  ConnectTimeout 7\n", 2},
    {"# a comment\n\nhost=*\n  IdentityFile ~/.ssh/a\n  User ann\n", 2},
    {"Host n3 n1*\n  HostKeyAlias x\n  IdentityFile /a\nHost *\n  User ann\n", 12},
    {"Host n2\n  HostName 10.0.0.2\n", 12},
    {"Host *\n  ControlPath /tmp/%h\n", 12},
    {"Host *\n  HostName n5\n", 12},
    {"Host *\n  HostName %h.example\n", 12},
    {"Match host n1\n  Port 2222\n", 12},
    {"Host *\n  ProxyJump n1\n", 12},
    {"Include no/such/parts/*\nHost *\n  HashKnownHosts yes\n", 12},
    {"Bad line\n", 12},
};

static void test_says_what_ssh_says_of_each(void **state)
{
    (void)state;
    struct rig rig;
    begin(&rig);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf each AUTO_BUF = BUF_INIT(1 << 20);
        rig_write(&rig, "config", cases[i].text);
        ask(&rig, true, true, &each);
        for (int at_once = 0; at_once < 2; at_once++) {
            struct buf all AUTO_BUF = BUF_INIT(1 << 20);
            rig_write(&rig, "runs", "");
            ask(&rig, at_once == 1, false, &all);
            assert_string_equal(buf_text(&all), buf_text(&each));
            if (runs(&rig) != cases[i].runs)
                fail_msg("%zu instead of %zu runs of ssh: %s", runs(&rig), cases[i].runs,
                         cases[i].text);
        }
    }
    finish(&rig);
}

static void test_a_changed_file_is_read_again(void **state)
{
    (void)state;
    struct rig rig;
    begin(&rig);
    struct ssh_settings settings = {.room = &rig.room, .config_file = rig.config};
    struct ssh_queries *queries = ssh_queries_create(&settings);
    static const struct {
        const char *text;
        int port;
        size_t runs; /* so far */
    } steps[] = {
        {"Host *\n Port 1\n", 1, 1},
        {"Host *\n Port 1\n", 1, 1},
        {"Host *\n Port 22\n", 22, 2},
        {"Host n3\n Port 333\n", 333, 3},
    };
    for (int i = 0; i < 4; i++) {
        int left = 1;
        struct asked asked = {.rig = &rig, .left = &left};
        char *host AUTO_FREE = mem_printf("n%d", i);
        struct ssh_wanted wanted = {.host = host};
        rig_write(&rig, "config", steps[i].text);
        asked.question = ssh_query_ask(queries, &wanted, answered, &asked);
        run_loop(rig.loop);
        assert_non_null(asked.config);
        assert_int_equal(asked.config->port, steps[i].port);
        assert_string_equal(asked.config->host_name, host);
        assert_int_equal(runs(&rig), steps[i].runs);
        ssh_question_destroy(asked.question);
    }
    ssh_queries_destroy(queries);
    finish(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_says_what_ssh_says_of_each),
        cmocka_unit_test(test_a_changed_file_is_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
