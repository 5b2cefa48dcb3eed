/* SPDX-License-Identifier: Apache-2.0 */
/* Which facts of the driver name the rank that others wait for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver/ask_fixture.h"
#include "driver/tell/stalls.h"
#include "features/hang/hang_culprit_driver.h"
#include "features/hang/hang_facts_driver.h"

struct bench {
    struct fixture *f;
    struct hang *hang;
    struct ras_facts *ras;
    struct stall_lines *stalls;
    const char *wanted;
    enum culprit_kind kind;
    int rank;
    bool told;
    struct agents agents;
};

static int begin(void **state)
{
    static struct bench bench;
    static const struct hang_limits limits = {0, 40000};
    if (setup(state) < 0)
        return -1;
    bench = (struct bench){.f = *state, .hang = hang_create(&limits, NULL)};
    agents_begin(&bench.agents, bench.f);
    bench.ras = ras_facts_create();
    bench.f->job.own[PART_hang_waits] = hang_waits_create();
    bench.stalls = stall_lines_create();
    bench.f->job.own[PART_stall_list] = stall_list_create();
    for (int seat = 0; seat < 3; seat++)
        hang_seat(bench.hang, seat, 1);
    *state = &bench;
    return 0;
}

static int end(void **state)
{
    struct bench *bench = *state;
    agents_end(&bench->agents);
    ras_facts_destroy(bench->ras);
    hang_waits_destroy(job_part(&bench->f->job, hang_waits));
    stall_lines_destroy(bench->stalls);
    hang_destroy(bench->hang);
    stall_list_destroy(job_part(&bench->f->job, stall_list));
    *state = bench->f;
    return teardown(state);
}

static void looked(void *context, const struct ask *look)
{
    struct bench *bench = context;
    struct buf text AUTO_BUF = BUF_INIT(10000);
    struct hang_facts facts = {bench->ras, bench->stalls};
    struct culprit culprit = hang_culprit(&bench->f->job, bench->hang, &facts, look, &text);
    assert_string_equal(buf_text(&text), bench->wanted);
    assert_int_equal(culprit.kind, bench->kind);
    assert_int_equal(culprit.rank, bench->rank);
    bench->told = true;
    loop_stop(bench->f->job.loop);
}

static void expect(struct bench *bench, enum culprit_kind kind, int rank, const char *wanted)
{
    bench->kind = kind;
    bench->rank = rank;
    bench->wanted = wanted;
    look_ask(&bench->f->job, LOOK_PYTHON, looked, bench);
    run_loop(bench->f->job.loop);
}

static void writes(struct bench *bench, int seat, const char *text)
{
    tail_add(&bench->f->job.ranks.records[seat].tail, text, strlen(text), SECOND);
}

static void test_nothing_is_known(void **state)
{
    expect(*state, CULPRIT_NONE, -1, "no rank stands out");
}

static void test_lines_of_the_watchdog(void **state)
{
    struct bench *bench = *state;
    writes(bench, 0, "[PG 0 Rank 0] last enqueued work: 9, last completed work: 8\n");
    writes(bench, 1, "[PG 0 Rank 1] last enqueued work: 9, last completed work: 8\nbye\n");
    writes(bench, 2,
           "[PG 0 Rank 2] last enqueued work: 7, last completed work: 7\n"
           "[PG 0 Rank 2] last enqueued work: 8, last completed work: 7\n");
    expect(bench, CULPRIT_BEHIND, 2,
           "rank 2 on b is behind: the last enqueued work is 8, and that of others 9");
    exits(bench->f, 2, false, 0, 6 * SECOND); /* its last work says nothing any more */
    expect(bench, CULPRIT_ENDED, -1,
           "rank 2 on b has ended with status 0, and the others have not");
}

static void launches(struct bench *bench, int seat, uint64_t count)
{
    uint64_t counts[RAS_OPERATIONS] = {[RAS_ALLREDUCE] = count};
    Hvdrun__RasPlace place = HVDRUN__RAS_PLACE__INIT, *list[] = {&place};
    Hvdrun__RankPulse pulse = HVDRUN__RANK_PULSE__INIT;
    place.comm = 5;
    place.counts = counts;
    place.n_counts = RAS_OPERATIONS;
    pulse.ras = list;
    pulse.n_ras = 1;
    ras_facts_take(bench->ras, seat, &pulse);
}

