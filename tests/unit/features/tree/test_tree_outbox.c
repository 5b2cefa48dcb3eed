/* SPDX-License-Identifier: Apache-2.0 */
/* Which way the driver's parcels take, and when: ticks and room are the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "features/tree/outbox.h"
#include "features/tree/tree_frames.h"

#define SIZE 20 /* 3, 4 and 5 are below 0 */
#define MIB ((size_t)1 << 20)

struct fixture {
    struct tree_routes *routes;
    struct outbox *outbox;
    int late[SIZE], sent[SIZE];
    int64_t behind[SIZE];
};

static bool takes(void *context, int place, size_t bytes)
{
    (void)context, (void)place;
    return bytes <= 96 * MIB;
}

static void ready(void *context)
{
    (void)context;
}

static void send_parcels(void *context, int hop, struct parcel *const *parcels, size_t count)
{
    struct fixture *f = context;
    (void)parcels, (void)count;
    f->sent[hop]++;
}

static void late(void *context, int place)
{
    struct fixture *f = context;
    f->late[place]++;
}

static int64_t behind(void *context, int place)
{
    const struct fixture *f = context;
    return f->behind[place];
}

static void release(struct parcel *parcel)
{
    free(parcel);
}

static int setup(void **state)
{
    static const struct outbox_ops ops = {takes, ready, send_parcels, late, behind, release};
    static struct fixture f;
    f = (struct fixture){.routes = tree_routes_create(SIZE)};
    f.outbox = outbox_create(f.routes, INT64_MAX, &ops, &f);
    tree_routes_connect(f.routes, 3);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    outbox_destroy(f->outbox);
    tree_routes_destroy(f->routes);
    return 0;
}

static void add(struct fixture *f, int place, const void *block, size_t bytes, bool own_link)
{
    struct parcel *parcel = mem_alloc(sizeof(*parcel));
    *parcel = (struct parcel){
        .block = block, .bytes = bytes + 100, .block_bytes = bytes, .own_link = own_link};
    outbox_add(f->outbox, place, parcel);
}

/* One block leaves once for each link, and counts once there. */
static void test_one_block_for_many(void **state)
{
    static const char one, other;
    struct fixture *f = *state;
    add(f, 0, &one, 30 * MIB, false);
    add(f, 3, &one, 30 * MIB, false);
    add(f, 6, &other, 60 * MIB, false);
    assert_int_equal(outbox_waiting(f->outbox, 0), 30 * MIB + 200);
    assert_int_equal(outbox_waiting(f->outbox, 3), 0);
    assert_int_equal(outbox_waiting(f->outbox, 6), 60 * MIB + 100);
    outbox_flush(f->outbox);
    assert_int_equal(f->sent[0], 1);
    assert_int_equal(f->sent[3], 0);
    assert_int_equal(f->sent[6], 1);
    assert_int_equal(outbox_waiting(f->outbox, 0), 0);
    assert_int_equal(outbox_counts(f->outbox)->passed, 1);
}

/* Others have a quarter of the time if much waits for them. */
static void test_much_waits_for_others(void **state)
{
    static const char one, other;
    struct fixture *f = *state;
    add(f, 3, &one, MIB, false);
    add(f, 3, &other, PARCEL_HELD_MAX, true);
    for (int i = 1; i < TREE_PATIENCE / 4; i++)
        assert_true(outbox_tick(f->outbox));
    assert_int_equal(f->late[3], 0);
    outbox_tick(f->outbox);
    assert_int_equal(f->late[3], 1);
    assert_true(outbox_is_late(f->outbox, 3));
    assert_int_equal(outbox_confirm(f->outbox, 3, 1), 0);
    outbox_tick(f->outbox);
    assert_int_equal(f->late[3], 1);
}

/* What the agent has confirmed is still behind its output. */
static void test_a_busy_way_back(void **state)
{
    static const char one;
    struct fixture *f = *state;
    add(f, 3, &one, 1000, false);
    for (f->behind[3] = 0; f->behind[3] < 3 * (int64_t)TREE_PATIENCE; f->behind[3]++)
        outbox_tick(f->outbox);
    assert_int_equal(f->late[3], 0);
    assert_false(outbox_is_late(f->outbox, 3));
    f->behind[3] = 2 * (int64_t)TREE_PATIENCE; /* by then, it had not confirmed anything */
    assert_true(outbox_is_late(f->outbox, 3));
    outbox_tick(f->outbox);
    assert_int_equal(f->late[3], 1);
}

/* What waits for its own link only is much later a reason. */
static void test_much_waits_for_the_own_link(void **state)
{
    static const char blocks[32];
    size_t count = 0;
    struct fixture *f = *state;
    for (size_t bytes = 0; bytes <= PARCEL_OWN_HELD_MAX - 60 * MIB; bytes += 60 * MIB)
        add(f, 4, &blocks[count++], 60 * MIB, true);
    outbox_tick(f->outbox);
    assert_int_equal(f->late[4], 0);
    for (int i = 0; i < 3; i++)
        add(f, 4, &blocks[count++], 60 * MIB, true);
    outbox_tick(f->outbox);
    assert_int_equal(f->late[4], 1);
    assert_true(outbox_on_own_link(f->outbox, 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_block_for_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_much_waits_for_others, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_busy_way_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_much_waits_for_the_own_link, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
