/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "driver/mpi/rounds.h"

#define NODES 4

/* Ranks 0 1 2 | 3 | 4 5 | 6 on nodes n0 to n3. */
static struct plan_rank plan_ranks[] = {{.node = 0}, {.node = 0}, {.node = 0}, {.node = 1},
                                        {.node = 2}, {.node = 2}, {.node = 3}};
static struct plan_node plan_nodes[] = {{.name = (char *)"n0", .local_size = 3},
                                        {.name = (char *)"n1", .local_size = 1},
                                        {.name = (char *)"n2", .local_size = 2},
                                        {.name = (char *)"n3", .local_size = 1}};
static const struct plan plan = {
    .size = 7, .node_count = NODES, .ranks = plan_ranks, .nodes = plan_nodes};

/* What each node was answered, in the order of the answers: "token:bytes " or "token!problem ". */
struct heard {
    char texts[NODES][512];
    uint64_t rounds[NODES];
    bool pmi1[NODES];
    uint32_t epochs[NODES];
    size_t expanded[NODES], length[NODES];
};

static void on_answer(void *context, int node, const struct mpi_answer *answer)
{
    struct heard *heard = context;
    size_t used = strlen(heard->texts[node]);
    assert_in_range(node, 0, NODES - 1);
    if (answer->problem != NULL)
        snprintf(heard->texts[node] + used, sizeof(heard->texts[node]) - used, "%d!%s ",
                 (int)answer->token, answer->problem);
    else
        snprintf(heard->texts[node] + used, sizeof(heard->texts[node]) - used, "%d:%.*s ",
                 (int)answer->token, (int)answer->data->length, (const char *)answer->data->bytes);
    heard->rounds[node] = answer->round;
    heard->pmi1[node] = answer->pmi1;
    heard->epochs[node] = answer->epoch;
    heard->expanded[node] = answer->expanded;
    heard->length[node] = answer->data->length;
}

static struct mpi_rounds *make(struct heard *heard)
{
    *heard = (struct heard){0};
    return mpi_rounds_create(&plan, &(struct mpi_limits){.round = 100, .all = 250}, on_answer,
                             heard);
}

static enum mpi_join join_some(struct mpi_rounds *rounds, int node, uint64_t token, const char *key,
                               const uint32_t *ranks, size_t count, const char *bytes)
{
    struct mpi_step step = {.token = token,
                            .key = key,
                            .ranks = ranks,
                            .rank_count = count,
                            .bytes = bytes,
                            .length = strlen(bytes)};
    struct error err = ERROR_INIT;
    enum mpi_join joined = mpi_rounds_join(rounds, node, &step, &err);
    assert_int_equal(joined != MPI_JOINED, err.text[0] != '\0');
    return joined;
}

static void join(struct mpi_rounds *rounds, int node, uint64_t token, const char *key,
                 const char *bytes)
{
    assert_int_equal(join_some(rounds, node, token, key, NULL, 0, bytes), MPI_JOINED);
}

static void test_all_nodes_in_node_order(void **state)
{
    (void)state;
    struct heard heard;
    struct mpi_rounds *rounds = make(&heard);
    join(rounds, 2, 12, "fence", "cc");
    join(rounds, 0, 10, "fence", "a");
    join(rounds, 3, 13, "fence", "");
    assert_int_equal(mpi_rounds_pending(rounds), 1);
    for (int i = 0; i < NODES; i++)
        assert_string_equal(heard.texts[i], "");
    join(rounds, 1, 11, "fence", "bbb");
    assert_int_equal(mpi_rounds_pending(rounds), 0);
    assert_string_equal(heard.texts[0], "10:abbbcc ");
    assert_string_equal(heard.texts[1], "11:abbbcc ");
    assert_string_equal(heard.texts[2], "12:abbbcc ");
    assert_string_equal(heard.texts[3], "13:abbbcc ");
    for (int i = 1; i < NODES; i++)
        assert_int_equal(heard.rounds[i], heard.rounds[0]);
    mpi_rounds_destroy(rounds);
}

static void test_only_the_nodes_of_its_ranks(void **state)
{
    (void)state;
    static const uint32_t ranks[] = {1, 2, 4};
    static const uint32_t alone[] = {3};
    struct heard heard;
    struct mpi_rounds *rounds = make(&heard);
    assert_int_equal(join_some(rounds, 0, 1, "fence", ranks, 3, "x"), MPI_JOINED);
    assert_int_equal(join_some(rounds, 2, 2, "fence", ranks, 3, "y"), MPI_JOINED);
    assert_string_equal(heard.texts[0], "1:xy ");
    assert_string_equal(heard.texts[1], "");
    assert_string_equal(heard.texts[2], "2:xy ");
    assert_string_equal(heard.texts[3], "");
    assert_int_equal(join_some(rounds, 1, 3, "fence", alone, 1, "z"), MPI_JOINED);
    assert_string_equal(heard.texts[1], "3:z ");
    mpi_rounds_destroy(rounds);
}