/* The rank on each seat is another one, as in a job of many epochs. */
static void test_numbers_of_nccl(void **state)
{
    struct bench *bench = *state;
    for (int seat = 0; seat < 3; seat++)
        bench->f->job.ranks.records[seat].rank = 2 - seat;
    launches(bench, 0, 1000);
    launches(bench, 1, 999);
    launches(bench, 2, 1000);
    expect(bench, CULPRIT_LAUNCHED, 1, "rank 1 on a is behind: 999 of 1,000 allreduces");
    launches(bench, 1, 1000);
    expect(bench, CULPRIT_NONE, -1, "no rank stands out");
    launches(bench, 0, 1001);
    launches(bench, 1, 1001);
    expect(bench, CULPRIT_LAUNCHED, 0, "rank 0 on b is behind: 1,000 of 1,001 allreduces");
}

#define NOW_NS (5000 * SECOND)

static void stalls(struct bench *bench, uint32_t set, int missing, int64_t age_ns)
{
    struct stall stall = {.seat = 0,
                          .set = set,
                          .seconds = 60,
                          .operation = mem_strdup("allreduce"),
                          .name = mem_strdup("x"),
                          .waiting = {mem_array(2, sizeof(int)), 1, false},
                          .missing = {mem_array(2, sizeof(int)), missing < 0 ? 0 : 1, false},
                          .reported_ns = NOW_NS - age_ns};
    stall.missing.list[0] = missing;
    stall_list_add(job_part(&bench->f->job, stall_list), &stall);
}

static void test_operations_of_libhvd(void **state)
{
    struct bench *bench = *state;
    unit_clock_stop(NOW_NS, 0);
    stalls(bench, 1, -1, 0);            /* nobody is missing */
    stalls(bench, 3, 1, 1000 * SECOND); /* it is not reported any more */
    expect(bench, CULPRIT_NONE, -1, "no rank stands out");
    stalls(bench, 2, 2, 0);
    expect(bench, CULPRIT_STALL, 2,
           "rank 0 waits for rank 2 in allreduce 'x' of process set 2, for 60 s; rank 2 is on b");
    unit_clock_run();
}

/* "0-2" as a list. */
static struct stall_ranks list_of(const char *digits)
{
    struct stall_ranks ranks = {.list = mem_array(strlen(digits) + 1, sizeof(int))};
    for (; *digits != '\0'; digits++)
        ranks.list[ranks.count++] = *digits - '0';
    return ranks;
}

static void waits(struct bench *bench, uint32_t round, uint32_t set, const char *name,
                  const char *waiting, const char *missing)
{
    struct stall stall = {.set = set,
                          .seconds = 5,
                          .operation = mem_strdup("allreduce"),
                          .name = mem_strdup(name),
                          .waiting = list_of(waiting),
                          .missing = list_of(missing)};
    hang_waits_take(job_part(&bench->f->job, hang_waits), &stall, round);
}

/* The name that differs is shown on both sides, and the fewest missing ranks decide. */
static void test_answers_of_libhvd(void **state)
{
    struct bench *bench = *state;
    unit_clock_stop(NOW_NS, 0);
    waits(bench, 1, 0, "los", "2", "01");
    waits(bench, 1, 0, "loss", "01", "2");
    expect(bench, CULPRIT_STALL, 2,
           "ranks 0-1 wait for rank 2 in allreduce 'loss', for 5 s; rank 2 waits for ranks 0-1 in "
           "allreduce 'los', for 5 s; rank 2 is on b");
    waits(bench, 2, 0, "", "", ""); /* nothing waits there any more */
    expect(bench, CULPRIT_NONE, -1, "no rank stands out");
    waits(bench, 2, 0, "y", "0", "12");
    stalls(bench, 0, 1, 0); /* the worker has reported it itself */
    expect(bench, CULPRIT_STALL, 1,
           "rank 0 waits for rank 1 in allreduce 'x', for 60 s; rank 1 is on a");
    hang_waits_forget(job_part(&bench->f->job, hang_waits));
    unit_clock_run();
}

