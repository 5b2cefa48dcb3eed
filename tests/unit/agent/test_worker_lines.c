/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of an agent, with workers that behave and others that do not. All are this process. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/sched.h>

#include "agent/agent_fixture.h"
#include "agent/worker_lines.h"
#include "line/line.h"

#define SEAT 3

struct fixture {
    struct bench bench;
    struct worker_lines *lines;
    struct line *line;
    bool is_worker; /* is this process one? */
    uint32_t seat;
};

static bool seat_of(void *context, pid_t session, uint32_t *seat)
{
    const struct fixture *f = context;
    assert_int_equal(session, getsid(0));
    *seat = f->seat;
    return f->is_worker;
}

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    bench_open(&f->bench);
    f->bench.post.epoch = 1;
    f->is_worker = true;
    f->seat = SEAT;
    f->lines = worker_lines_create(f->bench.loop, &f->bench.post, seat_of, f, NULL);
    assert_non_null(f->lines);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    line_close(f->line);
    worker_lines_destroy(f->lines);
    bench_close(&f->bench);
    free(f);
    return 0;
}

static void settle(struct fixture *f)
{
    run_turns(f->bench.loop, 50);
}

static struct line *open_line(struct fixture *f)
{
    struct line *line = line_open(worker_lines_address(f->lines), NULL);
    assert_non_null(line);
    settle(f);
    return line;
}

static int frames_of(const struct fixture *f, enum frame_type type)
{
    int count = 0;
    for (size_t i = 0; i < f->bench.heard.types.length; i++)
        count += (uint8_t)buf_text(&f->bench.heard.types)[i] == (uint8_t)type;
    return count;
}

static void expect_epoch(struct line *line, uint32_t epoch)
{
    struct line_packet packet;
    assert_int_equal(line_receive(line, &packet, NULL), 1);
    assert_int_equal(packet.type, LINE_EPOCH);
    assert_int_equal(packet.epoch, epoch);
}

static void expect_ended(struct line *line, uint32_t epoch, uint32_t rank)
{
    struct line_packet packet;
    assert_int_equal(line_receive(line, &packet, NULL), 1);
    assert_int_equal(packet.type, LINE_ENDED);
    assert_int_equal(packet.epoch, epoch);
    assert_int_equal(packet.ended_count, 1);
    assert_int_equal(packet.ended[0].rank, rank);
    assert_int_equal(packet.ended[0].how, LINE_KILLED);
    assert_int_equal(packet.ended[0].code, 9);
}

static void expect_nothing(struct line *line)
{
    struct line_packet packet;
    assert_int_equal(line_receive(line, &packet, NULL), 0);
}

static void expect_closed(struct line *line)
{
    struct line_packet packet;
    int result;
    do
        result = line_receive(line, &packet, NULL);
    while (result > 0);
    assert_int_equal(result, -1);
    line_close(line);
}

/* RANKS_ENDED with `count` ranks from `first` on. */
static void ended(struct fixture *f, uint32_t epoch, uint32_t first, size_t count)
{
    uint32_t *lists = mem_array(3 * count + 1, sizeof(*lists));
    Hvdrun__RanksEnded message = HVDRUN__RANKS_ENDED__INIT;
    for (size_t i = 0; i < count; i++) {
        lists[i] = first + (uint32_t)i;
        lists[count + i] = LINE_KILLED;
        lists[2 * count + i] = 9;
    }
    message.ranks = lists;
    message.how = lists + count;
    message.code = lists + 2 * count;
    message.n_ranks = message.n_how = message.n_code = count;
    worker_lines_ended(f->lines, epoch, &message);
    free(lists);
    settle(f);
}

static void report_stall(struct line *line, uint32_t set)
{
    struct line_packet packet = {.type = LINE_STALLED, .set = set, .operation = "allreduce"};
    line_ranks_add(&packet.missing, 3);
    assert_int_equal(line_send(line, &packet), 1);
}

static void test_a_peer_ends(void **state)
{
    struct fixture *f = *state;
    f->line = open_line(f);
    assert_int_equal(frames_of(f, FRAME_LINE_OPENED), 1);
    expect_epoch(f->line, 1);
    ended(f, 1, 7, 1);
    expect_ended(f->line, 1, 7);
    ended(f, 2, 8, 1); /* of another epoch */
    expect_nothing(f->line);
}

/* A worker that comes later learns of those that have ended before. The driver is not asked again.
 */
static void test_a_late_worker(void **state)
{
    struct fixture *f = *state;
    f->line = open_line(f);
    ended(f, 1, 7, 1);
    struct line *late = open_line(f);
    expect_epoch(late, 1);
    expect_ended(late, 1, 7);
    line_close(late);
    assert_int_equal(frames_of(f, FRAME_LINE_OPENED), 1);
}