/* Rank 7, on n1, is spawned while a round of all the others is open; then it meets rank 0. */
static void test_ranks_that_come_later(void **state)
{
    (void)state;
    static const uint32_t both[] = {0, 7};
    struct plan_rank all[8] = {0};
    memcpy(all, plan_ranks, sizeof(plan_ranks));
    all[7].node = 1;
    const struct plan grown = {.size = 8, .node_count = NODES, .ranks = all, .nodes = plan_nodes};
    struct heard heard;
    struct mpi_rounds *rounds = make(&heard);
    struct mpi_step step = {
        .token = 1, .epoch = 1, .key = "connect", .ranks = both, .rank_count = 2};
    assert_int_equal(mpi_rounds_join(rounds, 0, &step, NULL), MPI_NONSENSE);
    for (int i = 0; i < NODES - 1; i++)
        join(rounds, i, 10, "fence", "x");
    mpi_rounds_grow(rounds, &grown);
    join(rounds, 3, 13, "fence", "y");
    assert_string_equal(heard.texts[1], "10:xxxy ");
    assert_int_equal(mpi_rounds_join(rounds, 0, &step, NULL), MPI_JOINED);
    step.epoch = 2;
    assert_int_equal(mpi_rounds_join(rounds, 1, &step, NULL), MPI_JOINED);
    assert_int_equal(mpi_rounds_pending(rounds), 0);
    assert_int_equal(heard.epochs[0], 1); /* each node is answered in the epoch in which it asked */
    assert_int_equal(heard.epochs[1], 2);
    mpi_rounds_destroy(rounds);
}

static void test_a_node_ahead_opens_the_next_round(void **state)
{
    (void)state;
    struct heard heard;
    struct mpi_rounds *rounds = make(&heard);
    join(rounds, 0, 1, "fence", "A");
    join(rounds, 0, 2, "fence", "a");
    assert_int_equal(mpi_rounds_pending(rounds), 2);
    for (int i = 1; i < NODES; i++)
        join(rounds, i, 1, "fence", "B");
    assert_string_equal(heard.texts[0], "1:ABBB ");
    uint64_t first = heard.rounds[0];
    for (int i = 1; i < NODES; i++)
        join(rounds, i, 2, "fence", "b");
    assert_string_equal(heard.texts[0], "1:ABBB 2:abbb ");
    assert_string_equal(heard.texts[3], "1:ABBB 2:abbb ");
    assert_int_not_equal(heard.rounds[0], first);
    mpi_rounds_destroy(rounds);
}

static void test_steps_are_told_apart(void **state)
{
    (void)state;
    static const uint32_t some[] = {0, 3};
    static const uint32_t others[] = {0, 3, 4};
    struct heard heard;
    struct mpi_rounds *rounds = make(&heard);
    join(rounds, 0, 1, "fence", "");
    join(rounds, 0, 2, "connect", "");
    assert_int_equal(join_some(rounds, 0, 3, "fence", some, 2, "s"), MPI_JOINED);
    assert_int_equal(join_some(rounds, 0, 4, "fence", others, 3, "o"), MPI_JOINED);
    assert_int_equal(mpi_rounds_pending(rounds), 4);
    assert_int_equal(join_some(rounds, 1, 5, "fence", some, 2, "S"), MPI_JOINED);
    assert_string_equal(heard.texts[0], "3:sS ");
    assert_string_equal(heard.texts[1], "5:sS ");
    struct mpi_step step = {.token = 9, .pmi1 = true, .key = "barrier", .bytes = "", .length = 0};
    for (int i = 0; i < NODES; i++)
        assert_int_equal(mpi_rounds_join(rounds, i, &step, NULL), MPI_JOINED);
    for (int i = 0; i < NODES; i++)
        assert_true(heard.pmi1[i]);
    mpi_rounds_destroy(rounds);
}

