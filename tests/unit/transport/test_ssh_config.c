/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "transport/ssh/config.h"
#include "transport/ssh/inside_test.h"

static const char *variable(const char *name)
{
    if (strcmp(name, "SSH_AUTH_SOCK") == 0)
        return "/run/user/agent";
    return strcmp(name, "OTHER_SOCK") == 0 ? "/run/other" : NULL;
}

static const struct ssh_config_place place = {
    .home = "/home/me", .user = "me", .variable = variable};

#define BASE "host h\nuser u\nhostname h.example\nport 2222\n"

static void parse(struct ssh_config *config, const char *text)
{
    struct error err = ERROR_INIT;
    if (ssh_config_parse(config, text, strlen(text), &place, &err) < 0)
        fail_msg("%s", err.text);
}

static void test_values(void **state)
{
    (void)state;
    struct ssh_config config;
    parse(&config, BASE "identityfile ~/my keys/a\nidentityfile /abs/b\nidentityfile none\n"
                        "identitiesonly yes\nuserknownhostsfile ~/.ssh/k1 /k2\n"
                        "globalknownhostsfile /etc/k3\nstricthostkeychecking true\n"
                        "hashknownhosts yes\nhostkeyalias alias\naddressfamily inet6\n"
                        "connecttimeout 7\nproxyjump a,b\nproxycommand none\r\n");
    assert_string_equal(config.host_name, "h.example");
    assert_string_equal(config.user, "u");
    assert_int_equal(config.port, 2222);
    assert_int_equal(config.identities.count, 2);
    assert_string_equal(config.identities.items[0], "/home/me/my keys/a");
    assert_string_equal(config.identities.items[1], "/abs/b");
    assert_true(config.identities_only && config.hash_names);
    assert_int_equal(config.known_hosts.count, 3);
    assert_string_equal(config.known_hosts.items[0], "/home/me/.ssh/k1");
    assert_string_equal(config.known_hosts.items[2], "/etc/k3");
    assert_int_equal(config.policy, SSH_HOST_STRICT);
    assert_string_equal(config.host_key_alias, "alias");
    assert_int_equal(config.family, AF_INET6);
    assert_int_equal(config.connect_timeout_s, 7);
    assert_string_equal(config.proxy_jump, "a,b");
    assert_null(config.proxy_command);
    assert_null(config.not_ours);
    assert_string_equal(config.agent_socket, "/run/user/agent");
    ssh_config_destroy(&config);
}

static void test_agent_and_policy(void **state)
{
    (void)state;
    static const struct {
        const char *line, *agent;
    } agents[] = {{"identityagent none\n", NULL},
                  {"identityagent SSH_AUTH_SOCK\n", "/run/user/agent"},
                  {"identityagent $OTHER_SOCK\n", "/run/other"},
                  {"identityagent $NOT_SET\n", NULL},
                  {"identityagent ~/sock\n", "/home/me/sock"},
                  {"identityagent ~\n", "/home/me"},
                  {"identityagent ~other/sock\n", "~other/sock"},
                  {"identityagent /sock\n", "/sock"}};
    for (size_t i = 0; i < sizeof(agents) / sizeof(agents[0]); i++) {
        char text[256];
        struct ssh_config config;
        snprintf(text, sizeof(text), BASE "%s", agents[i].line);
        parse(&config, text);
        if (agents[i].agent == NULL)
            assert_null(config.agent_socket);
        else
            assert_string_equal(config.agent_socket, agents[i].agent);
        ssh_config_destroy(&config);
    }
    static const struct {
        const char *line;
        enum ssh_host_policy policy;
    } policies[] = {{"stricthostkeychecking ask\n", SSH_HOST_ACCEPT_NEW},
                    {"stricthostkeychecking accept-new\n", SSH_HOST_ACCEPT_NEW},
                    {"stricthostkeychecking yes\n", SSH_HOST_STRICT},
                    {"stricthostkeychecking no\n", SSH_HOST_ANY},
                    {"stricthostkeychecking No\n", SSH_HOST_ANY},
                    {"stricthostkeychecking false\n", SSH_HOST_ANY},
                    {"stricthostkeychecking false\n", SSH_HOST_ANY},
                    {"stricthostkeychecking off\n", SSH_HOST_ANY}};
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
        char text[256];
        struct ssh_config config;
        snprintf(text, sizeof(text), BASE "%s", policies[i].line);
        parse(&config, text);
        assert_int_equal(config.policy, policies[i].policy);
        ssh_config_destroy(&config);
    }
}

static void test_beyond_us(void **state)
{
    (void)state;
    static const char *const beyond[] = {"certificatefile ~/c\n",         "pkcs11provider /x.so\n",
                                         "bindaddress 1.2.3.4\n",         "bindinterface eth0\n",
                                         "hostbasedauthentication yes\n", "proxyusefdpass yes\n"};
    static const char *const ours[] = {"pkcs11provider none\n", "hostbasedauthentication no\n",
                                       "ciphers aes128-ctr\n", "kexalgorithms curve25519-sha256\n",
                                       "controlmaster auto\n"};
    for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
        char text[256];
        struct ssh_config config;
        snprintf(text, sizeof(text), BASE "%s", beyond[i]);
        parse(&config, text);
        assert_non_null(config.not_ours);
        ssh_config_destroy(&config);
    }
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        char text[256];
        struct ssh_config config;
        snprintf(text, sizeof(text), BASE "%s", ours[i]);
        parse(&config, text);
        assert_null(config.not_ours);
        ssh_config_destroy(&config);
    }
}

