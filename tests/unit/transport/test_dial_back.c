/* SPDX-License-Identifier: Apache-2.0 */
/* Which clients may come in: agents in this process dial the listener on loopback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/tls_fixture.h"
#include "loop_fixture.h"
#include "transport/dial_back.h"

#define NOTES 64
#define GUESTS 4
#define WELCOME DIAL_BACK_WELCOME HVDRUN_VERSION "\n"

struct waiting;

struct fixture {
    struct loop *loop;
    struct dial_back *dial;
    const char *key; /* that agents have, hexadecimal */
    char notes[NOTES][256];
    enum log_level levels[NOTES];
    int note_count;
    struct waiting *stranger; /* whom test_strangers_that_are_welcome() waits for when asked */
    int asked;
};

struct waiting {
    struct dial_back_claim *claim;
    struct transport_stream stream;
    int ups;
    char broken[256], failed[256];
};

static void note(void *context, enum log_level level, const char *line)
{
    struct fixture *f = context;
    assert_true(f->note_count < NOTES);
    f->levels[f->note_count] = level;
    snprintf(f->notes[f->note_count++], sizeof(f->notes[0]), "%s", line);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct error err = ERROR_INIT;
    f->loop = loop_create(&err);
    struct dial_back_config config = {.loop = f->loop,
                                      .module = tls_fixture_module(),
                                      .job_id = "job-1",
                                      .dead_after_ms = 30000,
                                      .guests = GUESTS,
                                      .note = note,
                                      .context = f};
    f->dial = dial_back_create(&config, &err);
    assert_non_null(f->dial);
    f->key = dial_back_key(f->dial);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    dial_back_destroy(f->dial);
    loop_destroy(f->loop);
    free(f);
    return 0;
}

static void up(void *context, const struct transport_stream *stream)
{
    struct waiting *waiting = context;
    waiting->stream = *stream;
    waiting->ups++;
}

static void broken(void *context, const char *why)
{
    struct waiting *waiting = context;
    snprintf(waiting->broken, sizeof(waiting->broken), "%s", why);
}

static void failed(void *context, const char *why)
{
    struct waiting *waiting = context;
    snprintf(waiting->failed, sizeof(waiting->failed), "%s", why);
}

static void expect_agent(struct fixture *f, const char *name, struct waiting *waiting)
{
    static const struct dial_back_events events = {up, broken, failed};
    *waiting = (struct waiting){.stream = {.read_fd = -1}};
    waiting->claim = dial_back_expect(f->dial, name, &events, waiting);
}

static void forget(struct waiting *waiting)
{
    dial_back_forget(waiting->claim);
    fd_close(&waiting->stream.read_fd);
}

static int dial(const struct fixture *f, int family)
{
    struct sockaddr_in six_or_four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    six_or_four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    six_or_four.sin_port = six.sin6_port = htons((uint16_t)dial_back_port(f->dial));
    int result = family == AF_INET
                     ? connect(fd, (struct sockaddr *)&six_or_four, sizeof(six_or_four))
                     : connect(fd, (struct sockaddr *)&six, sizeof(six));
    assert_int_equal(result, 0);
    return fd;
}

/* An agent as far as the end of its handshake and the driver's first line. */
struct agent {
    struct tls_party *party;
    struct tls_end end;
    char line[DIAL_BACK_LINE_MAX];
};