static void test_a_lost_node_fails_what_needs_it(void **state)
{
    (void)state;
    static const uint32_t without[] = {0, 6};
    struct heard heard;
    struct mpi_rounds *rounds = make(&heard);
    join(rounds, 0, 1, "fence", "a");
    join(rounds, 1, 2, "fence", "b");
    assert_int_equal(join_some(rounds, 0, 3, "fence", without, 2, "w"), MPI_JOINED);
    mpi_rounds_node_lost(rounds, 2);
    assert_string_equal(heard.texts[0], "1!n2 was lost ");
    assert_string_equal(heard.texts[1], "2!n2 was lost ");
    assert_string_equal(heard.texts[3], "");
    assert_int_equal(mpi_rounds_pending(rounds), 1);
    join(rounds, 3, 4, "fence", "late");
    assert_string_equal(heard.texts[3], "4!n2 was lost ");
    assert_int_equal(join_some(rounds, 3, 5, "fence", without, 2, "W"), MPI_JOINED);
    assert_string_equal(heard.texts[0], "1!n2 was lost 3:wW ");
    mpi_rounds_destroy(rounds);
}

static void test_nonsense(void **state)
{
    (void)state;
    static const uint32_t too_high[] = {0, 7};
    static const uint32_t twice[] = {0, 0};
    static const uint32_t falling[] = {3, 0};
    static const uint32_t elsewhere[] = {3, 4};
    struct heard heard;
    struct mpi_rounds *rounds = make(&heard);
    assert_int_equal(join_some(rounds, 0, 1, "fence", too_high, 2, ""), MPI_NONSENSE);
    assert_int_equal(join_some(rounds, 0, 1, "fence", twice, 2, ""), MPI_NONSENSE);
    assert_int_equal(join_some(rounds, 0, 1, "fence", falling, 2, ""), MPI_NONSENSE);
    assert_int_equal(join_some(rounds, 0, 1, "fence", elsewhere, 2, ""), MPI_NONSENSE);
    assert_int_equal(mpi_rounds_pending(rounds), 0);
    mpi_rounds_destroy(rounds);
}

static void test_limits(void **state)
{
    (void)state;
    char sixty[61];
    memset(sixty, 'x', 60);
    sixty[60] = '\0';
    struct heard heard;
    struct mpi_rounds *rounds = make(&heard);
    join(rounds, 0, 1, "one", sixty);
    assert_int_equal(join_some(rounds, 1, 1, "one", NULL, 0, sixty), MPI_TOO_MUCH); /* a round */
    join(rounds, 0, 2, "two", sixty);
    join(rounds, 0, 3, "three", sixty);
    join(rounds, 0, 4, "four", sixty);
    assert_int_equal(join_some(rounds, 0, 5, "five", NULL, 0, sixty), MPI_TOO_MUCH); /* in all */
    for (int i = 1; i < NODES; i++)
        join(rounds, i, 6, "two", "y");
    join(rounds, 0, 7, "five", sixty); /* a round that has ended makes room */
    mpi_rounds_destroy(rounds);
}

/* The error names the limit that was passed. */
static void test_text_of_limits(void **state)
{
    (void)state;
    struct heard heard = {.rounds = {0}};
    size_t mib = (size_t)1 << 20;
    struct mpi_limits limits = {.round = 3 * mib, .all = 4 * mib};
    struct mpi_rounds *rounds = mpi_rounds_create(&plan, &limits, on_answer, &heard);
    char *bytes AUTO_FREE = mem_alloc(4 * mib);
    struct mpi_step step = {.key = "one", .bytes = bytes, .length = 3 * mib};
    struct error err = ERROR_INIT;
    assert_int_equal(mpi_rounds_join(rounds, 0, &step, &err), MPI_JOINED); /* just the limit */
    step.key = "two";
    assert_int_equal(mpi_rounds_join(rounds, 0, &step, &err), MPI_TOO_MUCH);
    assert_non_null(strstr(err.text, "exceeds 4 MiB"));
    step.length = 3 * mib + 1;
    assert_int_equal(mpi_rounds_join(rounds, 0, &step, &err), MPI_TOO_MUCH);
    assert_non_null(strstr(err.text, "exceeds 3 MiB"));
    mpi_rounds_destroy(rounds);
}

static void test_endless_steps_are_stopped(void **state)
{
    (void)state;
    struct heard heard;
    struct mpi_rounds *rounds = make(&heard);
    enum mpi_join joined = MPI_JOINED;
    int count = 0;
    while (joined == MPI_JOINED && count < 100000) {
        char key[16];
        snprintf(key, sizeof(key), "%d", count++);
        joined = join_some(rounds, 0, 1, key, NULL, 0, "");
    }
    assert_int_equal(joined, MPI_TOO_MUCH);
    mpi_rounds_destroy(rounds);
}

