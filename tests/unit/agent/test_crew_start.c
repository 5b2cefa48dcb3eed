/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that start one by one, and side by side in threads. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/crew.h"
#include "agent/crew_config.h"
#include "agent/crew_setup.h"
#include "agent/worker.h"
#include "agent_fixture.h"
#include "io/threads.h"

#define WORKERS 200 /* more than start in one turn of the loop */

static const char numbered[] = "exit $HOROVOD_RANK";
static const char stopped[] = "exit 0";
static const char lasting[] = "exec sleep 600";

struct fixture {
    struct bench bench;
    struct node_facts facts;
    struct mpi_host *mpi;
    sigset_t mask;
    struct crew_config config;
    struct crew_setup setup;
    struct worker_shared shared;
    struct worker workers[WORKERS];
};

/* One node that runs all of them. */
static Hvdrun__Prepare *prepare_all(const char *script, int pty_seat)
{
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)script};
    char *hosts[] = {(char *)"a"};
    uint32_t ranks[] = {WORKERS};
    Hvdrun__App app = HVDRUN__APP__INIT;
    Hvdrun__Worker each[WORKERS], *workers[WORKERS];
    Hvdrun__Prepare message = HVDRUN__PREPARE__INIT;
    Hvdrun__App *apps[] = {&app};
    app.argv = argv;
    app.n_argv = 3;
    app.mpi = (char *)"none";
    for (uint32_t i = 0; i < WORKERS; i++) {
        each[i] = (Hvdrun__Worker)HVDRUN__WORKER__INIT;
        each[i].rank = each[i].seat = each[i].local_rank = i;
        workers[i] = &each[i];
    }
    message.size = message.local_size = WORKERS;
    message.host = hosts[0];
    message.hosts = hosts;
    message.host_ranks = ranks;
    message.n_hosts = message.n_host_ranks = 1;
    message.apps = apps;
    message.n_apps = 1;
    message.workers = workers;
    message.n_workers = WORKERS;
    message.pty_seat = pty_seat;
    message.stop_all = script == stopped;
    size_t size = hvdrun__prepare__get_packed_size(&message);
    uint8_t *bytes AUTO_FREE = mem_alloc(size);
    hvdrun__prepare__pack(&message, bytes);
    return hvdrun__prepare__unpack(NULL, size, bytes);
}

static void ignore(void *context, struct worker *worker)
{
    (void)context, (void)worker;
}

static void fill(struct fixture *f, struct spawners *spawners, const char *script, int pty_seat)
{
    static const struct mpi_job_ops ops;
    struct error err = ERROR_INIT;
    bench_open(&f->bench);
    sigemptyset(&f->mask);
    f->facts = (struct node_facts){.hostname = "a", .cpus_allowed = 1};
    f->mpi = mpi_host_create(f->bench.loop, &f->bench.post);
    f->config = (struct crew_config){.loop = f->bench.loop,
                                     .post = &f->bench.post,
                                     .epoch = 1,
                                     .facts = &f->facts,
                                     .mpi = f->mpi,
                                     .mask = &f->mask,
                                     .modules = modules_create("/nonexistent"),
                                     .spawners = spawners,
                                     .job_id = "job"};
    if (crew_setup_fill(&f->setup, &f->config, prepare_all(script, pty_seat), &ops, NULL, &err) < 0)
        fail_msg("%s", err.text);
    Hvdrun__Start start = HVDRUN__START__INIT;
    crew_setup_env(&f->setup, &start);
    f->shared = (struct worker_shared){.loop = f->bench.loop,
                                       .post = &f->bench.post,
                                       .pool = &f->bench.pool,
                                       .null_fd = fd_open("/dev/null", O_RDONLY | O_CLOEXEC, 0),
                                       .changed = ignore};
    for (uint32_t i = 0; i < WORKERS; i++)
        worker_init(&f->workers[i], &f->shared, i, i);
}

static void expect_end(const struct worker *worker, int expected)
{
    int status = 0;
    assert_int_equal(worker->state, WORKER_RUNNING);
    assert_true(worker->pidfd >= 0);
    assert_non_null(worker->streams[0]);
    assert_non_null(worker->streams[1]);
    assert_int_equal(waitpid(worker->pid, &status, 0), worker->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), expected);
}

static struct fixture *start_all(struct spawners *spawners, const char *script, int pty_seat)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    fill(f, spawners, script, pty_seat);
    for (int from = 0; from < WORKERS;) {
        int to = from + 40 < WORKERS ? from + 40 : WORKERS;
        int count = crew_start_workers(&f->setup, NULL, f->workers, from, to, NULL);
        assert_in_range(count, 1, to - from);
        from += count;
        if (from < WORKERS)
            assert_int_equal(f->workers[from].state, WORKER_PLANNED);
    }
    return f;
}

static void close_all(struct fixture *f)
{
    for (int i = 0; i < WORKERS; i++)
        worker_destroy(&f->workers[i]);
    fd_close(&f->shared.null_fd);
    crew_setup_destroy(&f->setup);
    mpi_host_destroy(f->mpi);
    modules_destroy(f->config.modules);
    bench_close(&f->bench);
    free(f);
}

