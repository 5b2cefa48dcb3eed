/* SPDX-License-Identifier: Apache-2.0 */
/* Which worker runs on which host, compared with tables written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "model/elastic/placement.h"

#define SLOTS(...) (const int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int)
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Hosts are a, b, c... A member is "a0 l0/2 x1/3": host and slot, local rank of local size, cross
 * rank of cross size; new ones have a + in front. */
static void expect(const struct elastic_offer *offers, int offer_count,
                   const struct elastic_survivor *survivors, int survivor_count, int size,
                   const char *members, const char *hosts)
{
    struct elastic_placement made;
    elastic_placement_make(&(struct elastic_placement_request){offers, offer_count, survivors,
                                                               survivor_count, size, 26},
                           &made);
    struct buf text AUTO_BUF = BUF_INIT(65536);
    for (int r = 0; r < made.plan.size; r++) {
        const struct elastic_member *m = &made.plan.members[r];
        assert_int_equal(m->rank, r);
        assert_int_equal(m->is_new, m->seat < 0);
        buf_printf(&text, "%s%s%c%d l%d/%d x%d/%d", r > 0 ? ", " : "", m->is_new ? "+" : "",
                   'a' + m->host, m->slot, m->local_rank, m->local_size, m->cross_rank,
                   m->cross_size);
    }
    assert_string_equal(buf_text(&text), members);
    buf_clear(&text);
    for (int h = 0; h < made.plan.host_count; h++)
        buf_printf(&text, "%c", 'a' + made.plan.hosts[h]);
    assert_string_equal(buf_text(&text), hosts);
    elastic_placement_clear(&made);
}

enum { A, B, C, D, E };

static void test_unequal_slots(void **state)
{
    (void)state;
    const struct elastic_offer offers[] = {
        {A, SLOTS(0, 1, 2), -1, false}, {B, SLOTS(0), -1, false}, {C, SLOTS(0, 1), -1, false}};
    expect(offers, COUNT(offers), NULL, 0, 6,
           "+a0 l0/3 x0/3, +a1 l1/3 x0/2, +a2 l2/3 x0/1, +b0 l0/1 x1/3, +c0 l0/2 x2/3, "
           "+c1 l1/2 x1/2",
           "abc");
}

static void test_not_all_are_needed(void **state)
{
    (void)state;
    const struct elastic_offer offers[] = {
        {A, SLOTS(0, 1), -1, false}, {B, SLOTS(0, 1), -1, false}, {C, SLOTS(0, 1), -1, false}};
    expect(offers, COUNT(offers), NULL, 0, 3, "+a0 l0/2 x0/2, +a1 l1/2 x0/1, +b0 l0/1 x1/2", "ab");
}

static void test_hole_in_the_slots(void **state)
{
    (void)state;
    const struct elastic_offer offers[] = {{A, SLOTS(0, 2, 3), -1, false},
                                           {B, SLOTS(1, 5), -1, false}};
    expect(offers, COUNT(offers), NULL, 0, 5,
           "+a0 l0/3 x0/2, +a2 l1/3 x0/2, +a3 l2/3 x0/1, +b1 l0/2 x1/2, +b5 l1/2 x1/2", "ab");
}

/* Survivors keep their order, new workers come behind the last survivor of their host, new hosts at
 * the end; local ranks follow the slots all the same. */
static void test_survivors(void **state)
{
    (void)state;
    const struct elastic_offer offers[] = {
        {A, SLOTS(0, 1), 1, true}, {B, SLOTS(0, 1), 0, true}, {D, SLOTS(0), -1, false}};
    const struct elastic_survivor survivors[] = {{7, B, 0, 0}, {3, A, 1, 1}};
    expect(offers, COUNT(offers), survivors, COUNT(survivors), 5,
           "b0 l0/2 x0/3, +b1 l1/2 x0/2, a1 l1/2 x1/2, +a0 l0/2 x1/3, +d0 l0/1 x2/3", "bad");
}

static void test_survivors_of_a_host_are_apart(void **state)
{
    (void)state;
    const struct elastic_offer offers[] = {{A, SLOTS(0, 1, 2), 0, true}, {B, SLOTS(0), 1, true}};
    const struct elastic_survivor survivors[] = {{0, A, 0, 0}, {1, B, 0, 1}, {2, A, 1, 2}};
    expect(offers, COUNT(offers), survivors, COUNT(survivors), 4,
           "a0 l0/3 x0/2, b0 l0/1 x1/2, a1 l1/3 x0/1, +a2 l2/3 x0/1", "ab");
}

