/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of workers: which of them have the same time, because nobody can tell which was first.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "agent/agent_state.h"
#include "agent/crew_config.h"
#include "agent/crews.h"
#include "agent/mpi_host.h"
#include "base/fd.h"
#include "base/mem.h"
#include "loop_fixture.h"

#define WORKERS 4 /* of each crew */
#define SEATS (2 * WORKERS)

/* It stops, and exits as a signal says. */
static const char script[] = "trap 'exit 0' USR1; trap 'exit 1' USR2; kill -STOP $$; sleep 600";

struct fixture {
    struct loop *loop;  /* of the agent: it runs only while workers start */
    struct loop *other; /* of the driver */
    struct link *driver;
    struct post post;
    struct stream_pool pool;
    struct node_facts facts;
    sigset_t mask;
    struct mpi_host *mpi;
    struct modules *modules;
    struct crews *crews;
    int64_t now_ns;
    pid_t pids[SEATS];
    uint64_t when_ns[SEATS];   /* as the driver hears it; 0: it has not */
    uint64_t ending_ns[SEATS]; /* likewise */
};

static void ignore(void *context)
{
    (void)context;
}

static void ignore_frame(void *context, const struct frame_header *header, const uint8_t *body)
{
    (void)context, (void)header, (void)body;
}

static void ignore_end(void *context, const char *reason)
{
    (void)context, (void)reason;
}

static void hear(void *context, const struct frame_header *header, const uint8_t *body)
{
    struct fixture *f = context;
    if (header->type != FRAME_EXITED)
        return;
    Hvdrun__Exited *message = hvdrun__exited__unpack(NULL, header->length, body);
    assert_in_range(message->seat, 0, SEATS - 1);
    f->when_ns[message->seat] = message->when_ns;
    f->ending_ns[message->seat] = message->ending_ns;
    hvdrun__exited__free_unpacked(message, NULL);
}

static Hvdrun__Prepare *prepare(uint32_t first_seat)
{
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)script};
    char *hosts[] = {(char *)"a"};
    uint32_t ranks[] = {WORKERS};
    Hvdrun__App app = HVDRUN__APP__INIT, *apps[] = {&app};
    Hvdrun__Worker each[WORKERS], *workers[WORKERS];
    Hvdrun__Prepare message = HVDRUN__PREPARE__INIT;
    app.argv = argv;
    app.n_argv = 3;
    app.mpi = (char *)"none";
    for (uint32_t i = 0; i < WORKERS; i++) {
        each[i] = (Hvdrun__Worker)HVDRUN__WORKER__INIT;
        each[i].rank = each[i].local_rank = i;
        each[i].seat = first_seat + i;
        workers[i] = &each[i];
    }
    message.size = message.local_size = WORKERS;
    message.host = hosts[0];
    message.hosts = hosts;
    message.host_ranks = ranks;
    message.n_hosts = message.n_host_ranks = message.n_apps = 1;
    message.apps = apps;
    message.workers = workers;
    message.n_workers = WORKERS;
    message.pty_seat = -1;
    message.first_seat = first_seat;
    size_t size = hvdrun__prepare__get_packed_size(&message);
    uint8_t *bytes AUTO_FREE = mem_alloc(size);
    hvdrun__prepare__pack(&message, bytes);
    return hvdrun__prepare__unpack(NULL, size, bytes);
}

static void note_pid(void *context, uint32_t seat, pid_t pid)
{
    struct fixture *f = context;
    siginfo_t info;
    f->pids[seat] = pid;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT), 0);
}

static void add_crew(struct fixture *f, uint32_t epoch)
{
    struct crew_config config = {.loop = f->loop,
                                 .post = &f->post,
                                 .epoch = epoch,
                                 .pool = &f->pool,
                                 .facts = &f->facts,
                                 .mpi = f->mpi,
                                 .mask = &f->mask,
                                 .modules = f->modules,
                                 .ready = HVDRUN__READY__INIT,
                                 .job_id = "job"};
    struct crew *crew = crews_add(f->crews, &config, prepare((epoch - 1) * WORKERS));
    Hvdrun__Start start = HVDRUN__START__INIT;
    crew_start(crew, &start);
    run_until(f->loop, crew_live(crew) == WORKERS); /* it may start them in several turns */
    crew_walk_live(crew, note_pid, f);
}