/* Rank 0 waits for rank 1, which waits for rank 2 in another process set. */
static void test_a_chain_of_process_sets(void **state)
{
    struct bench *bench = *state;
    waits(bench, 1, 1, "a", "0", "1");
    waits(bench, 1, 2, "b", "1", "2");
    expect(bench, CULPRIT_STALL, 2,
           "rank 1 waits for rank 2 in allreduce 'b' of process set 2, for 5 s; rank 2 is on b");
    hang_waits_forget(job_part(&bench->f->job, hang_waits));
    expect(bench, CULPRIT_NONE, -1, "no rank stands out");
    for (uint32_t set = 0; set < HANG_WAITS_MAX + 9; set++)
        waits(bench, 1, set, "many", "0", "1");
}

/* A warning that lists all ranks does not tell which of them is late. */
static void test_a_warning_of_horovod(void **state)
{
    static const char warning[] =
        "[W] One or more tensors were submitted to be reduced, gathered or broadcasted by subset "
        "of ranks\nMissing ranks:\n";
    struct bench *bench = *state;
    struct tail *tail = &bench->f->job.ranks.records[0].tail;
    unit_clock_stop(NOW_NS, 0);
    writes(bench, 0, warning);
    writes(bench, 0, "1: [grad.1, grad.2]\n");
    stall_lines_take(bench->stalls, 0, tail, true, NOW_NS);
    expect(bench, CULPRIT_STALL, 1, "Horovod waits for rank 1 in 'grad.1'; rank 1 is on a");
    writes(bench, 0, warning);
    writes(bench, 0, "0: [x]\n1: [y]\n2: [z]\n");
    stall_lines_take(bench->stalls, 0, tail, true, NOW_NS);
    expect(bench, CULPRIT_NONE, -1, "no rank stands out");
    unit_clock_run();
}

/* The agent of a host: a worker is in this function, and a helper thread somewhere else. */
static void answers(struct bench *bench, int node, uint32_t first, uint32_t count,
                    const char *function, const char *doing)
{
    Hvdrun__PythonFrame frame = HVDRUN__PYTHON_FRAME__INIT, other = HVDRUN__PYTHON_FRAME__INIT,
                        *frames[] = {&frame}, *others[] = {&other};
    Hvdrun__PythonStack stacks[4], *list[4];
    Hvdrun__StateReport report = HVDRUN__STATE_REPORT__INIT;
    frame.function = (char *)function;
    frame.file = (char *)"/home/me/train.py";
    frame.line = 7;
    other.function = (char *)"helper";
    other.file = (char *)"";
    for (uint32_t i = 0; i < 2 * count; i++) {
        stacks[i] = (Hvdrun__PythonStack)HVDRUN__PYTHON_STACK__INIT;
        stacks[i].seat = first + i / 2;
        stacks[i].doing = (char *)doing;
        stacks[i].role = i % 2 == 0 ? STACK_OTHER : STACK_MAIN;
        stacks[i].frames = i % 2 == 0 ? others : frames;
        stacks[i].n_frames = 1;
        list[i] = &stacks[i];
    }
    report.stacks = list;
    report.n_stacks = 2 * count;
    assert_int_equal(agents_answer(&bench->agents, node, &report.base), 0);
}

static void test_places(void **state)
{
    struct bench *bench = *state;
    agents_connect(&bench->agents, 0);
    agents_connect(&bench->agents, 1);
    bench->kind = CULPRIT_PLACE;
    bench->rank = 2;
    bench->wanted = "rank 2 on b is elsewhere: in train.py:7 load (nfs4); 2 others are in "
                    "train.py:7 all_reduce";
    look_ask(&bench->f->job, LOOK_PYTHON, looked, bench);
    answers(bench, 0, 0, 2, "all_reduce", "calls futex");
    assert_false(bench->told);
    answers(bench, 1, 2, 1, "load", "calls read on nfs4");
    assert_true(bench->told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_is_known, begin, end),
        cmocka_unit_test_setup_teardown(test_lines_of_the_watchdog, begin, end),
        cmocka_unit_test_setup_teardown(test_numbers_of_nccl, begin, end),
        cmocka_unit_test_setup_teardown(test_operations_of_libhvd, begin, end),
        cmocka_unit_test_setup_teardown(test_answers_of_libhvd, begin, end),
        cmocka_unit_test_setup_teardown(test_a_chain_of_process_sets, begin, end),
        cmocka_unit_test_setup_teardown(test_a_warning_of_horovod, begin, end),
        cmocka_unit_test_setup_teardown(test_places, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