static void test_rank_0_is_a_survivor(void **state)
{
    (void)state;
    /* c alone survives; a and b come first among the offers */
    const struct elastic_offer offers[] = {
        {C, SLOTS(0, 1), 2, true}, {A, SLOTS(0), 0, false}, {B, SLOTS(0), 1, false}};
    const struct elastic_survivor survivors[] = {{4, C, 1, 0}};
    expect(offers, COUNT(offers), survivors, COUNT(survivors), 4,
           "c1 l1/2 x0/1, +c0 l0/2 x0/3, +a0 l0/1 x1/3, +b0 l0/1 x2/3", "cab");
}

static void test_only_survivors(void **state)
{
    (void)state;
    const struct elastic_offer offers[] = {{A, SLOTS(0, 1), 0, true}, {B, SLOTS(0, 1), 1, true}};
    const struct elastic_survivor survivors[] = {{1, A, 1, 0}, {2, B, 0, 1}};
    expect(offers, COUNT(offers), survivors, COUNT(survivors), 2, "a1 l0/1 x0/2, b0 l0/1 x1/2",
           "ab");
}

/* Restart: a, b, c had the places 0, 1, 2. */
static void test_places(void **state)
{
    (void)state;
    /* b is gone, d takes its place */
    const struct elastic_offer without_b[] = {
        {A, SLOTS(0), 0, true}, {C, SLOTS(0), 2, true}, {D, SLOTS(0), -1, false}};
    expect(without_b, 3, NULL, 0, 3, "+a0 l0/1 x0/3, +d0 l0/1 x1/3, +c0 l0/1 x2/3", "adc");
    /* b comes back, but d is there: b goes to the end */
    const struct elastic_offer too_late[] = {{A, SLOTS(0), 0, true},
                                             {D, SLOTS(0), 1, true},
                                             {C, SLOTS(0), 2, true},
                                             {B, SLOTS(0), 1, false}};
    expect(too_late, 4, NULL, 0, 4, "+a0 l0/1 x0/4, +d0 l0/1 x1/4, +c0 l0/1 x2/4, +b0 l0/1 x3/4",
           "adcb");
    /* b comes back together with e: it has the older right */
    const struct elastic_offer both[] = {{A, SLOTS(0), 0, true},
                                         {C, SLOTS(0), 2, true},
                                         {E, SLOTS(0), -1, false},
                                         {B, SLOTS(0), 1, false}};
    expect(both, 4, NULL, 0, 4, "+a0 l0/1 x0/4, +b0 l0/1 x1/4, +c0 l0/1 x2/4, +e0 l0/1 x3/4",
           "abce");
    /* an offer that gets nobody needs no place */
    const struct elastic_offer more[] = {{A, SLOTS(0), 0, true}, {B, SLOTS(0), 1, false}};
    expect(more, 2, NULL, 0, 1, "+a0 l0/1 x0/1", "a");
}

static void test_many(void **state)
{
    (void)state;
    enum { HOSTS = 26, EACH = 1000 };
    static const struct elastic_survivor survivor = {0, 25, 999, 0};
    int slots[EACH];
    for (int s = 0; s < EACH; s++)
        slots[s] = s;
    struct elastic_offer offers[HOSTS];
    for (int h = 0; h < HOSTS; h++)
        offers[h] = (struct elastic_offer){h, slots, EACH, h, true};
    struct elastic_placement made;
    elastic_placement_make(
        &(struct elastic_placement_request){offers, HOSTS, &survivor, 1, HOSTS * EACH, HOSTS},
        &made);
    assert_int_equal(made.plan.size, HOSTS * EACH);
    assert_int_equal(made.plan.members[0].host, 25);
    assert_int_equal(made.plan.members[0].local_rank, 999);
    for (int r = 0; r < made.plan.size; r++)
        assert_int_equal(made.plan.members[r].cross_size, HOSTS);
    elastic_placement_clear(&made);
}

/* Cross ranks follow the hosts' order, also where a host's slots come out of turn. */
static void test_cross_ranks_follow_the_hosts(void **state)
{
    (void)state;
    const struct elastic_offer offers[] = {{A, SLOTS(0, 1), 0, true}, {B, SLOTS(0), 1, true}};
    const struct elastic_survivor survivors[] = {{5, A, 1, 0}, {6, B, 0, 1}, {7, A, 0, 2}};
    expect(offers, COUNT(offers), survivors, COUNT(survivors), 3,
           "a1 l1/2 x0/1, b0 l0/1 x1/2, a0 l0/2 x0/2", "ab");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unequal_slots),
        cmocka_unit_test(test_not_all_are_needed),
        cmocka_unit_test(test_hole_in_the_slots),
        cmocka_unit_test(test_survivors),
        cmocka_unit_test(test_survivors_of_a_host_are_apart),
        cmocka_unit_test(test_rank_0_is_a_survivor),
        cmocka_unit_test(test_only_survivors),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_cross_ranks_follow_the_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