static int setup(void **state)
{
    static const struct link_ops agent = {.frame = ignore_frame, .closed = ignore_end};
    static const struct link_ops driver = {.frame = hear, .closed = ignore_end};
    struct fixture *f = MEM_NEW(
        (struct fixture){.loop = loop_create(NULL), .other = loop_create(NULL), .now_ns = 1000});
    int pair[2];
    assert_int_equal(fd_socketpair(pair), 0);
    post_init(&f->post, link_create(f->loop, pair[0], pair[0], &agent, f, NULL));
    f->driver = link_create(f->other, pair[1], pair[1], &driver, f, NULL);
    f->pool = (struct stream_pool){.loop = f->loop, .post = &f->post, .granted = UINT64_MAX};
    TAILQ_INIT(&f->pool.streams);
    f->facts = (struct node_facts){.hostname = "a", .cpus_allowed = 1};
    sigemptyset(&f->mask);
    f->mpi = mpi_host_create(f->loop, &f->post);
    f->modules = modules_create("/nonexistent");
    f->crews = crews_create(f->loop, ignore, NULL);
    add_crew(f, 1);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int seat = 0; seat < SEATS; seat++) {
        if (f->pids[seat] != 0)
            kill(f->pids[seat], SIGKILL);
    }
    for (int seat = 0; seat < SEATS; seat++) {
        if (f->pids[seat] != 0)
            waitpid(f->pids[seat], NULL, 0);
    }
    crews_destroy(f->crews);
    mpi_host_destroy(f->mpi);
    modules_destroy(f->modules);
    link_destroy(f->driver);
    link_destroy(f->post.link);
    run_turns(f->other, 2);
    run_turns(f->loop, 2);
    loop_destroy(f->other);
    loop_destroy(f->loop);
    free(f);
    return 0;
}

/* It has ended, and the agent does not know yet. */
static void ends(struct fixture *f, int seat, int signal)
{
    siginfo_t info;
    kill(f->pids[seat], signal);
    kill(f->pids[seat], SIGCONT);
    assert_int_equal(waitid(P_PID, (id_t)f->pids[seat], &info, WEXITED | WNOWAIT), 0);
}

static void succeeds(struct fixture *f, int seat)
{
    ends(f, seat, SIGUSR1);
}

static void fails(struct fixture *f, int seat)
{
    ends(f, seat, SIGUSR2);
}

/* The agent waits for it, a little later than for the one before. */
static void reap(struct fixture *f, int seat)
{
    struct reaper_exit exit = {.pid = f->pids[seat], .when_ns = f->now_ns += 1000};
    assert_int_equal(wait4(exit.pid, &exit.wait_status, 0, &exit.usage), exit.pid);
    f->pids[seat] = 0;
    assert_true(crews_exited(f->crews, &exit));
    link_flush(f->post.link);
    run_until(f->other, f->when_ns[seat] != 0);
}

static void expect_tie(struct fixture *f, int first, int second)
{
    reap(f, first);
    reap(f, second);
    assert_int_equal(f->when_ns[first], f->when_ns[second]);
    assert_int_equal(f->ending_ns[first], 0);
    assert_int_equal(f->ending_ns[second], f->when_ns[first]);
}

/* `seen`: the agent saw that the second one was ending, too. */
static void expect_order(struct fixture *f, int first, int second, bool seen)
{
    reap(f, first);
    reap(f, second);
    assert_int_equal(f->ending_ns[second], seen ? f->when_ns[first] : 0);
    assert_int_equal(f->when_ns[second], f->now_ns);
    assert_true(f->when_ns[first] < f->when_ns[second]);
}

static void test_a_success_and_a_failure(void **state)
{
    succeeds(*state, 0);
    fails(*state, 1);
    expect_tie(*state, 0, 1);
}

static void test_a_failure_and_a_success(void **state)
{
    succeeds(*state, 0);
    fails(*state, 1);
    expect_tie(*state, 1, 0);
}

static void test_failures_keep_their_order(void **state)
{
    fails(*state, 0);
    fails(*state, 1);
    expect_order(*state, 1, 0, true);
}

