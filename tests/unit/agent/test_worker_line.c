/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/worker_lines.h"
#include "base/fd.h"
#include "base/mem.h"
#include "line/packet.h"
#include "loop_fixture.h"
#include "wire/control.pb-c.h"

#define SEAT 3
#define STALLS_MAX 100

/* One line, with the worker's end of it and a driver that keeps the STALL frames. */
struct fixture {
    struct loop *loop;
    struct link *driver;
    struct post post;
    struct worker_lines *lines;
    int worker;
    Hvdrun__Stall *stalls[STALLS_MAX];
    size_t count;
};

static void take_frame(void *context, const struct frame_header *header, const uint8_t *body)
{
    struct fixture *f = context;
    if (header->type == FRAME_LINE_OPENED)
        return;
    assert_int_equal(header->type, FRAME_STALL);
    assert_true(f->count < STALLS_MAX);
    f->stalls[f->count] = hvdrun__stall__unpack(NULL, header->length, body);
    assert_non_null(f->stalls[f->count++]);
}

static void ignore_frame(void *context, const struct frame_header *header, const uint8_t *body)
{
    (void)context, (void)header, (void)body;
}

static void ignore_end(void *context, const char *reason)
{
    (void)context, (void)reason;
}

static bool seat_of(void *context, pid_t session, uint32_t *seat)
{
    (void)context, (void)session;
    *seat = SEAT;
    return true;
}

static int connect_to(const char *address)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    size_t length = strlen(address);
    memcpy(name.sun_path + 1, address + 1, length - 1);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    assert_int_equal(connect(fd, (const struct sockaddr *)&name, size), 0);
    return fd;
}

static void settle(struct fixture *f)
{
    run_turns(f->loop, 20);
}

static void expect_closed(struct fixture *f)
{
    assert_false(worker_lines_hosts(f->lines, SEAT));
}

static int setup(void **state)
{
    static const struct link_ops agent_ops = {.frame = ignore_frame, .closed = ignore_end};
    static const struct link_ops driver_ops = {.frame = take_frame, .closed = ignore_end};
    static struct fixture f;
    int pair[2];
    f = (struct fixture){.loop = loop_create(NULL)};
    if (fd_socketpair(pair) < 0)
        return -1;
    post_init(&f.post, link_create(f.loop, pair[0], pair[0], &agent_ops, NULL, NULL));
    f.driver = link_create(f.loop, pair[1], pair[1], &driver_ops, &f, NULL);
    f.post.epoch = 1;
    f.lines = worker_lines_create(f.loop, &f.post, seat_of, NULL, NULL);
    assert_non_null(f.lines);
    f.worker = connect_to(worker_lines_address(f.lines));
    settle(&f);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    worker_lines_destroy(f->lines);
    fd_close(&f->worker);
    link_destroy(f->driver);
    link_destroy(f->post.link);
    run_turns(f->loop, 2);
    loop_destroy(f->loop);
    for (size_t i = 0; i < f->count; i++)
        hvdrun__stall__free_unpacked(f->stalls[i], NULL);
    return 0;
}

static void sends(struct fixture *f, const struct line_packet *packet)
{
    uint8_t bytes[LINE_PACKET_MAX];
    size_t length = line_packet_put(packet, bytes);
    assert_int_equal(send(f->worker, bytes, length, MSG_NOSIGNAL), length);
    settle(f);
}

static void stalls(struct fixture *f, uint32_t set)
{
    struct line_packet packet = {.type = LINE_STALLED, .set = set, .operation = "allreduce"};
    line_ranks_add(&packet.missing, 3);
    sends(f, &packet);
}

static void goes_on(struct fixture *f, uint32_t set)
{
    struct line_packet packet = {.type = LINE_GOES_ON, .set = set};
    sends(f, &packet);
}

static void expect_over(const struct fixture *f, size_t at, uint32_t set)
{
    assert_true(at < f->count);
    assert_true(f->stalls[at]->over);
    assert_int_equal(f->stalls[at]->seat, SEAT);
    assert_int_equal(f->stalls[at]->set, set);
}

static void test_a_stall(void **state)
{
    static const uint32_t missing[] = {3, 3, 8, 9};
    struct fixture *f = *state;
    struct line_packet packet = {.type = LINE_STALLED,
                                 .set = 5,
                                 .seconds = 60,
                                 .others = 2,
                                 .operation = "allreduce",
                                 .name = "grad.17"};
    line_ranks_add(&packet.waiting, 0);
    line_ranks_add(&packet.waiting, 1);
    line_ranks_add(&packet.missing, 3);
    line_ranks_add(&packet.missing, 8);
    line_ranks_add(&packet.missing, 9);
    packet.missing.more = true;
    sends(f, &packet);
    assert_int_equal(f->count, 1);
    const Hvdrun__Stall *stall = f->stalls[0];
    assert_int_equal(stall->seat, SEAT);
    assert_int_equal(stall->set, 5);
    assert_int_equal(stall->seconds, 60);
    assert_int_equal(stall->others, 2);
    assert_string_equal(stall->operation, "allreduce");
    assert_string_equal(stall->name, "grad.17");
    assert_false(stall->over);
    assert_false(stall->more_waiting);
    assert_true(stall->more_missing);
    assert_int_equal(stall->n_waiting, 2);
    assert_int_equal(stall->waiting[0], 0);
    assert_int_equal(stall->waiting[1], 1);
    assert_int_equal(stall->n_missing, 4);
    assert_memory_equal(stall->missing, missing, sizeof(missing));
}

