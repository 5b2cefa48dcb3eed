/* SPDX-License-Identifier: Apache-2.0 */
/* How the link to an agent ends, and what the driver then knows about the reason. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "driver/job/node_link.h"
#include "loop_fixture.h"
#include "unit.h"

#define AGENT_PID 4711
#define KILLED_BY(signal) (signal) /* wait statuses, as waitpid(2) gives them */
#define BEGUN_MS INT64_C(5000000)
#define EXITED_WITH(code) ((code) << 8)

struct fixture {
    struct loop *loop;
    struct node_link *node;
    struct link *agent; /* the other end */
    struct log log;
    int closed, suspected;
    int64_t limit_ms;
    char why[256];
};

static void ignore_frame(void *context, const struct frame_header *header, const uint8_t *body)
{
    (void)context, (void)header, (void)body;
}

static void ignore_end(void *context, const char *reason)
{
    (void)context, (void)reason;
}

static void node_frame(void *context, struct node_link *node, const struct frame_header *header,
                       const uint8_t *body)
{
    (void)context, (void)node, (void)header, (void)body;
}

static void node_closed(void *context, struct node_link *node, const char *why)
{
    struct fixture *f = context;
    assert_false(node_link_alive(node));
    f->closed++;
    snprintf(f->why, sizeof(f->why), "%s", why);
    loop_stop(f->loop);
}

static void node_suspect(void *context, struct node_link *node, bool silent, int64_t silence_ms)
{
    struct fixture *f = context;
    (void)silence_ms;
    f->suspected += silent;
    f->limit_ms = liveness_limit_ms(&node->liveness);
}

static int setup(void **state)
{
    static const struct node_link_ops ops = {node_frame, node_closed, node_suspect};
    static const struct link_ops agent_ops = {.frame = ignore_frame, .closed = ignore_end};
    static struct fixture f;
    int ends[2];
    f = (struct fixture){.loop = loop_create(NULL), .node = mem_alloc(sizeof(*f.node))};
    f.node->host = mem_strdup("c12");
    if (f.loop == NULL || fd_socketpair(ends) < 0)
        return -1;
    node_link_init(f.node, f.loop, 5000, &f.log, &ops, &f);
    f.agent = link_create(f.loop, ends[1], ends[1], &agent_ops, NULL, NULL);
    const struct transport_stream stream = {
        .read_fd = ends[0], .write_fd = ends[0], .pid = AGENT_PID, .same_machine = true};
    *state = &f;
    return node_link_connect(f.node, &stream, NULL);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    node_link_destroy(f->node);
    link_destroy(f->agent);
    run_turns(f->loop, 1);
    loop_destroy(f->loop);
    return 0;
}

/* The agent's end is closed, and the driver sees it. */
static void hang_up(struct fixture *f)
{
    link_destroy(f->agent);
    f->agent = NULL;
    run_turns(f->loop, 3);
}

static void expect_end(struct fixture *f, const char *why)
{
    if (f->closed == 0)
        run_loop(f->loop);
    assert_int_equal(f->closed, 1);
    assert_string_equal(f->why, why);
    assert_int_equal(f->node->state, NODE_LOST);
}

static void test_the_exit_comes_after_the_end(void **state)
{
    struct fixture *f = *state;
    unit_clock_stop(77, 0);
    hang_up(f);
    unit_clock_run();
    assert_int_equal(f->closed, 0);
    node_link_exited(f->node, KILLED_BY(SIGXFSZ));
    expect_end(f, "its agent was killed by SIGXFSZ (the limit of ulimit -f)");
    assert_int_equal(f->node->ended_ns, 77);
    assert_int_equal(f->node->stream.pid, 0);
}

static void test_the_exit_comes_before_the_end(void **state)
{
    struct fixture *f = *state;
    node_link_exited(f->node, EXITED_WITH(125));
    assert_int_equal(f->closed, 0); /* there may be more to read */
    hang_up(f);
    expect_end(f, "its agent ended with exit status 125");
}

static void test_a_status_that_means_a_signal(void **state)
{
    struct fixture *f = *state;
    hang_up(f);
    node_link_exited(f->node, EXITED_WITH(128 + SIGKILL));
    expect_end(f, "its agent ended with exit status 137 (SIGKILL)");
}

static void test_an_exit_that_says_nothing(void **state)
{
    struct fixture *f = *state;
    hang_up(f);
    node_link_exited(f->node, EXITED_WITH(0));
    expect_end(f, "the connection to its agent ended");
}

/* A process that closes its stream and goes on. */
static void test_an_exit_that_does_not_come(void **state)
{
    struct fixture *f = *state;
    hang_up(f);
    assert_int_equal(f->closed, 0);
    expect_end(f, "the connection to its agent ended");
}