static void agent_come(struct fixture *f, struct agent *agent, const char *identity, bool has_key)
{
    struct tls_party_config config = {.identity = identity};
    struct error err = ERROR_INIT;
    char pair[3] = "";
    for (size_t i = 0; i < TLS_KEY_SIZE; i++) {
        memcpy(pair, f->key + 2 * i, 2);
        config.key[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    config.key[0] ^= !has_key;
    *agent = (struct agent){.party = tls_fixture_module()->party_create(&config, &err)};
    agent->end = tls_fixture_end(agent->party, dial(f, AF_INET));
    size_t length = 0;
    for (int i = 0; i < 20; i++) {
        run_turns(f->loop, 3);
        if (agent->end.module->advance(agent->end.session) != TLS_OPEN)
            continue;
        ssize_t got = agent->end.module->read(agent->end.session, agent->line + length,
                                              sizeof(agent->line) - 1 - length);
        length += got > 0 ? (size_t)got : 0;
    }
}

static void agent_go(struct agent *agent)
{
    tls_fixture_close(&agent->end);
    tls_fixture_module()->party_destroy(agent->party);
}

static bool noted(const struct fixture *f, enum log_level level, const char *part)
{
    for (int i = 0; i < f->note_count; i++) {
        if (f->levels[i] == level && strstr(f->notes[i], part) != NULL)
            return true;
    }
    return false;
}

static void test_an_agent_comes(void **state)
{
    struct fixture *f = *state;
    struct waiting node1, node2;
    struct agent agent;
    char bytes[8] = "";
    expect_agent(f, "node1", &node1);
    expect_agent(f, "node2", &node2);
    agent_come(f, &agent, "hvdrun:job-1:node2", true);
    assert_string_equal(agent.line, WELCOME);
    assert_int_equal(node1.ups, 0);
    assert_int_equal(node2.ups, 1);
    assert_string_equal(node2.stream.peer, "127.0.0.1");
    assert_int_equal(node2.stream.read_fd, node2.stream.write_fd);
    assert_false(node2.stream.same_machine);
    assert_int_equal(agent.end.module->write(agent.end.session, "ping", 4), 4);
    run_turns(f->loop, 5);
    assert_int_equal(read(node2.stream.read_fd, bytes, sizeof(bytes)), 4);
    assert_int_equal(write(node2.stream.write_fd, "pong", 4), 4);
    run_turns(f->loop, 5);
    assert_int_equal(agent.end.module->read(agent.end.session, bytes, sizeof(bytes)), 4);
    assert_memory_equal(bytes, "pong", 4);
    assert_int_equal(f->note_count, 0);
    agent_go(&agent);
    run_turns(f->loop, 5);
    assert_int_equal(read(node2.stream.read_fd, bytes, sizeof(bytes)), 0);
    forget(&node1);
    forget(&node2);
}

static void test_a_second_claim(void **state)
{
    struct fixture *f = *state;
    struct waiting node1;
    struct agent first, second;
    char byte;
    expect_agent(f, "node1", &node1);
    agent_come(f, &first, "hvdrun:job-1:node1", true);
    agent_come(f, &second, "hvdrun:job-1:node1", true);
    assert_string_equal(second.line, "refused an agent of this name is connected already\n");
    assert_true(noted(f, LOG_WARNING, "second agent of node1, from 127.0.0.1"));
    assert_int_equal(node1.ups, 1);
    fd_nonblock(node1.stream.read_fd);
    assert_int_equal(read(node1.stream.read_fd, &byte, 1), -1); /* the first one is still there */
    assert_int_equal(errno, EAGAIN);
    agent_go(&second);
    agent_go(&first);
    run_turns(f->loop, 5);
    agent_come(f, &second, "hvdrun:job-1:node1", true); /* nor when it has gone */
    assert_string_equal(second.line, "refused an agent of this name is connected already\n");
    agent_go(&second);
    forget(&node1);
    expect_agent(f, "node1", &node1); /* but when the node is called anew */
    agent_come(f, &second, "hvdrun:job-1:node1", true);
    assert_string_equal(second.line, WELCOME);
    agent_go(&second);
    forget(&node1);
}

static void test_names_that_nobody_waits_for(void **state)
{
    static const char *const identities[] = {
        "hvdrun:job-1:node2",  "hvdrun:job-1:",     "hvdrun:job-12:node1", "hvdrun:job-1", "node1",
        "hvdrun:job-1:node1x", "hvdrun:job-1:node", "Hvdrun:job-1:node1"};
    struct fixture *f = *state;
    struct waiting node1;
    struct agent agent;
    expect_agent(f, "node1", &node1);
    for (size_t i = 0; i < sizeof(identities) / sizeof(identities[0]); i++) {
        agent_come(f, &agent, identities[i], true);
        assert_string_equal(agent.line, "refused hvdrun does not expect an agent of this name\n");
        agent_go(&agent);
    }
    assert_int_equal(node1.ups, 0);
    assert_true(noted(f, LOG_WARNING, "from 127.0.0.1: it identifies itself as node2"));
    assert_true(noted(f, LOG_WARNING, "another job"));
    forget(&node1);
}

static void test_wrong_key(void **state)
{
    struct fixture *f = *state;
    struct waiting node1;
    struct agent agent;
    expect_agent(f, "node1", &node1);
    agent_come(f, &agent, "hvdrun:job-1:node1", false);
    assert_int_equal(agent.end.module->advance(agent.end.session), TLS_FAILED);
    assert_int_equal(node1.ups, 0);
    assert_true(noted(f, LOG_WARNING, "127.0.0.1: it does not have the key of this job"));
    agent_go(&agent);
    agent_come(f, &agent, "hvdrun:job-1:node1", true); /* the name is still free */
    assert_int_equal(node1.ups, 1);
    agent_go(&agent);
    forget(&node1);
}

static bool is_closed(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
}

static void test_rubbish(void **state)
{
    struct fixture *f = *state;
    char bytes[256] = "";
    int families[] = {AF_INET, AF_INET6};
    for (size_t i = 0; i < 2; i++) {
        int fd = dial(f, families[i]);
        assert_int_equal(write(fd, "GET / HTTP/1.0\r\n\r\n", 18), 18);
        run_turns(f->loop, 10);
        while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
        }
        assert_true(is_closed(fd));
        close(fd);
    }
    assert_true(noted(f, LOG_INFO, "127.0.0.1: the TLS handshake failed"));
    assert_true(noted(f, LOG_INFO, "::1: the TLS handshake failed"));
}

/* Whoever says nothing makes room for those that come later. */
static void test_silent_strangers(void **state)
{
    struct fixture *f = *state;
    struct waiting node1;
    struct agent agent;
    int fds[3 * GUESTS];
    int closed = 0;
    for (size_t i = 0; i < 3 * GUESTS; i++) {
        fds[i] = dial(f, AF_INET);
        run_turns(f->loop, 3);
    }
    for (size_t i = 0; i < 3 * GUESTS; i++)
        closed += is_closed(fds[i]);
    assert_int_equal(closed, 2 * GUESTS);
    expect_agent(f, "node1", &node1);
    agent_come(f, &agent, "hvdrun:job-1:node1", true);
    assert_string_equal(agent.line, WELCOME);
    agent_go(&agent);
    forget(&node1);
    for (size_t i = 0; i < 3 * GUESTS; i++)
        close(fds[i]);
}

static void test_a_silent_stranger_is_not_kept(void **state)
{
    struct fixture *f = *state;
    int fd = dial(f, AF_INET);
    run_until(f->loop, is_closed(fd));
    assert_true(noted(f, LOG_INFO, "did not identify itself"));
    close(fd);
}

/* A flood of refusals is not told line by line. */
static void test_warnings_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct agent agent;
    int warnings = 0;
    for (int i = 0; i < 20; i++) {
        char identity[32];
        snprintf(identity, sizeof(identity), "hvdrun:job-1:node%d", i);
        agent_come(f, &agent, identity, true);
        agent_go(&agent);
    }
    for (int i = 0; i < f->note_count; i++)
        warnings += f->levels[i] == LOG_WARNING;
    assert_int_equal(warnings, 9);
    assert_true(noted(f, LOG_WARNING, "further refused agents are shown only with -v"));
    agent_come(f, &agent, "hvdrun:job-1:node1", false); /* those without the key have their own */
    agent_go(&agent);
    assert_true(noted(f, LOG_WARNING, "does not have the key"));
}

