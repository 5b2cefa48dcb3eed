/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "driver/mpi/mpi.h"
#include "loop_fixture.h"
#include "pmix/publish_store.h"

enum { PUBLISH, LOOKUP, UNPUBLISH, RANK_ENDED }; /* MpiStore.kind */

/* A job of two ranks on one node, whose agent keeps the last answer. */
struct fixture {
    struct job job;
    struct plan plan;
    struct plan_node plan_node;
    struct node_link *place;
    struct link *agent;
    struct mpi_names *names;
    struct log log;
    Hvdrun__MpiStoreReply *answer;
    int answers;
};

static void agent_frame(void *context, const struct frame_header *header, const uint8_t *body)
{
    struct fixture *f = context;
    if (header->type != FRAME_MPI_STORE_REPLY)
        return;
    if (f->answer != NULL)
        hvdrun__mpi_store_reply__free_unpacked(f->answer, NULL);
    f->answer = hvdrun__mpi_store_reply__unpack(NULL, header->length, body);
    assert_non_null(f->answer);
    assert_int_equal(header->epoch, 4);
    f->answers++;
    loop_stop(f->job.loop);
}

static void agent_closed(void *context, const char *reason)
{
    (void)context, (void)reason;
}

static void node_frame(void *context, struct node_link *node, const struct frame_header *header,
                       const uint8_t *body)
{
    (void)context, (void)node, (void)header, (void)body;
}

static void node_closed(void *context, struct node_link *node, const char *why)
{
    (void)context, (void)node, (void)why;
}

static void node_suspect(void *context, struct node_link *node, bool silent, int64_t silence_ms)
{
    (void)context, (void)node, (void)silent, (void)silence_ms;
}

static int setup(void **state)
{
    static const struct node_link_ops ops = {node_frame, node_closed, node_suspect};
    static const struct link_ops agent_ops = {.frame = agent_frame, .closed = agent_closed};
    static const int ranks[] = {0, 1};
    static struct fixture f;
    int ends[2];
    f = (struct fixture){.plan_node = {.local_size = 2, .ranks = ranks},
                         .place = mem_alloc(sizeof(struct node_link))};
    f.plan = (struct plan){.size = 2, .node_count = 1, .nodes = &f.plan_node};
    f.job =
        (struct job){.plan = &f.plan, .places = &f.place, .epoch = 4, .loop = loop_create(NULL)};
    f.place->host = mem_strdup("a");
    if (fd_socketpair(ends) < 0)
        return -1;
    node_link_init(f.place, f.job.loop, 30000, &f.log, &ops, &f);
    f.agent = link_create(f.job.loop, ends[1], ends[1], &agent_ops, &f, NULL);
    const struct transport_stream stream = {
        .read_fd = ends[0], .write_fd = ends[0], .pid = 1, .same_machine = true};
    f.names = mpi_names_create(&f.job);
    *state = &f;
    return node_link_connect(f.place, &stream, NULL);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    mpi_names_destroy(f->names);
    mpi_names_destroy(NULL);
    node_link_destroy(f->place);
    link_destroy(f->agent);
    run_turns(f->job.loop, 2);
    loop_destroy(f->job.loop);
    if (f->answer != NULL)
        hvdrun__mpi_store_reply__free_unpacked(f->answer, NULL);
    return 0;
}

static int ask(struct fixture *f, Hvdrun__MpiStore *message)
{
    return mpi_names_request(f->names, f->place, 4, message);
}

/* A request of rank `rank` about names that its namespace sees. */
static Hvdrun__MpiStore request(uint32_t kind, uint32_t rank)
{
    Hvdrun__MpiStore message = HVDRUN__MPI_STORE__INIT;
    message.kind = kind;
    message.nspace = (char *)"job.4";
    message.rank = rank;
    message.token = 100 + kind;
    message.range = STORE_NSPACE;
    return message;
}

static void expect_answer(struct fixture *f, uint32_t kind, enum store_status status, size_t items)
{
    int before = f->answers;
    while (f->answers == before)
        run_loop(f->job.loop);
    assert_int_equal(f->answers, before + 1);
    assert_int_equal(f->answer->kind, kind);
    assert_int_equal(f->answer->token, 100 + kind);
    assert_int_equal(f->answer->status, status);
    assert_int_equal(f->answer->n_items, items);
}

static void publish(struct fixture *f, uint32_t rank, uint32_t keep, char *first, char *second,
                    enum store_status status)
{
    Hvdrun__MpiItem items[2] = {HVDRUN__MPI_ITEM__INIT, HVDRUN__MPI_ITEM__INIT};
    Hvdrun__MpiItem *list[] = {&items[0], &items[1]};
    Hvdrun__MpiStore message = request(PUBLISH, rank);
    items[0].key = first;
    items[0].value.data = (uint8_t *)"port-1";
    items[0].value.len = 6;
    items[1].key = second;
    message.items = list;
    message.n_items = second == NULL ? 1 : 2;
    message.keep = keep;
    assert_int_equal(ask(f, &message), 0);
    expect_answer(f, PUBLISH, status, 0);
}

static void look_up(struct fixture *f, char *key, uint32_t wait_for, uint32_t timeout_s)
{
    Hvdrun__MpiStore message = request(LOOKUP, 1);
    message.keys = &key;
    message.n_keys = 1;
    message.wait_for = wait_for;
    message.timeout_s = timeout_s;
    assert_int_equal(ask(f, &message), 0);
}

