/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that start one by one, and side by side in threads. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "agent/crew_start.h"
#include "agent_fixture.h"
#include "io/spawners.h"

#define WORKERS 100

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

/* One node that runs all of them: each ends with its rank as the status. */
static Hvdrun__Prepare *prepare_all(void)
{
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)"exit $HOROVOD_RANK"};
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
    message.pty_seat = -1;
    size_t size = hvdrun__prepare__get_packed_size(&message);
    uint8_t *bytes AUTO_FREE = mem_alloc(size);
    hvdrun__prepare__pack(&message, bytes);
    return hvdrun__prepare__unpack(NULL, size, bytes);
}

static void ignore(void *context, struct worker *worker)
{
    (void)context, (void)worker;
}

static void fill(struct fixture *f, struct spawners *spawners)
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
    if (crew_setup_fill(&f->setup, &f->config, prepare_all(), &ops, NULL, &err) < 0)
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

static void start_all(struct spawners *spawners)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    fill(f, spawners);
    crew_start_workers(&f->setup, NULL, f->workers, 0, 40, NULL);
    assert_int_equal(f->workers[40].state, WORKER_PLANNED);
    crew_start_workers(&f->setup, NULL, f->workers, 40, WORKERS, NULL);
    for (int i = 0; i < WORKERS; i++)
        expect_end(&f->workers[i], i);
    for (int i = 0; i < WORKERS; i++)
        worker_destroy(&f->workers[i]);
    fd_close(&f->shared.null_fd);
    crew_setup_destroy(&f->setup);
    mpi_host_destroy(f->mpi);
    modules_destroy(f->config.modules);
    bench_close(&f->bench);
    free(f);
}

static void test_one_by_one(void **state)
{
    (void)state;
    start_all(NULL);
}

static void test_side_by_side(void **state)
{
    (void)state;
    struct spawners *spawners = spawners_create(3);
    assert_non_null(spawners);
    start_all(spawners);
    spawners_destroy(spawners);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_by_one),
        cmocka_unit_test(test_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