static void test_bad_output(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "usage: ssh\n",
                                      "hostname h\n",
                                      BASE "port 0\n",
                                      BASE "port 70000\n",
                                      BASE "port 22x\n",
                                      BASE "connecttimeout -1\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct ssh_config config;
        struct error err = ERROR_INIT;
        assert_int_equal(ssh_config_parse(&config, bad[i], strlen(bad[i]), &place, &err), -1);
        assert_true(err.text[0] != '\0');
        ssh_config_destroy(&config);
    }
    /* NUL bytes and endless lines are passed over. */
    size_t length = 1 << 16;
    char *text = malloc(length);
    memset(text, 'x', length);
    memcpy(text + length - strlen(BASE) - 1, "\n" BASE, strlen(BASE) + 1);
    text[3] = '\0';
    struct ssh_config config;
    struct error err = ERROR_INIT;
    assert_int_equal(ssh_config_parse(&config, text, length, &place, &err), 0);
    assert_int_equal(config.port, 2222);
    ssh_config_destroy(&config);
    free(text);
}

static void test_defaults(void **state)
{
    (void)state;
    struct ssh_config config;
    ssh_config_defaults(&config, "node1", &place);
    assert_string_equal(config.host_name, "node1");
    assert_string_equal(config.user, "me");
    assert_int_equal(config.port, 22);
    assert_string_equal(config.known_hosts.items[0], "/home/me/.ssh/known_hosts");
    assert_int_equal(config.policy, SSH_HOST_ACCEPT_NEW);
    assert_int_equal(config.identities.count, 3);
    assert_string_equal(config.agent_socket, "/run/user/agent");
    ssh_config_destroy(&config);
}

/* A line of just the limit is read; blanks around it do not count. */
static void test_long_lines(void **state)
{
    (void)state;
    char text[SSH_CONFIG_LINE_MAX + 8];
    for (size_t more = 0; more < 2; more++) {
        const char *at = text;
        char *line;
        size_t length = SSH_CONFIG_LINE_MAX + more, left = length + 4;
        memset(text, 'x', sizeof(text));
        memset(text, ' ', 2);
        memcpy(text + 2 + length, " \n", 2);
        assert_true(ssh_config_line_next(&at, &left, &line));
        assert_int_equal(line == NULL, more);
        if (line != NULL)
            assert_int_equal(strlen(line), length);
        free(line);
        assert_false(ssh_config_line_next(&at, &left, &line));
    }
}

static struct ssh_config_sight sight_of(const char *text)
{
    struct ssh_config_sight sight = {.matters = false};
    ssh_config_look(text, strlen(text), &sight);
    return sight;
}

/* What distributions ship says nothing that matters. */
static void test_nothing_configured(void **state)
{
    (void)state;
    struct ssh_config_sight sight =
        sight_of("# comment\n\nInclude /etc/ssh/ssh_config.d/*.conf\n\nHost *\n"
                 "#   ForwardAgent no\n    SendEnv LANG LC_*\n    HashKnownHosts yes\n"
                 "    GSSAPIAuthentication yes\n");
    assert_false(sight.matters || sight.by_host);
    assert_true(sight.includes_parts && sight.hash_names);
    sight = sight_of("");
    assert_false(sight.matters || sight.by_host || sight.includes_parts || sight.hash_names);
    assert_false(sight_of("host=*").matters);
}

static void test_the_same_for_all(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "Host *\n Port 2222\n",
        "ProxyJump gate\n",
        "hostname x\n",
        "HostKeyAlgorithms x\n", /* not "Host" */
        "  IdentityFile ~/.ssh/id  \n\tUser=ann\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct ssh_config_sight sight = sight_of(texts[i]);
        assert_true(sight.matters);
        assert_false(sight.by_host);
    }
}

static void test_different_by_host(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "Host gpu*\n User x\n",
        "Host * !a\n",
        "Host\n",
        "Host \"*\"\n",
        "\"Host\" a\n",
        "host=a\n",
        "Match all\n",
        "match=all\n",
        "Include /opt/site.conf\n",
        "CanonicalizeHostname yes\n",
        "IdentityFile ~/.ssh/id_%h\n",
        "Host * # all of them\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct ssh_config_sight sight = sight_of(texts[i]);
        if (!sight.matters || !sight.by_host)
            fail_msg("%s", texts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_lines),         cmocka_unit_test(test_values),
        cmocka_unit_test(test_agent_and_policy),   cmocka_unit_test(test_beyond_us),
        cmocka_unit_test(test_bad_output),         cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_nothing_configured), cmocka_unit_test(test_the_same_for_all),
        cmocka_unit_test(test_different_by_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
