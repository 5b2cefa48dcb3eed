/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "features/hang/culprit.h"

#define COUNT 8
#define SECOND INT64_C(1000000000)

/* All wait in an all_reduce, and nothing else is known of them. */
static void fill(struct culprit_rank *ranks, int count)
{
    for (int i = 0; i < count; i++)
        ranks[i] = (struct culprit_rank){
            .rank = i,
            .host = i < 4 ? "a" : "b",
            .place = {.key = 7, .where = "dist.py:9 all_reduce", .shared = "dist.py:9 all_reduce"},
            .way = HANG_WAITS,
            .launched = -1,
            .enqueued = -1,
            .last_ns = 100 * SECOND};
}

static void expect(struct culprit_rank *ranks, int count, const struct culprit_stall *stall,
                   enum culprit_kind kind, const char *wanted)
{
    struct buf text AUTO_BUF = BUF_INIT(10000);
    assert_int_equal(culprit_find(ranks, count, stall, NULL, &text).kind, kind);
    assert_string_equal(buf_text(&text), wanted);
}

static void test_nobody(void **state)
{
    (void)state;
    struct culprit_rank ranks[COUNT];
    fill(ranks, COUNT);
    expect(ranks, COUNT, NULL, CULPRIT_NONE, "no rank stands out");
    expect(ranks, 1, NULL, CULPRIT_NONE, "no rank stands out");
    expect(ranks, 0, NULL, CULPRIT_NONE, "no rank stands out");
    ranks[0].place.key = 8; /* of two, both or none could be odd */
    ranks[0].way = HANG_SPINS;
    ranks[0].last_ns = SECOND;
    expect(ranks, 2, NULL, CULPRIT_NONE, "no rank stands out");
    for (int i = 0; i < COUNT; i++) {
        ranks[i].place.key = (uint64_t)i + 1; /* each in another way */
        ranks[i].way = i % 2 == 0 ? HANG_SPINS : HANG_WAITS;
        ranks[i].last_ns = 100 * SECOND;
    }
    expect(ranks, COUNT, NULL, CULPRIT_NONE, "no rank stands out");
}

/* Of two ranks, one must be in a call of torch.distributed, and the other certainly not. */
static void test_one_of_two(void **state)
{
    (void)state;
    static const int first[] = {2};
    const struct culprit_ended ended = {first, 1, "a"};
    struct buf text AUTO_BUF = BUF_INIT(10000);
    struct culprit_rank ranks[COUNT];
    fill(ranks, COUNT);
    ranks[0].place =
        (struct program_place){.key = 8, .where = "loader.py:112 read", .call = TORCH_CALL_NONE};
    ranks[1].place.call = TORCH_CALL_WAITS;
    expect(ranks, 2, NULL, CULPRIT_NONE, "no rank stands out");
    ranks[0].asleep = true;
    expect(ranks, 2, NULL, CULPRIT_ABSENT,
           "rank 0 on a is elsewhere: in loader.py:112 read; rank 1 waits in dist.py:9 all_reduce");
    ranks[1].asleep = true;
    assert_int_equal(culprit_find(ranks, 2, NULL, NULL, &text).rank, 0);
    assert_int_equal(culprit_find(ranks, 2, NULL, &ended, &text).kind, CULPRIT_ENDED);
    ranks[0].place.call = TORCH_CALL_UNKNOWN;
    expect(ranks, 2, NULL, CULPRIT_NONE, "no rank stands out");
    ranks[0].place.call = TORCH_CALL_WAITS;
    expect(ranks, 2, NULL, CULPRIT_NONE, "no rank stands out");
    ranks[0].place.call = ranks[1].place.call = TORCH_CALL_NONE;
    expect(ranks, 2, NULL, CULPRIT_NONE, "no rank stands out");
    ranks[2].place.call = TORCH_CALL_WAITS; /* of three, the places say it */
    ranks[1].place = ranks[2].place;
    expect(ranks, 3, NULL, CULPRIT_PLACE,
           "rank 0 on a is elsewhere: in loader.py:112 read; 2 others are in dist.py:9 all_reduce");
}

