/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/worker_pids.h"

#define COUNT 20

/* All of them begin at one place of the table, which has 64: each has to look further. */
static pid_t pid_of(int index)
{
    return (pid_t)(3 + 64 * index);
}

static void fill(struct worker_pids *pids, struct worker *workers)
{
    worker_pids_init(pids, workers, COUNT);
    for (int i = 0; i < COUNT; i++) {
        workers[i] = (struct worker){.pid = pid_of(i), .state = WORKER_RUNNING};
        worker_pids_add(pids, i);
    }
}

static void test_find(void **state)
{
    (void)state;
    struct worker workers[COUNT];
    struct worker_pids pids;
    fill(&pids, workers);
    for (int i = 0; i < COUNT; i++)
        assert_ptr_equal(worker_pids_find(&pids, pid_of(i)), &workers[i]);
    assert_null(worker_pids_find(&pids, pid_of(COUNT)));
    assert_null(worker_pids_find(&pids, 4));
    worker_pids_clear(&pids);
}

/* The kernel gives a pid again: the worker that had it has ended. */
static void test_ended(void **state)
{
    (void)state;
    struct worker workers[COUNT];
    struct worker_pids pids;
    fill(&pids, workers);
    workers[3].state = WORKER_EXITED;
    assert_null(worker_pids_find(&pids, pid_of(3)));
    assert_ptr_equal(worker_pids_find(&pids, pid_of(4)), &workers[4]);
    workers[7].pid = pid_of(3); /* another worker, and the same pid */
    worker_pids_add(&pids, 7);
    assert_ptr_equal(worker_pids_find(&pids, pid_of(3)), &workers[7]);
    worker_pids_clear(&pids);
}

/* The table stays large enough to have a free place: a search always ends. */
static void test_small(void **state)
{
    (void)state;
    struct worker worker = {.pid = 1, .state = WORKER_RUNNING};
    struct worker_pids pids;
    worker_pids_init(&pids, &worker, 0);
    assert_null(worker_pids_find(&pids, 1));
    worker_pids_clear(&pids);
    worker_pids_init(&pids, &worker, 1);
    worker_pids_add(&pids, 0);
    assert_ptr_equal(worker_pids_find(&pids, 1), &worker);
    worker_pids_clear(&pids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_ended),
        cmocka_unit_test(test_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