/* What is alike for many nodes is made smaller once, and all get the same. */
static void test_smaller(void **state)
{
    (void)state;
    struct heard heard = {.rounds = {0}};
    struct mpi_limits limits = {.round = 1000, .all = 1000, .shrink = 201};
    struct mpi_rounds *rounds = mpi_rounds_create(&plan, &limits, on_answer, &heard);
    char same[51];
    memset(same, 's', 50);
    same[50] = '\0';
    for (int i = 0; i < NODES; i++)
        join(rounds, i, 1, "fence", same);
    assert_int_equal(heard.expanded[3], 0); /* 200 bytes: not worth it */
    for (int i = 0; i < NODES; i++)
        join(rounds, i, 2, "fence", i == 0 ? "and one more" : same);
    assert_int_equal(heard.expanded[3], 0);
    join(rounds, 0, 3, "fence", "and one more and one more and one more and one more and one more");
    for (int i = 1; i < NODES; i++)
        join(rounds, i, 3, "fence", same);
    assert_int_equal(heard.expanded[0], 214);
    assert_int_equal(heard.expanded[3], 214);
    assert_in_range(heard.length[3], 1, 100);
    mpi_rounds_destroy(rounds);
}

static enum mpi_join join_on_demand(struct mpi_rounds *rounds, int node, uint64_t token,
                                    const char *bytes, bool kept)
{
    struct mpi_step step = {.token = token,
                            .key = "fence",
                            .bytes = bytes,
                            .length = strlen(bytes),
                            .on_demand = true,
                            .kept = kept};
    struct error err = ERROR_INIT;
    return mpi_rounds_join(rounds, node, &step, &err);
}