/* After one, another success is never taken for the cause. So a thousand of them cost no more. */
static void test_only_the_first_success_counts(void **state)
{
    succeeds(*state, 0);
    reap(*state, 0);
    succeeds(*state, 1);
    fails(*state, 2);
    expect_order(*state, 1, 2, false);
}

static void test_a_failure_long_after_a_success(void **state)
{
    succeeds(*state, 0);
    reap(*state, 0);
    succeeds(*state, 1);
    fails(*state, 2);
    expect_tie(*state, 2, 1);
}

static void test_a_peer_in_another_crew(void **state)
{
    add_crew(*state, 2);
    succeeds(*state, 1);
    fails(*state, WORKERS + 1);
    expect_tie(*state, 1, WORKERS + 1);
}

static void test_a_success_in_another_crew(void **state)
{
    add_crew(*state, 2);
    succeeds(*state, 1);
    fails(*state, WORKERS + 1);
    expect_tie(*state, WORKERS + 1, 1);
}

static void test_after_one_that_hvdrun_has_ended(void **state)
{
    struct fixture *f = *state;
    crew_end_worker(crews_find(f->crews, 1), 3, SIGKILL, 0);
    reap(f, 3);
    succeeds(f, 0);
    fails(f, 1);
    expect_tie(f, 0, 1);
}

static void test_after_a_success_that_hvdrun_asked_for(void **state)
{
    struct fixture *f = *state;
    succeeds(f, 3);
    crew_end_worker(crews_find(f->crews, 1), 3, SIGTERM, 60000);
    reap(f, 3);
    succeeds(f, 0);
    fails(f, 1);
    expect_tie(f, 0, 1);
}

/* They do not end because hvdrun kills the others. */
static void test_those_that_are_ending_at_the_end_of_the_job(void **state)
{
    struct fixture *f = *state;
    fails(f, 0);
    crews_stop(f->crews);
    fails(f, 1);
    crews_stop(f->crews);
    reap(f, 0);
    reap(f, 1);
    assert_true(f->ending_ns[0] != 0);
    assert_int_equal(f->when_ns[0], f->ending_ns[0]);
    assert_int_equal(f->ending_ns[1], 0);
}

/* A thousand workers that the end of the job ends cost no look. */
static void test_at_the_end_of_the_job(void **state)
{
    struct fixture *f = *state;
    crews_stop(f->crews);
    succeeds(f, 0);
    fails(f, 1);
    expect_order(f, 0, 1, false);
}

/* What failed before has nothing to do with what happens in a later epoch. */
static void test_another_epoch(void **state)
{
    struct fixture *f = *state;
    struct agent agent = {.crews = f->crews};
    struct frame_header header = {.type = FRAME_EPOCH, .epoch = 2};
    fails(f, 0);
    reap(f, 0);
    orders_take(&agent, &header, NULL);
    succeeds(f, 1);
    fails(f, 2);
    expect_tie(f, 1, 2);
}

static void test_after_all_crews(void **state)
{
    struct fixture *f = *state;
    for (int seat = 0; seat < WORKERS; seat++) {
        fails(f, seat);
        reap(f, seat);
    }
    crews_clear(f->crews);
    add_crew(f, 2);
    succeeds(f, WORKERS);
    fails(f, WORKERS + 1);
    expect_tie(f, WORKERS, WORKERS + 1);
}

/* The newcomer may have its seat, and then the driver forgets that it succeeded. */
static void test_a_newcomer_after_a_success(void **state)
{
    struct fixture *f = *state;
    succeeds(f, 0);
    reap(f, 0);
    add_crew(f, 2);
    succeeds(f, 1);
    fails(f, 2);
    expect_tie(f, 1, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_success_and_a_failure),
        TEST(test_a_failure_and_a_success),
        TEST(test_failures_keep_their_order),
        TEST(test_only_the_first_success_counts),
        TEST(test_a_failure_long_after_a_success),
        TEST(test_a_peer_in_another_crew),
        TEST(test_a_success_in_another_crew),
        TEST(test_after_one_that_hvdrun_has_ended),
        TEST(test_after_a_success_that_hvdrun_asked_for),
        TEST(test_those_that_are_ending_at_the_end_of_the_job),
        TEST(test_at_the_end_of_the_job),
        TEST(test_another_epoch),
        TEST(test_after_all_crews),
        TEST(test_a_newcomer_after_a_success),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