static void test_publish_and_look_up(void **state)
{
    struct fixture *f = *state;
    publish(f, 0, STORE_KEEP_FOREVER, (char *)"ocean", (char *)"empty", STORE_OK);
    publish(f, 0, STORE_KEEP_FOREVER, (char *)"ocean", NULL, STORE_DUPLICATE);
    look_up(f, (char *)"ocean", 0, 0);
    expect_answer(f, LOOKUP, STORE_OK, 1);
    const Hvdrun__MpiItem *item = f->answer->items[0];
    assert_string_equal(item->key, "ocean");
    assert_string_equal(item->nspace, "job.4");
    assert_int_equal(item->rank, 0);
    assert_int_equal(item->value.len, 6);
    assert_memory_equal(item->value.data, "port-1", 6);
    look_up(f, (char *)"none", 0, 0);
    expect_answer(f, LOOKUP, STORE_NOT_FOUND, 0);
}

static void time_passed(void *context)
{
    loop_stop(context);
}

static void wait_a_little(struct fixture *f)
{
    struct loop_timer *timer = loop_timer_create(f->job.loop, time_passed, f->job.loop);
    loop_timer_set(timer, 50);
    loop_run(f->job.loop);
    loop_timer_destroy(timer);
}

static void test_a_name_that_comes_later(void **state)
{
    struct fixture *f = *state;
    int before = f->answers;
    look_up(f, (char *)"late", 1, 1000);
    wait_a_little(f);
    assert_int_equal(f->answers, before);
    Hvdrun__MpiItem item = HVDRUN__MPI_ITEM__INIT, *list[] = {&item};
    Hvdrun__MpiStore message = request(PUBLISH, 0);
    item.key = (char *)"late";
    message.items = list;
    message.n_items = 1;
    assert_int_equal(ask(f, &message), 0);
    run_turns(f->job.loop, 20);
    assert_int_equal(f->answers, before + 2); /* of both */
}

static void test_a_name_that_does_not_come(void **state)
{
    struct fixture *f = *state;
    look_up(f, (char *)"none", 1, 1);
    expect_answer(f, LOOKUP, STORE_TIMEOUT, 0);
}

static void unpublish(struct fixture *f, char *key, bool pmi1, enum store_status status)
{
    Hvdrun__MpiStore message = request(UNPUBLISH, 0);
    message.keys = &key;
    message.n_keys = 1;
    message.pmi1 = pmi1;
    assert_int_equal(ask(f, &message), 0);
    expect_answer(f, UNPUBLISH, status, 0);
    assert_int_equal(f->answer->pmi1, pmi1);
}

/* Only PMI-1 wants to know whether there was a name. */
static void test_unpublish(void **state)
{
    struct fixture *f = *state;
    publish(f, 0, STORE_KEEP_FOREVER, (char *)"ocean", (char *)"sea", STORE_OK);
    unpublish(f, (char *)"ocean", true, STORE_OK);
    unpublish(f, (char *)"ocean", true, STORE_NOT_FOUND);
    unpublish(f, (char *)"ocean", false, STORE_OK);
    look_up(f, (char *)"sea", 0, 0);
    expect_answer(f, LOOKUP, STORE_OK, 1);
    Hvdrun__MpiStore message = request(UNPUBLISH, 0);
    message.all_keys = true;
    assert_int_equal(ask(f, &message), 0);
    expect_answer(f, UNPUBLISH, STORE_OK, 0);
    look_up(f, (char *)"sea", 0, 0);
    expect_answer(f, LOOKUP, STORE_NOT_FOUND, 0);
}

/* What ranks published for their lifetime goes with them, or with their node. */
static void test_ends_of_ranks(void **state)
{
    struct fixture *f = *state;
    for (int node = 0; node < 2; node++) {
        publish(f, 0, STORE_KEEP_PROC, (char *)"short", NULL, STORE_OK);
        publish(f, 0, STORE_KEEP_FOREVER, node ? (char *)"b" : (char *)"a", NULL, STORE_OK);
        Hvdrun__MpiStore message = request(RANK_ENDED, 0);
        if (node == 0)
            assert_int_equal(ask(f, &message), 0);
        else
            mpi_names_node_lost(f->names, 0);
        look_up(f, (char *)"short", 0, 0);
        expect_answer(f, LOOKUP, STORE_NOT_FOUND, 0);
        look_up(f, (char *)"a", 0, 0);
        expect_answer(f, LOOKUP, STORE_OK, 1);
    }
}

static void test_nonsense(void **state)
{
    struct fixture *f = *state;
    Hvdrun__MpiStore message = request(RANK_ENDED + 1, 0);
    assert_int_equal(ask(f, &message), -1);
    message = request(LOOKUP, 0);
    message.range = STORE_RM + 1;
    assert_int_equal(ask(f, &message), -1);
    message = request(PUBLISH, 0);
    message.keep = STORE_KEEP_SESSION + 1;
    assert_int_equal(ask(f, &message), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_publish_and_look_up),
        TEST(test_a_name_that_comes_later),
        TEST(test_a_name_that_does_not_come),
        TEST(test_unpublish),
        TEST(test_ends_of_ranks),
        TEST(test_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