static void test_the_next_epoch(void **state)
{
    struct fixture *f = *state;
    f->line = open_line(f);
    ended(f, 1, 7, 1);
    worker_lines_begin(f->lines, 1); /* nothing new */
    worker_lines_begin(f->lines, 2);
    settle(f);
    expect_epoch(f->line, 1);
    expect_ended(f->line, 1, 7);
    expect_epoch(f->line, 2);
    expect_nothing(f->line);
    assert_int_equal(frames_of(f, FRAME_LINE_OPENED), 2); /* of both epochs */
    ended(f, 2, 0, 1);
    expect_ended(f->line, 2, 0);
}

/* It gets all of them once it reads, and the agent keeps nothing for it meanwhile. */
static void test_a_worker_that_does_not_read(void **state)
{
    struct fixture *f = *state;
    const uint32_t total = 200000;
    f->line = open_line(f);
    for (uint32_t first = 0; first < total; first += 1000)
        ended(f, 1, first, 1000);
    uint32_t next = 0;
    struct line_packet packet;
    expect_epoch(f->line, 1);
    for (int idle = 0; next < total && idle < 100; idle++) {
        while (line_receive(f->line, &packet, NULL) == 1) {
            assert_int_equal(packet.type, LINE_ENDED);
            for (size_t i = 0; i < packet.ended_count; i++)
                assert_int_equal(packet.ended[i].rank, next++);
            idle = 0;
        }
        settle(f);
    }
    assert_int_equal(next, total);
}

static void test_stalls_and_progress(void **state)
{
    struct fixture *f = *state;
    struct line_packet packet = {.type = LINE_PROGRESS, .operations = 41};
    uint64_t operations = 7;
    f->line = open_line(f);
    assert_false(worker_lines_progress(f->lines, SEAT, &operations));
    assert_int_equal(operations, 0);
    report_stall(f->line, 0);
    assert_int_equal(line_send(f->line, &packet), 1);
    settle(f);
    assert_int_equal(frames_of(f, FRAME_STALL), 1);
    assert_true(worker_lines_progress(f->lines, SEAT, &operations));
    assert_int_equal(operations, 41);
    packet = (struct line_packet){.type = LINE_GOES_ON, .set = 0};
    assert_int_equal(line_send(f->line, &packet), 1);
    assert_int_equal(line_send(f->line, &packet), 1); /* it is over already */
    settle(f);
    assert_int_equal(frames_of(f, FRAME_STALL), 2);
}

/* The driver learns that a stall is over when the line closes. */
static void test_the_worker_ends_in_a_stall(void **state)
{
    struct fixture *f = *state;
    struct line *line = open_line(f);
    report_stall(line, 0);
    report_stall(line, 4);
    line_close(line);
    settle(f);
    assert_int_equal(frames_of(f, FRAME_STALL), 4);
}

/* However much a worker reports, little of it reaches the driver. */
static void test_a_flood_of_stalls(void **state)
{
    struct fixture *f = *state;
    f->line = open_line(f);
    for (uint32_t i = 0; i < 2000; i++) {
        report_stall(f->line, i);
        if (i % 10 == 0)
            settle(f);
    }
    settle(f);
    assert_in_range(frames_of(f, FRAME_STALL), 1, 8); /* sets, of which none goes on */
}

static void expect_hosts(struct line *line)
{
    struct line_packet packet;
    assert_int_equal(line_receive(line, &packet, NULL), 1);
    assert_int_equal(packet.type, LINE_HOSTS);
}

/* Only the worker that is meant hears of it. */
static void test_changed_hosts(void **state)
{
    struct fixture *f = *state;
    f->line = open_line(f);
    f->seat = SEAT + 1;
    struct line *other = open_line(f);
    expect_epoch(f->line, 1);
    expect_epoch(other, 1);
    assert_true(worker_lines_hosts(f->lines, SEAT));
    expect_hosts(f->line);
    expect_nothing(f->line);
    expect_nothing(other);
    assert_false(worker_lines_hosts(f->lines, SEAT + 2));
    line_close(other);
    settle(f);
    assert_false(worker_lines_hosts(f->lines, SEAT + 1));
}

/* For a worker that does not read, any number of changes is one. */
static void test_many_changes(void **state)
{
    struct fixture *f = *state;
    struct line_packet packet;
    int hosts = 0;
    f->line = open_line(f);
    ended(f, 1, 0, 200000);
    for (int i = 0; i < 1000; i++)
        worker_lines_hosts(f->lines, SEAT);
    for (int idle = 0; idle < 20; idle++) {
        for (; line_receive(f->line, &packet, NULL) == 1; idle = 0)
            hosts += packet.type == LINE_HOSTS;
        settle(f);
    }
    assert_int_equal(hosts, 1);
}

static void test_rubbish_closes_the_line(void **state)
{
    struct fixture *f = *state;
    f->line = open_line(f);
    struct line *bad = open_line(f);
    assert_int_equal(send(line_fd(bad), "\xff\x10rubbish", 9, 0), 9);
    settle(f);
    expect_closed(bad);
    ended(f, 1, 7, 1); /* the other one goes on */
    expect_epoch(f->line, 1);
    expect_ended(f->line, 1, 7);
}