/* One that is refused comes again and again. */
static void test_a_warning_comes_once(void **state)
{
    struct fixture *f = *state;
    struct agent agent;
    for (int i = 0; i < 3; i++) {
        agent_come(f, &agent, "hvdrun:job-1:node1", true);
        agent_go(&agent);
    }
    assert_int_equal(f->note_count, 3);
    assert_int_equal(f->levels[0], LOG_WARNING);
    assert_int_equal(f->levels[1], LOG_INFO);
    assert_int_equal(f->levels[2], LOG_INFO);
}

static void test_any_name(void **state)
{
    struct fixture *f = *state;
    struct waiting node1, node2, node3;
    struct agent agents[4];
    expect_agent(f, "node1", &node1);
    expect_agent(f, "node2", &node2);
    expect_agent(f, "node3", &node3);
    agent_come(f, &agents[0], "hvdrun:job-1:node2", true);
    agent_come(f, &agents[1], "hvdrun:job-1:*", true);
    assert_int_equal(node1.ups, 1);
    forget(&node1); /* the place of the first is no place any more */
    agent_come(f, &agents[2], "hvdrun:job-1:*", true);
    assert_int_equal(node3.ups, 1);
    agent_come(f, &agents[3], "hvdrun:job-1:*", true);
    assert_string_equal(agents[3].line, "refused all hosts of the list have an agent\n");
    assert_true(noted(f, LOG_WARNING, "from 127.0.0.1: all hosts of the list have an agent"));
    for (int i = 0; i < 4; i++)
        agent_go(&agents[i]);
    forget(&node3);
    expect_agent(f, "node1", &node1); /* the last place that was made, and now the first */
    agent_come(f, &agents[0], "hvdrun:job-1:*", true);
    assert_int_equal(node1.ups, 1);
    agent_go(&agents[0]);
    forget(&node1);
    forget(&node2);
}