static void test_the_transport_knows_more(void **state)
{
    struct fixture *f = *state;
    hang_up(f);
    node_link_explain(f->node, "ssh ended with exit status 255: Broken pipe");
    node_link_exited(f->node, EXITED_WITH(255));
    expect_end(f, "ssh ended with exit status 255: Broken pipe");
}

static void say_farewell(struct fixture *f, uint32_t silence_ms)
{
    Hvdrun__Farewell message = HVDRUN__FAREWELL__INIT;
    message.silence_ms = silence_ms;
    link_send_message(f->agent, FRAME_FAREWELL, 0, &message.base);
    link_flush(f->agent);
}

static void test_an_agent_that_heard_nothing(void **state)
{
    struct fixture *f = *state;
    say_farewell(f, 4000);
    hang_up(f);
    expect_end(f,
               "its agent gave up, since it heard nothing from hvdrun for 4.0 s (--node-timeout)");
}

/* The driver knows that it was late itself: it does not blame the host. */
static void test_a_driver_that_stood_still(void **state)
{
    struct fixture *f = *state;
    f->node->liveness.ticked_ms -= 7000;
    say_farewell(f, 4000);
    expect_end(f, "hvdrun itself stood still for 7.0 s, and its agent there gave up after 4.0 s "
                  "(--node-timeout)");
}

static void test_a_farewell_that_cannot_be_read(void **state)
{
    struct fixture *f = *state;
    link_send(f->agent, FRAME_FAREWELL, 0, "\377", 1);
    link_flush(f->agent);
    expect_end(f, "its agent broke the protocol");
}

/* The clock stands still from now on, and the link is new. */
static void stop_clock(struct fixture *f)
{
    struct liveness *l = &f->node->liveness;
    unit_clock_stop(BEGUN_MS * 1000000, 0);
    liveness_init(l, l->suspect_ms, l->lost_ms, BEGUN_MS);
}

/* Ticks every second up to so long after the beginning. */
static void tick_until(struct fixture *f, int64_t *at_ms, int64_t to_ms)
{
    while (*at_ms < to_ms && f->closed == 0) {
        *at_ms += 1000;
        unit_clock_stop((BEGUN_MS + *at_ms) * 1000000, 0);
        loop_timer_set(f->node->tick, 0);
        run_turns(f->loop, 3);
    }
}

static void send_heartbeat(struct fixture *f)
{
    Hvdrun__Heartbeat beat = HVDRUN__HEARTBEAT__INIT;
    link_send_message(f->agent, FRAME_HEARTBEAT, 0, &beat.base);
    link_flush(f->agent);
}

static void say_hello(struct fixture *f)
{
    Hvdrun__AgentHello hello = HVDRUN__AGENT_HELLO__INIT;
    link_send_message(f->agent, FRAME_HELLO, 0, &hello.base);
    link_flush(f->agent);
    run_turns(f->loop, 3);
    assert_int_equal(f->node->state, NODE_UP);
}

/* In a mass start, an agent may need longer for its HELLO than it may be silent afterwards. */
static void test_an_agent_that_starts_slowly(void **state)
{
    struct fixture *f = *state;
    int64_t at_ms = 0;
    stop_clock(f);
    tick_until(f, &at_ms, 29000);
    assert_int_equal(f->closed, 0);
    say_hello(f);
    tick_until(f, &at_ms, 29000 + 4000);
    assert_int_equal(f->closed, 0);
    tick_until(f, &at_ms, 29000 + 5000);
    expect_end(f, "no heartbeat for 5.0 s");
    unit_clock_run();
}

static void test_an_agent_that_never_says_hello(void **state)
{
    struct fixture *f = *state;
    int64_t at_ms = 0;
    stop_clock(f);
    tick_until(f, &at_ms, 30000);
    expect_end(f, "no heartbeat for 30.0 s");
    assert_int_equal(f->suspected, 0); /* it was to send none */
    unit_clock_run();
}

/* The limit is long enough without a second look. */
static void test_a_doubted_agent_that_never_says_hello(void **state)
{
    struct fixture *f = *state;
    f->node->doubted = true;
    test_an_agent_that_never_says_hello(state);
}

/* The user reads the limit that holds. */
static void test_a_doubted_agent_becomes_suspect(void **state)
{
    struct fixture *f = *state;
    int64_t at_ms = 0;
    stop_clock(f);
    f->node->doubted = true;
    f->node->timeout_ms = 60000;
    say_hello(f);
    tick_until(f, &at_ms, 4000);
    assert_int_equal(f->suspected, 0);
    tick_until(f, &at_ms, 5000);
    assert_int_equal(f->suspected, 1);
    assert_int_equal(f->limit_ms, 120000);
    assert_false(node_link_may_answer(f->node)); /* it does */
    unit_clock_run();
}