static void test_packets_of_an_agent_have_no_effect(void **state)
{
    struct fixture *f = *state;
    f->line = open_line(f);
    struct line_packet packet = {.type = LINE_ENDED, .epoch = 1, .ended_count = 1};
    assert_int_equal(line_send(f->line, &packet), 1);
    settle(f);
    expect_epoch(f->line, 1);
    expect_nothing(f->line);
}

static void test_only_workers_get_a_line(void **state)
{
    struct fixture *f = *state;
    f->is_worker = false;
    expect_closed(open_line(f));
    assert_int_equal(frames_of(f, FRAME_LINE_OPENED), 0);
}

/* A child with this number; 0: any. -1: this process may not choose, or the number is in use. */
static pid_t fork_as(pid_t number)
{
    struct clone_args args = {.exit_signal = SIGCHLD};
    if (number != 0) {
        args.set_tid = (uintptr_t)&number;
        args.set_tid_size = 1;
    }
    return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* A stranger connects and ends. When the agent looks, a process of a worker has its number. */
static void test_a_number_that_came_back(void **state)
{
    struct fixture *f = *state;
    pid_t stranger = fork_as(0);
    assert_true(stranger >= 0);
    if (stranger == 0)
        _exit(line_open(worker_lines_address(f->lines), NULL) == NULL);
    int status = 0;
    assert_int_equal(waitpid(stranger, &status, 0), stranger);
    assert_int_equal(status, 0);
    pid_t other = fork_as(stranger);
    if (other < 0)
        skip();
    if (other == 0) {
        pause();
        _exit(0);
    }
    settle(f);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    assert_int_equal(frames_of(f, FRAME_LINE_OPENED), 0);
}

static bool kernel_tells_peers(void)
{
    int ends[2], process = -1;
    socklen_t length = sizeof(process);
    assert_int_equal(fd_socketpair(ends), 0);
    bool tells = getsockopt(ends[0], SOL_SOCKET, 77 /* SO_PEERPIDFD */, &process, &length) == 0;
    fd_close(&process);
    fd_close(&ends[0]);
    fd_close(&ends[1]);
    return tells;
}

/* The agent has a descriptor for the connection, and none to ask the kernel who it is. */
static void test_no_descriptor_to_ask(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, few;
    if (!kernel_tells_peers())
        skip();
    f->line = line_open(worker_lines_address(f->lines), NULL);
    assert_non_null(f->line);
    int next = dup(STDERR_FILENO);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = (rlim_t)next + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    settle(f);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(frames_of(f, FRAME_LINE_OPENED), 0);
}

/* A worker may end before the agent looks. What it said counts. */
static void test_a_worker_that_has_ended(void **state)
{
    struct fixture *f = *state;
    siginfo_t how;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(line_open(worker_lines_address(f->lines), NULL) == NULL);
    assert_int_equal(waitid(P_PID, (id_t)child, &how, WEXITED | WNOWAIT), 0);
    settle(f);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(frames_of(f, FRAME_LINE_OPENED), 1);
}

static void test_few_lines_for_a_worker(void **state)
{
    struct fixture *f = *state;
    struct line *list[4];
    for (size_t i = 0; i < 4; i++)
        list[i] = open_line(f);
    expect_closed(open_line(f));
    f->seat = SEAT + 1; /* another worker */
    f->line = open_line(f);
    expect_epoch(f->line, 1);
    for (size_t i = 0; i < 4; i++)
        line_close(list[i]);
    settle(f);
    f->seat = SEAT;
    struct line *again = open_line(f); /* there is room again */
    expect_epoch(again, 1);
    line_close(again);
}

static void test_bad_frames_of_the_driver(void **state)
{
    struct fixture *f = *state;
    f->line = open_line(f);
    expect_epoch(f->line, 1);
    Hvdrun__RanksEnded message = HVDRUN__RANKS_ENDED__INIT;
    uint32_t rank = 1;
    message.ranks = &rank;
    message.n_ranks = 1; /* without the other lists */
    worker_lines_ended(f->lines, 1, &message);
    settle(f);
    expect_nothing(f->line);
}

int main(void)
{
    /* The caller's session has no number here if it was begun outside of this PID namespace. Nobody
     * but the leader of a process group is refused a session of its own. */
    setsid();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_peer_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_late_worker, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_next_epoch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_worker_that_does_not_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stalls_and_progress, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_worker_ends_in_a_stall, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_flood_of_stalls, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changed_hosts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rubbish_closes_the_line, setup, teardown),
        cmocka_unit_test_setup_teardown(test_packets_of_an_agent_have_no_effect, setup, teardown),
        cmocka_unit_test_setup_teardown(test_only_workers_get_a_line, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_number_that_came_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_descriptor_to_ask, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_worker_that_has_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(test_few_lines_for_a_worker, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_frames_of_the_driver, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