/* With a key and a port that agents know before, and agents that come and go. */
static void test_agents_that_return(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    uint8_t key[TLS_KEY_SIZE];
    struct waiting node1;
    struct agent agent;
    memset(key, 0xa5, sizeof(key));
    struct dial_back_config config = {.loop = f->loop,
                                      .module = tls_fixture_module(),
                                      .job_id = "job-1",
                                      .port = dial_back_port(f->dial),
                                      .key = key,
                                      .agents_return = true,
                                      .dead_after_ms = 30000,
                                      .guests = GUESTS,
                                      .note = note,
                                      .context = f};
    assert_null(dial_back_create(&config, &err)); /* it is in use */
    assert_non_null(strstr(err.text, "--dial-port"));
    dial_back_destroy(f->dial);
    f->dial = dial_back_create(&config, &err);
    assert_non_null(f->dial);
    memset(key, 0, sizeof(key));
    assert_int_equal(dial_back_port(f->dial), config.port);
    f->key = "a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5";
    expect_agent(f, "node1", &node1);
    agent_come(f, &agent, "hvdrun:job-1:node1", true);
    assert_string_equal(agent.line, WELCOME);
    agent_go(&agent);
    run_turns(f->loop, 5);
    for (int i = 0; i < 2; i++) { /* before it is called again */
        agent_come(f, &agent, "hvdrun:job-1:node1", true);
        assert_string_equal(agent.line, "wait hvdrun no longer waits for this agent\n");
        agent_go(&agent);
        if (i == 0)
            forget(&node1);
    }
    assert_true(noted(f, LOG_INFO, "it identifies itself as node1"));
    assert_false(noted(f, LOG_WARNING, ""));
    expect_agent(f, "node1", &node1);
    agent_come(f, &agent, "hvdrun:job-1:node1", true);
    assert_string_equal(agent.line, WELCOME);
    agent_go(&agent);
    forget(&node1);
}

