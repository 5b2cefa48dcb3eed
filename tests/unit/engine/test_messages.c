/* SPDX-License-Identifier: Apache-2.0 */
/* How many messages the ranks of a set send to tell each other something. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/messages.h"
#include "unit.h"

enum { RANKS = 5 };

/* Each rank is alone with this engine, which counts what goes to others and what comes from them.
 */
struct engine_comm {
    int rank, sent, awaited;
    size_t bytes; /* of all that was sent */
};

static enum hvd_status count_parts(struct engine_comm *comm, const void *in, const size_t *send,
                                   void *out, const size_t *receive, int64_t timeout_ms,
                                   struct error *err)
{
    size_t bytes = 0;
    (void)in, (void)timeout_ms, (void)err;
    for (int i = 0; i < RANKS; i++) {
        comm->sent += i != comm->rank && send[i] > 0;
        comm->awaited += i != comm->rank && receive[i] > 0;
        comm->bytes += send[i];
        bytes += receive[i];
    }
    memset(out, 255, bytes); /* as a number of a rank, it is none */
    return HVD_OK;
}

static const struct engine counting = {.name = "counting", .alltoallv = count_parts};

typedef void telling(const struct message_set *set);

static void expect_messages(telling *tell, int count)
{
    int sent = 0, awaited = 0;
    for (int rank = 0; rank < RANKS; rank++) {
        struct engine_comm comm = {.rank = rank};
        const struct message_set set = {&counting, &comm, rank, RANKS, 0};
        tell(&set);
        sent += comm.sent;
        awaited += comm.awaited;
    }
    assert_int_equal(sent, count);
    assert_int_equal(awaited, count);
}

/* The memory that it takes must not grow with the square of the ranks. */
static void compare(const struct message_set *set)
{
    struct error err = ERROR_INIT;
    char own[3] = "";
    bool same;
    assert_int_equal(messages_compare(set, own, sizeof own, &same, &err), HVD_OK);
    assert_true(set->comm->bytes <= (RANKS + 1) * sizeof own);
}

static void from_root(const struct message_set *set)
{
    struct error err = ERROR_INIT;
    char data[3] = "";
    assert_int_equal(messages_from_root(set, data, sizeof data, &err), HVD_OK);
}

static void agree(const struct message_set *set)
{
    struct error err = ERROR_INIT;
    int failed = 0;
    assert_int_equal(messages_agree(set, "", &failed, &err), HVD_OK);
    assert_int_equal(failed, -1);
}

static void test_no_message_for_each_pair(void **state)
{
    (void)state;
    expect_messages(compare, 2 * (RANKS - 1));
    expect_messages(from_root, RANKS - 1);
    expect_messages(agree, 2 * (RANKS - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_message_for_each_pair)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