static void test_another_place(void **state)
{
    (void)state;
    struct culprit_rank ranks[COUNT];
    fill(ranks, COUNT);
    ranks[5].place.key = 8;
    ranks[5].place.where = "loader.py:112 read";
    expect(ranks, COUNT, NULL, CULPRIT_PLACE,
           "rank 5 on b is elsewhere: in loader.py:112 read; 7 others are in dist.py:9 all_reduce");
    ranks[2].place.key = 9;
    ranks[2].place.where = "x.py:1 f";
    expect(ranks, COUNT, NULL, CULPRIT_PLACE,
           "ranks 2,5 are elsewhere: rank 2 is in x.py:1 f, rank 5 is in loader.py:112 read; 6 "
           "others are in dist.py:9 all_reduce");
    ranks[0].place.key = 9; /* three of eight are not a few */
    expect(ranks, COUNT, NULL, CULPRIT_NONE, "no rank stands out");
    fill(ranks, COUNT);
    ranks[0].place.key = 9;
    ranks[0].place.where = "x.py:1 f";
    expect(ranks, 3, NULL, CULPRIT_PLACE,
           "rank 0 on a is elsewhere: in x.py:1 f; 2 others are in dist.py:9 all_reduce");
    fill(ranks, COUNT);
    ranks[7].place.key = 9;
    ranks[7].place.where = "x.py:1 f";
    expect(ranks, COUNT, NULL, CULPRIT_PLACE,
           "rank 7 on b is elsewhere: in x.py:1 f; 7 others are in dist.py:9 all_reduce");
    ranks[7].place.key = 0; /* nobody knows where that is */
    expect(ranks, COUNT, NULL, CULPRIT_NONE, "no rank stands out");
}

static void test_another_way(void **state)
{
    (void)state;
    struct culprit_rank ranks[COUNT];
    fill(ranks, COUNT);
    ranks[5].way = HANG_SPINS;
    expect(ranks, COUNT, NULL, CULPRIT_WAY,
           "rank 5 on b uses the processor, and the others wait: in dist.py:9 all_reduce");
    for (int i = 0; i < COUNT; i++) {
        ranks[i].way = i == 1 || i == 2 ? HANG_WAITS : HANG_SPINS;
        ranks[i].place.where = NULL;
    }
    expect(ranks, COUNT, NULL, CULPRIT_WAY, "ranks 1-2 wait, and the others use the processor");
    ranks[4].way = HANG_MOVES;
    expect(ranks, COUNT, NULL, CULPRIT_NONE, "no rank stands out");
}

static void test_the_oldest_last_line(void **state)
{
    (void)state;
    struct culprit_rank ranks[COUNT];
    fill(ranks, COUNT);
    ranks[6].last_ns = 60 * SECOND;
    expect(ranks, COUNT, NULL, CULPRIT_SILENT,
           "rank 6 on b wrote its last line 40 s before all others; in dist.py:9 all_reduce");
    ranks[0].last_ns = 65 * SECOND;
    expect(ranks, COUNT, NULL, CULPRIT_NONE, "no rank stands out");
    ranks[0].last_ns = 0;
    expect(ranks, COUNT, NULL, CULPRIT_NONE, "no rank stands out");
}

/* A stronger piece of evidence hides the weaker ones. */
static void test_the_order(void **state)
{
    (void)state;
    const int missing[] = {3};
    const struct culprit_stall stall = {"ranks 0-2 wait for rank 3 in allreduce 'x', for 60 s",
                                        missing, 1};
    struct culprit_rank ranks[COUNT];
    fill(ranks, COUNT);
    ranks[6].last_ns = SECOND;
    ranks[5].way = HANG_SPINS;
    expect(ranks, COUNT, NULL, CULPRIT_WAY,
           "rank 5 on b uses the processor, and the others wait: in dist.py:9 all_reduce");
    ranks[4].place.key = 8;
    ranks[4].place.where = "x.py:1 f";
    expect(ranks, COUNT, NULL, CULPRIT_PLACE,
           "rank 4 on b is elsewhere: in x.py:1 f; 7 others are in dist.py:9 all_reduce");
    ranks[1].enqueued = 168;
    expect(ranks, COUNT, NULL, CULPRIT_PLACE,
           "rank 4 on b is elsewhere: in x.py:1 f; 7 others are in dist.py:9 all_reduce");
    ranks[0].enqueued = 167;
    expect(ranks, COUNT, NULL, CULPRIT_BEHIND,
           "rank 0 on a is behind: the last enqueued work is 167, and that of others 168; in "
           "dist.py:9 all_reduce");
    expect(ranks, COUNT, &stall, CULPRIT_STALL,
           "ranks 0-2 wait for rank 3 in allreduce 'x', for 60 s; rank 3 is on a, in dist.py:9 "
           "all_reduce");
}