/* From here on `count` (at most 4) more can be opened, whatever numbers are in use. */
static struct rlimit leave_descriptors(int count)
{
    struct rlimit old, less;
    int taken[4];
    for (int i = 0; i < count; i++) {
        taken[i] = dup(STDERR_FILENO);
        assert_true(taken[i] >= 0);
    }
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    less = old;
    less.rlim_cur = (rlim_t)(taken[count - 1] + 1);
    for (int i = 0; i < count; i++)
        close(taken[i]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
    return old;
}

static const char *ask(void *context, const char *name)
{
    struct fixture *f = context;
    f->asked++;
    if (strncmp(name, "full", 4) == 0)
        return "there is no room";
    if (strncmp(name, "odd", 3) != 0)
        expect_agent(f, name, f->stranger);
    return NULL;
}

/* The job decides about names that nobody waits for, if they can be names of hosts. */
static void test_strangers_that_are_welcome(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    struct waiting node1;
    struct agent agent;
    struct dial_back_config config = {.loop = f->loop,
                                      .module = tls_fixture_module(),
                                      .job_id = "job-1",
                                      .agents_return = true,
                                      .dead_after_ms = 30000,
                                      .guests = GUESTS,
                                      .stranger = ask,
                                      .note = note,
                                      .context = f};
    dial_back_destroy(f->dial);
    f->dial = dial_back_create(&config, &err);
    assert_non_null(f->dial);
    f->key = dial_back_key(f->dial);
    f->stranger = &node1;
    agent_come(f, &agent, "hvdrun:job-1:node1", true);
    assert_string_equal(agent.line, WELCOME);
    assert_int_equal(node1.ups, 1);
    agent_go(&agent);
    static const char *const refused[][2] = {
        {"hvdrun:job-1:full", "wait there is no room\n"},
        {"hvdrun:job-1:odd", "wait hvdrun does not use this host now\n"},
        {"hvdrun:job-1:*",
         "wait the job has no host list, so each agent needs a name of its own (--name)\n"},
        {"hvdrun:job-1:-x", "wait hvdrun does not expect an agent of this name\n"},
        {"hvdrun:job-1:", "wait hvdrun does not expect an agent of this name\n"},
        {"hvdrun:job-2:node1", "wait hvdrun does not expect an agent of this name\n"},
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        agent_come(f, &agent, refused[i][0], true);
        assert_string_equal(agent.line, refused[i][1]);
        agent_go(&agent);
    }
    assert_int_equal(f->asked, 3);
    forget(&node1);
}

/* An agent that cannot be taken in is no agent that never came. */
static void test_no_descriptor_for_an_agent(void **state)
{
    struct fixture *f = *state;
    struct waiting node1;
    struct agent agent;
    expect_agent(f, "node1", &node1);
    struct rlimit old = leave_descriptors(2); /* its own, and ours of the connection */
    agent_come(f, &agent, "hvdrun:job-1:node1", true);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(node1.ups, 0);
    assert_non_null(strstr(node1.failed, "Too many open files"));
    assert_non_null(strstr(node1.failed, "ulimit -n"));
    agent_go(&agent);
    agent_come(f, &agent, "hvdrun:job-1:node1", true); /* nobody waits for it any more */
    assert_string_equal(agent.line, "refused hvdrun no longer waits for this agent\n");
    agent_go(&agent);
    forget(&node1);
}

static void test_no_descriptor_for_a_connection(void **state)
{
    struct fixture *f = *state;
    struct waiting node1, node2;
    expect_agent(f, "node1", &node1);
    expect_agent(f, "node2", &node2);
    struct rlimit old = leave_descriptors(1);
    int fd = dial(f, AF_INET);
    run_until(f->loop, node1.failed[0] != '\0');
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_non_null(strstr(node1.failed, "Too many open files"));
    assert_non_null(strstr(node2.failed, "Too many open files"));
    assert_true(noted(f, LOG_WARNING, "cannot accept an agent: Too many open files"));
    close(fd);
    forget(&node1);
    forget(&node2);
}

/* Strangers leave, so that the agent gets what it needs. */
static void test_strangers_have_the_descriptors(void **state)
{
    struct fixture *f = *state;
    struct waiting node1;
    struct agent agent;
    int fds[GUESTS - 1];
    for (size_t i = 0; i < GUESTS - 1; i++)
        fds[i] = dial(f, AF_INET);
    run_turns(f->loop, 3);
    expect_agent(f, "node1", &node1);
    struct rlimit old = leave_descriptors(2); /* its own, and ours of the connection */
    agent_come(f, &agent, "hvdrun:job-1:node1", true);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_string_equal(node1.failed, "");
    assert_int_equal(node1.ups, 1);
    agent_go(&agent);
    forget(&node1);
    for (size_t i = 0; i < GUESTS - 1; i++) {
        assert_true(is_closed(fds[i]));
        close(fds[i]);
    }
}

static void test_every_key_is_another_one(void **state)
{
    struct fixture *f = *state;
    void *other = NULL;
    set_up(&other);
    assert_int_equal(strlen(dial_back_key(f->dial)), 2 * TLS_KEY_SIZE);
    assert_string_not_equal(dial_back_key(f->dial), dial_back_key(((struct fixture *)other)->dial));
    tear_down(&other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        TEST(test_an_agent_comes),
        TEST(test_a_second_claim),
        TEST(test_names_that_nobody_waits_for),
        TEST(test_wrong_key),
        TEST(test_rubbish),
        TEST(test_silent_strangers),
        TEST(test_a_silent_stranger_is_not_kept),
        TEST(test_warnings_are_bounded),
        TEST(test_a_warning_comes_once),
        TEST(test_any_name),
        TEST(test_agents_that_return),
        TEST(test_strangers_that_are_welcome),
        TEST(test_no_descriptor_for_an_agent),
        TEST(test_no_descriptor_for_a_connection),
        TEST(test_strangers_have_the_descriptors),
        TEST(test_every_key_is_another_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