/* Each stall ends once: when its set goes on, or when the line ends. */
static void test_ends_of_stalls(void **state)
{
    struct fixture *f = *state;
    stalls(f, 5);
    stalls(f, 9);
    stalls(f, 7);
    goes_on(f, 9);
    goes_on(f, 9);
    assert_int_equal(f->count, 4);
    expect_over(f, 3, 9);
    fd_close(&f->worker);
    settle(f);
    expect_closed(f);
    assert_int_equal(f->count, 6);
    expect_over(f, 4, 5);
    expect_over(f, 5, 7);
}

static void time_passed(void *context)
{
    loop_stop(context);
}

static void wait_a_little(struct fixture *f)
{
    struct loop_timer *timer = loop_timer_create(f->loop, time_passed, f->loop);
    loop_timer_set(timer, 100);
    loop_run(f->loop);
    loop_timer_destroy(timer);
}

/* Eight sets may stall at once. News of those come again after some time, however often the worker
 * tries. */
static void test_many_sets(void **state)
{
    struct fixture *f = *state;
    for (uint32_t set = 0; set < 8; set++)
        stalls(f, set);
    assert_int_equal(f->count, 8);
    for (int tries = 0; f->count == 8 && tries < 200; tries++) {
        stalls(f, 8); /* one set too many */
        stalls(f, 3);
        wait_a_little(f);
    }
    assert_int_equal(f->count, 9);
    assert_int_equal(f->stalls[8]->set, 3);
}

static void test_progress(void **state)
{
    struct fixture *f = *state;
    struct line_packet packet = {.type = LINE_PROGRESS, .operations = 41};
    uint64_t operations;
    assert_false(worker_lines_progress(f->lines, SEAT, &operations));
    sends(f, &packet);
    assert_true(worker_lines_progress(f->lines, SEAT, &operations));
    assert_int_equal(operations, 41);
}

/* How many questions the worker has got. */
static int questions(const struct fixture *f)
{
    uint8_t bytes[LINE_PACKET_MAX];
    struct line_packet packet;
    int count = 0;
    for (;;) {
        ssize_t length = recv(f->worker, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (length < 0)
            return count;
        assert_int_equal(line_packet_get(bytes, (size_t)length, &packet, NULL), 0);
        count += packet.type == LINE_ASK;
    }
}

/* A worker that does not answer is not asked again at once. */
static void test_a_question(void **state)
{
    struct fixture *f = *state;
    worker_lines_ask(f->lines, false);
    assert_int_equal(questions(f), 1);
    worker_lines_ask(f->lines, false);
    assert_int_equal(questions(f), 0);
    sends(f, &(struct line_packet){.type = LINE_PROGRESS, .operations = 3});
    worker_lines_ask(f->lines, false);
    assert_int_equal(questions(f), 1);
}

/* The round of the question for waits that has come; 0: none. Other packets are ignored. */
static uint32_t round_asked(const struct fixture *f)
{
    uint8_t bytes[LINE_PACKET_MAX];
    struct line_packet packet;
    uint32_t round = 0;
    for (;;) {
        ssize_t length = recv(f->worker, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (length < 0)
            return round;
        assert_int_equal(line_packet_get(bytes, (size_t)length, &packet, NULL), 0);
        round = packet.type == LINE_ASK_WAITS ? packet.round : round;
    }
}

/* A worker that does not read is not asked again, and one that floods is heard for a while. */
static void test_waits(void **state)
{
    struct fixture *f = *state;
    struct line_packet packet = {
        .type = LINE_WAITS, .round = 1, .set = 5, .operation = "allreduce", .name = "los"};
    line_ranks_add(&packet.waiting, 2);
    line_ranks_add(&packet.missing, 3);
    sends(f, &packet); /* nobody has asked */
    assert_int_equal(f->count, 0);
    worker_lines_ask(f->lines, true);
    worker_lines_ask(f->lines, true);
    assert_int_equal(round_asked(f), 1);
    packet.round = 2;
    sends(f, &packet);
    assert_int_equal(f->count, 0);
    packet.round = 1;
    for (int i = 0; i < 50; i++)
        sends(f, &packet);
    assert_int_equal(f->count, 16);
    assert_int_equal(f->stalls[0]->round, 1);
    assert_int_equal(f->stalls[0]->set, 5);
    assert_string_equal(f->stalls[0]->name, "los");
    assert_int_equal(f->stalls[0]->missing[0], 3);
    goes_on(f, 5); /* it was not a report */
    assert_int_equal(f->count, 16);
}

/* What a worker sent before it ended without reading is heard. */
static void test_last_words(void **state)
{
    struct fixture *f = *state;
    struct line_packet packet = {.type = LINE_STALLED, .set = 1, .operation = "barrier"};
    uint8_t bytes[LINE_PACKET_MAX];
    line_ranks_add(&packet.missing, 3);
    size_t length = line_packet_put(&packet, bytes);
    assert_int_equal(send(f->worker, bytes, length, MSG_NOSIGNAL), length);
    fd_close(&f->worker);
    settle(f);
    expect_closed(f);
    assert_int_equal(f->count, 2);
    assert_string_equal(f->stalls[0]->operation, "barrier");
    expect_over(f, 1, 1);
}

/* A line whose worker has gone is closed as soon as something cannot be sent. */
static void test_nobody_is_there(void **state)
{
    struct fixture *f = *state;
    fd_close(&f->worker);
    assert_true(worker_lines_hosts(f->lines, SEAT));
    expect_closed(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static int all_of_them(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_stall),  TEST(test_ends_of_stalls),  TEST(test_many_sets),
        TEST(test_progress), TEST(test_a_question),      TEST(test_last_words),
        TEST(test_waits),    TEST(test_nobody_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* In a session of its own, as an agent's workers: in a container, whoever runs the tests may be in
 * one that this process namespace has no number for. */
int main(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        exit(setsid() > 0 ? all_of_them() : 1);
    }
    bool ended = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
    return ended ? WEXITSTATUS(status) : 1;
}