/* The agents of this machine get the processor late when it is overloaded. */
static void test_a_silent_agent_of_this_machine_that_is_doubted(void **state)
{
    struct fixture *f = *state;
    int64_t at_ms = 0;
    stop_clock(f);
    f->node->doubted = true;
    say_hello(f);
    tick_until(f, &at_ms, 9000);
    assert_int_equal(f->closed, 0);
    tick_until(f, &at_ms, 10000);
    expect_end(f, "no heartbeat for 10.0 s");
    unit_clock_run();
}

/* The host of the agent is not this machine, and listens with the socket that this returns. */
static int open_door(struct fixture *f, int backlog)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(name);
    int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(bind(door, (struct sockaddr *)&name, length), 0);
    assert_return_code(listen(door, backlog), 0);
    assert_return_code(getsockname(door, (struct sockaddr *)&name, &length), 0);
    f->node->doubted = true;
    f->node->stream.same_machine = false;
    f->node->stream.peer_port = ntohs(name.sin_port);
    snprintf(f->node->stream.peer, sizeof(f->node->stream.peer), "127.0.0.1");
    return door;
}

/* Each silence has a look of its own at a host that is not this machine. */
static void test_a_second_look_at_a_host(void **state)
{
    struct fixture *f = *state;
    int64_t at_ms = 0;
    int door = open_door(f, 8);
    stop_clock(f);
    say_hello(f);
    for (int silence = 0; silence < 2; silence++) {
        assert_true(node_link_may_answer(f->node));
        tick_until(f, &at_ms, at_ms + 3000); /* half of the limit, and a tick */
        run_until(f->loop, f->node->look == NULL);
        assert_false(node_link_may_answer(f->node)); /* it has answered */
        send_heartbeat(f);
        run_turns(f->loop, 3);
    }
    assert_true(node_link_may_answer(f->node));
    assert_int_equal(f->closed, 0);
    unit_clock_run();
    close(door);
}

/* The agent is heard before its host answers: the next silence has its own limit. */
static void test_a_look_that_is_late(void **state)
{
    struct fixture *f = *state;
    int64_t at_ms = 0;
    int door = open_door(f, 0), first = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                               .sin_port = htons(f->node->stream.peer_port)};
    assert_return_code(connect(first, (struct sockaddr *)&name, sizeof(name)), 0); /* no room */
    stop_clock(f);
    say_hello(f);
    tick_until(f, &at_ms, 3000);
    assert_non_null(f->node->look);
    send_heartbeat(f);
    run_turns(f->loop, 3);
    assert_non_null(f->node->look);
    int accepted = accept(door, NULL, NULL);
    run_until(f->loop, f->node->look == NULL);
    assert_true(node_link_may_answer(f->node));
    assert_int_equal(liveness_limit_ms(&f->node->liveness), 5000);
    unit_clock_run();
    close(accepted);
    close(first);
    close(door);
}

#define OTHERS 32 /* so many descriptors the loop serves in its first turn */

static void other_ready(void *context, int what)
{
    (void)what;
    loop_fd_watch(*(struct loop_fd **)context, 0);
}

/* The driver gives nobody up whose bytes it has not read yet, because others came first. */
static void test_what_has_come_is_read_first(void **state)
{
    struct fixture *f = *state;
    int64_t at_ms = 0;
    struct loop_fd *others[OTHERS];
    int ends[2], fds[OTHERS];
    stop_clock(f);
    assert_return_code(fd_socketpair(ends), 0);
    say_hello(f);
    tick_until(f, &at_ms, 4000);
    for (int i = 0; i < OTHERS; i++) {
        fds[i] = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
        others[i] = loop_fd_create(f->loop, fds[i], other_ready, &others[i]);
        loop_fd_watch(others[i], LOOP_WRITE);
    }
    f->suspected = 0;
    send_heartbeat(f);
    tick_until(f, &at_ms, 5000);
    assert_int_equal(f->closed, 0);
    assert_int_equal(f->suspected, 0);
    unit_clock_run();
    for (int i = 0; i < OTHERS; i++) {
        loop_fd_destroy(others[i]);
        close(fds[i]);
    }
    close(ends[0]);
    close(ends[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_exit_comes_after_the_end),
        TEST(test_the_exit_comes_before_the_end),
        TEST(test_a_status_that_means_a_signal),
        TEST(test_an_exit_that_says_nothing),
        TEST(test_an_exit_that_does_not_come),
        TEST(test_the_transport_knows_more),
        TEST(test_an_agent_that_heard_nothing),
        TEST(test_a_driver_that_stood_still),
        TEST(test_a_farewell_that_cannot_be_read),
        TEST(test_an_agent_that_starts_slowly),
        TEST(test_an_agent_that_never_says_hello),
        TEST(test_a_doubted_agent_that_never_says_hello),
        TEST(test_a_doubted_agent_becomes_suspect),
        TEST(test_a_silent_agent_of_this_machine_that_is_doubted),
        TEST(test_a_second_look_at_a_host),
        TEST(test_a_look_that_is_late),
        TEST(test_what_has_come_is_read_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