/* What would be too much to send stays where it is, unless the nodes cannot do without it. */
static void test_on_demand(void **state)
{
    (void)state;
    static const struct {
        const char *first, *others, *all;
        bool kept;
    } cases[] = {{"aaaa", "bb", "aaaabbbbbb", false}, /* 40 bytes: just the limit */
                 {"aaaaa", "bb", "", false},          /* 44 */
                 {"", "", "", true},                  /* a node gives none of its bytes */
                 {"aaaa", "bb", "", true},            /* likewise */
                 {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "", "", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct heard heard = {.rounds = {0}};
        struct mpi_limits limits = {.round = 100, .all = 100, .demand = 40};
        struct mpi_rounds *rounds = mpi_rounds_create(&plan, &limits, on_answer, &heard);
        assert_int_equal(join_on_demand(rounds, 0, 1, cases[i].first, cases[i].kept), MPI_JOINED);
        for (int node = 1; node < NODES; node++)
            assert_int_equal(join_on_demand(rounds, node, 1, cases[i].others, false), MPI_JOINED);
        char expected[80];
        snprintf(expected, sizeof(expected), "1:%s ", cases[i].all);
        for (int node = 0; node < NODES; node++)
            assert_string_equal(heard.texts[node], expected);
        mpi_rounds_destroy(rounds);
    }
}

/* What counts is what would be sent: the bytes made smaller. */
static void test_on_demand_and_smaller(void **state)
{
    (void)state;
    struct heard heard = {.rounds = {0}};
    struct mpi_limits limits = {.round = 1000, .all = 1000, .shrink = 1, .demand = 399};
    struct mpi_rounds *rounds = mpi_rounds_create(&plan, &limits, on_answer, &heard);
    char same[101];
    memset(same, 's', 100);
    same[100] = '\0';
    for (int i = 0; i < NODES; i++)
        assert_int_equal(join_on_demand(rounds, i, 1, same, false), MPI_JOINED);
    assert_int_equal(heard.expanded[3], 400);
    assert_in_range(heard.length[3], 1, 99);
    mpi_rounds_destroy(rounds);
}

/* Without the setting, no node is told to ask: too much is an error, which names the setting. */
static void test_never_on_demand(void **state)
{
    (void)state;
    struct heard heard = {.rounds = {0}};
    struct mpi_limits limits = {.round = 100, .all = 100, .demand = SIZE_MAX};
    struct mpi_rounds *rounds = mpi_rounds_create(&plan, &limits, on_answer, &heard);
    struct mpi_step step = {.key = "fence", .on_demand = true, .kept = true};
    struct error err = ERROR_INIT;
    assert_int_equal(mpi_rounds_join(rounds, 0, &step, &err), MPI_TOO_MUCH);
    assert_non_null(strstr(err.text, "--mpi-direct"));
    for (int i = 0; i < NODES; i++)
        assert_int_equal(join_on_demand(rounds, i, 1, "0123456789012345678901234", false),
                         MPI_JOINED);
    assert_int_equal(heard.length[3], 100);
    mpi_rounds_destroy(rounds);
}

/* Bytes that stay where they are count for no limit, however many they are. */
static void test_on_demand_has_no_limit(void **state)
{
    (void)state;
    struct heard heard = {.rounds = {0}};
    struct mpi_limits limits = {.round = 100, .all = 100, .demand = 10};
    struct mpi_rounds *rounds = mpi_rounds_create(&plan, &limits, on_answer, &heard);
    char much[200];
    memset(much, 'm', sizeof(much) - 1);
    much[sizeof(much) - 1] = '\0';
    assert_int_equal(join_on_demand(rounds, 0, 1, "few", false), MPI_JOINED);
    assert_int_equal(join_on_demand(rounds, 1, 1, much, false), MPI_JOINED);
    assert_int_equal(join_on_demand(rounds, 2, 1, much, false), MPI_JOINED);
    join(rounds, 0, 2, "PMI-1 barrier", "0123456789012345678901234567890123456789");
    assert_int_equal(join_on_demand(rounds, 3, 1, "few", false), MPI_JOINED);
    assert_string_equal(heard.texts[3], "1: ");
    struct mpi_limits wide = {.round = 100, .all = 100, .demand = 100000};
    mpi_rounds_destroy(rounds);
    rounds = mpi_rounds_create(&plan, &wide, on_answer, &heard);
    assert_int_equal(join_on_demand(rounds, 0, 1, much, false), MPI_JOINED);
    /* The same name, but the bytes are needed: another step. */
    assert_int_equal(join_some(rounds, 0, 3, "fence", NULL, 0, much), MPI_TOO_MUCH);
    struct mpi_step broken = {.key = "connect", .kept = true};
    assert_int_equal(mpi_rounds_join(rounds, 0, &broken, NULL), MPI_NONSENSE);
    mpi_rounds_destroy(rounds);
}

static bool is_five(void *context, int rank)
{
    (void)context;
    return rank == 5;
}

static void test_stuck(void **state)
{
    (void)state;
    static const uint32_t without[] = {0, 4};
    struct heard heard;
    struct mpi_rounds *rounds = make(&heard);
    int node = -1;
    int rank = -1;
    assert_false(mpi_rounds_stuck(rounds, is_five, NULL, &node, &rank));
    assert_int_equal(join_some(rounds, 0, 1, "fence", without, 2, ""), MPI_JOINED);
    assert_false(mpi_rounds_stuck(rounds, is_five, NULL, &node, &rank));
    join(rounds, 3, 2, "fence", "");
    assert_true(mpi_rounds_stuck(rounds, is_five, NULL, &node, &rank));
    assert_int_equal(node, 3);
    assert_int_equal(rank, 5);
    join(rounds, 2, 3, "fence", "");
    assert_false(mpi_rounds_stuck(rounds, is_five, NULL, &node, &rank));
    mpi_rounds_destroy(rounds);
}

static void test_any_node_may_be_lost(void **state)
{
    (void)state;
    for (int lost = 0; lost < NODES; lost++) {
        struct heard heard;
        struct mpi_rounds *rounds = make(&heard);
        int other = (lost + 1) % NODES;
        char expected[32];
        mpi_rounds_node_lost(rounds, lost);
        join(rounds, other, 7, "fence", "x");
        snprintf(expected, sizeof(expected), "7!n%d was lost ", lost);
        assert_string_equal(heard.texts[other], expected);
        mpi_rounds_destroy(rounds);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_nodes_in_node_order),
        cmocka_unit_test(test_only_the_nodes_of_its_ranks),
        cmocka_unit_test(test_ranks_that_come_later),
        cmocka_unit_test(test_a_node_ahead_opens_the_next_round),
        cmocka_unit_test(test_steps_are_told_apart),
        cmocka_unit_test(test_a_lost_node_fails_what_needs_it),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_text_of_limits),
        cmocka_unit_test(test_endless_steps_are_stopped),
        cmocka_unit_test(test_smaller),
        cmocka_unit_test(test_on_demand),
        cmocka_unit_test(test_on_demand_and_smaller),
        cmocka_unit_test(test_never_on_demand),
        cmocka_unit_test(test_on_demand_has_no_limit),
        cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_any_node_may_be_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