static void expect_order(struct spawners *spawners)
{
    struct fixture *f = start_all(spawners, numbered, -1);
    for (int i = 0; i < WORKERS; i++)
        expect_end(&f->workers[i], i);
    close_all(f);
}

static void test_one_by_one(void **state)
{
    (void)state;
    expect_order(NULL);
}

static void test_side_by_side(void **state)
{
    expect_order(*state);
}

/* How many of its descriptors are a terminal, or the other side of one. */
static int terminals_of(pid_t pid)
{
    char path[64], target[64];
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
        ssize_t length = readlink(path, target, sizeof(target) - 1);
        target[length < 0 ? 0 : length] = '\0';
        count += strstr(target, "/pts/") != NULL || strstr(target, "ptmx") != NULL;
    }
    return count;
}

/* What is made for one worker in one thread is not inherited by those of the others. */
static void test_only_one_has_the_terminal(void **state)
{
    struct fixture *f = start_all(*state, lasting, 3);
    int terminals[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(f->workers[i].state, WORKER_RUNNING);
        terminals[i] = terminals_of(f->workers[i].pid);
        kill(f->workers[i].pid, SIGKILL);
        assert_int_equal(waitpid(f->workers[i].pid, NULL, 0), f->workers[i].pid);
    }
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(terminals[i], i == 3 ? 3 : 0);
    close_all(f);
}

/* A thread traces the process that it has started for a moment, and leaves it stopped. */
static void test_stopped_at_the_start(void **state)
{
    struct fixture *f = start_all(*state, stopped, -1);
    for (int i = 0; i < WORKERS; i++) {
        assert_true(f->workers[i].held);
        assert_int_equal(waitpid(f->workers[i].pid, NULL, WNOHANG), 0);
        kill(f->workers[i].pid, SIGCONT);
        expect_end(&f->workers[i], 0);
    }
    close_all(f);
}

/* Those that cannot start are reported in their order, and leave nothing open. */
static void test_none_can_start(void **state)
{
    int before = open("/dev/null", O_RDONLY);
    close(before);
    struct fixture *f = mem_alloc(sizeof(*f));
    fill(f, *state, numbered, -1);
    free(f->setup.apps.items[0].path);
    f->setup.apps.items[0].path = mem_strdup("/no/such/program");
    for (int from = 0; from < WORKERS;)
        from += crew_start_workers(&f->setup, NULL, f->workers, from,
                                   from + 30 < WORKERS ? from + 30 : WORKERS, NULL);
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(f->workers[i].state, WORKER_FINISHED);
        assert_true(f->workers[i].bad);
        assert_int_equal(f->workers[i].pid, 0);
    }
    close_all(f);
    int after = open("/dev/null", O_RDONLY);
    close(after);
    assert_int_equal(before, after);
}

struct whole {
    struct fixture *f;
    struct crew *crew;
    int finished; /* calls */
};

static void all_have_finished(void *context)
{
    struct whole *whole = context;
    whole->finished++;
    loop_stop(whole->f->bench.loop);
}

static void reaped(void *context, const struct reaper_exit *exit)
{
    struct whole *whole = context;
    (void)crew_exited(whole->crew, exit, false);
}

static void on_sigchld(void *context, int signal, int sender)
{
    struct whole *whole = context;
    (void)signal, (void)sender;
    reaper_collect(whole->f->config.reaper);
}

/* A crew that is stopped while it starts has finished when those have that were started. */
static void test_stopped_in_the_middle(void **state)
{
    static const int signals[] = {SIGCHLD, 0};
    struct whole whole = {.f = mem_alloc(sizeof(*whole.f))};
    struct fixture *f = whole.f;
    struct post nobody; /* hears what the crew says */
    fill(f, *state, numbered, -1);
    post_init(&nobody, NULL);
    f->config.post = f->bench.pool.post = &nobody;
    f->config.reaper = reaper_create(reaped, &whole);
    f->config.pool = &f->bench.pool;
    f->config.finished = all_have_finished;
    f->config.context = &whole;
    struct loop_signals *watch =
        loop_signals_create(f->bench.loop, signals, on_sigchld, &whole, NULL);
    whole.crew = crew_create(&f->config, prepare_all(numbered, -1));
    Hvdrun__Start start = HVDRUN__START__INIT;
    crew_start(whole.crew, &start);
    assert_true(crew_live(whole.crew) > 0);
    crew_stop(whole.crew);
    run_loop(f->bench.loop);
    assert_int_equal(whole.finished, 1);
    assert_true(crew_is_over(whole.crew));
    crew_destroy(whole.crew);
    loop_signals_destroy(watch);
    reaper_destroy(f->config.reaper);
    close_all(f);
}

static int open_threads(void **state)
{
    *state = spawners_create(3);
    return *state == NULL;
}

static int close_threads(void **state)
{
    spawners_destroy(*state);
    return 0;
}

#define WITH_THREADS(test) cmocka_unit_test_setup_teardown(test, open_threads, close_threads)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_by_one),
        WITH_THREADS(test_side_by_side),
        WITH_THREADS(test_only_one_has_the_terminal),
        WITH_THREADS(test_stopped_at_the_start),
        WITH_THREADS(test_none_can_start),
        WITH_THREADS(test_stopped_in_the_middle),
        cmocka_unit_test(test_stopped_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