/* NCCL's own count is stronger than all else. */
static void test_fewer_operations(void **state)
{
    (void)state;
    struct culprit_rank ranks[COUNT];
    const int missing[] = {1};
    const struct culprit_stall stall = {"ranks 0,2-7 wait for rank 1", missing, 1};
    fill(ranks, COUNT);
    for (int i = 0; i < COUNT; i++) {
        ranks[i].launched = 128802;
        ranks[i].operation = "allreduces";
    }
    expect(ranks, COUNT, NULL, CULPRIT_NONE, "no rank stands out");
    ranks[6].launched = 128801;
    ranks[6].place.key = 8;
    ranks[6].place.where = "loader.py:112 read";
    ranks[1].place.key = 9;
    ranks[1].place.where = "x.py:1 f";
    expect(ranks, COUNT, &stall, CULPRIT_LAUNCHED,
           "rank 6 on b is behind: 128,801 of 128,802 allreduces; in loader.py:112 read; 6 others "
           "are in dist.py:9 all_reduce");
    ranks[6].launched = -1; /* it does not answer */
    ranks[1].launched = ranks[2].launched = 7;
    expect(ranks, COUNT, NULL, CULPRIT_LAUNCHED,
           "ranks 1-2 are behind: 7 of 128,802 allreduces; rank 1 is in x.py:1 f; 5 others are in "
           "dist.py:9 all_reduce");
    for (int i = 3; i < 6; i++)
        ranks[i].place.key = (uint64_t)i + 10; /* there is no place of most */
    expect(ranks, COUNT, NULL, CULPRIT_LAUNCHED,
           "ranks 1-2 are behind: 7 of 128,802 allreduces; rank 1 is in x.py:1 f");
}

static int blamed(struct culprit_rank *ranks, const struct culprit_stall *stall)
{
    struct buf text AUTO_BUF = BUF_INIT(10000);
    return culprit_find(ranks, COUNT, stall, NULL, &text).rank;
}

/* Somebody is to blame only if all who stand out are on one host. */
static void test_who_is_to_blame(void **state)
{
    (void)state;
    struct culprit_rank ranks[COUNT];
    const int both[] = {3, 4}, alone[] = {5}, strangers[] = {99};
    fill(ranks, COUNT);
    assert_int_equal(blamed(ranks, NULL), -1);
    ranks[2].place.key = 9;
    assert_int_equal(blamed(ranks, NULL), 2);
    ranks[3].place.key = 9;
    assert_int_equal(blamed(ranks, NULL), 2);
    ranks[2].place.key = 7;
    ranks[4].place.key = 9;
    assert_int_equal(blamed(ranks, NULL), -1);
    assert_int_equal(blamed(ranks, &(struct culprit_stall){"x", alone, 1}), 5);
    assert_int_equal(blamed(ranks, &(struct culprit_stall){"x", both, 2}), -1);
    assert_int_equal(blamed(ranks, &(struct culprit_stall){"x", strangers, 1}), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fewer_operations),
        cmocka_unit_test(test_who_is_to_blame),
        cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_one_of_two),
        cmocka_unit_test(test_another_place),
        cmocka_unit_test(test_another_way),
        cmocka_unit_test(test_the_oldest_last_line),
        cmocka_unit_test(test_the_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
