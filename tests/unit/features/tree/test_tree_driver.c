/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's side of the tree: nodes whose agents are the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "driver/job/job_kind.h"
#include "driver/job/job_nodes.h"
#include "driver/job/part.h"
#include "features/tree/tree_frames.h"
#include "io/send_queue.h"
#include "loop_fixture.h"

#define SIZE 20 /* 0, 1 and 2 are below the driver; 3 to 5 below 0, and 12 to 14 below 3 */
#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* What the agent of a node has got. */
struct agent {
    struct link *link;
    int counts[FRAME_TYPES];
    uint32_t join;     /* the number of the last order to join */
    uint64_t serial;   /* of the last parcel for itself */
    size_t for_others; /* parcels */
    bool overtaken;    /* one of its own by a later one */
    char order[8];     /* what came: r for a plain result, j for an order to join, p for a parcel */
    int place;
};

struct fixture {
    struct loop *loop;
    struct settings settings;
    struct plan plan;
    struct job job;
    struct buf said;
    struct agent agents[SIZE];
    Hvdrun__AgentHello hello;
};

static void say(void *context, enum log_level level, const char *line)
{
    (void)level;
    buf_printf(context, "%s\n", line);
}

static void take_down(struct agent *agent, const Hvdrun__TreeDown *down)
{
    for (size_t i = 0; i < down->n_entries; i++) {
        if (down->entries[i]->place == (uint32_t)agent->place) {
            agent->overtaken |= down->entries[i]->serial != agent->serial + 1;
            agent->serial = down->entries[i]->serial;
        } else
            agent->for_others++;
    }
}

static void on_frame(void *context, const struct frame_header *header, const uint8_t *body)
{
    struct agent *agent = context;
    char word = header->type == FRAME_MPI_COLLECTED ? 'r'
                : header->type == FRAME_TREE_JOIN   ? 'j'
                : header->type == FRAME_TREE_DOWN   ? 'p'
                                                    : 0;
    agent->counts[header->type]++;
    if (word != 0 && strlen(agent->order) + 1 < sizeof(agent->order))
        agent->order[strlen(agent->order)] = word;
    if (header->type == FRAME_TREE_DOWN) {
        Hvdrun__TreeDown *down = hvdrun__tree_down__unpack(NULL, header->length, body);
        assert_non_null(down);
        take_down(agent, down);
        hvdrun__tree_down__free_unpacked(down, NULL);
    } else if (header->type == FRAME_TREE_JOIN) {
        Hvdrun__TreeJoin *join = hvdrun__tree_join__unpack(NULL, header->length, body);
        assert_non_null(join);
        assert_int_equal(join->place, agent->place);
        agent->join = join->number;
        hvdrun__tree_join__free_unpacked(join, NULL);
    }
}

static void on_closed(void *context, const char *reason)
{
    (void)context, (void)reason;
}

static void node_closed(void *context, struct node_link *node, const char *why)
{
    (void)context, (void)node, (void)why;
}

static void open_node(struct fixture *f, int place)
{
    static const struct node_link_ops node_ops = {.closed = node_closed};
    static const struct link_ops ops = {.frame = on_frame, .closed = on_closed};
    struct node_link *node = job_add_node(&f->job, "host");
    int pair[2];
    assert_int_equal(fd_socketpair(pair), 0);
    node->state = NODE_RUNNING;
    node->ops = &node_ops;
    node->hello = &f->hello;
    node->answered_ns = INT64_MAX; /* nothing is before what its agent says */
    node->link = link_create(f->loop, pair[0], pair[0], &ops, &f->agents[place], NULL);
    f->agents[place] = (struct agent){.place = place};
    f->agents[place].link = link_create(f->loop, pair[1], pair[1], &ops, &f->agents[place], NULL);
}

static int set_up(void **state, int64_t hang_ms)
{
    static const struct job_kind kind = {.has_workers = true};
    static struct fixture f;
    f = (struct fixture){.said = BUF_INIT(1 << 20), .plan = {.node_count = SIZE}};
    f.hello = (Hvdrun__AgentHello)HVDRUN__AGENT_HELLO__INIT;
    f.hello.boot_id = (char *)"one";
    f.loop = loop_create(NULL);
    settings_init(&f.settings);
    f.settings.tree_from = 4;
    f.settings.hang_timeout = hang_ms;
    f.job = (struct job){.settings = &f.settings,
                         .kind = &kind,
                         .plan = &f.plan,
                         .log = {LOG_DEBUG, say, &f.said},
                         .loop = f.loop,
                         .epoch = 1};
    for (int i = 0; i < SIZE; i++)
        open_node(&f, i);
    job_set_places(&f.job, f.job.nodes);
    assert_int_equal(tree_part.open(&f.job, NULL), 0);
    tree_part.steps_begin(&f.job);
    run_turns(f.loop, 3);
    *state = &f;
    return 0;
}

static int setup(void **state)
{
    return set_up(state, 0);
}

/* So results are soon late. */
static int setup_short(void **state)
{
    return set_up(state, TREE_HANG_LEAST_MS);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    tree_part.close(&f->job);
    for (int i = 0; i < SIZE; i++) {
        f->job.nodes[i]->hello = NULL;
        link_destroy(f->agents[i].link);
    }
    job_free_nodes(&f->job);
    run_turns(f->loop, 2); /* a link with a deferred flush is freed by it */
    loop_destroy(f->loop);
    settings_destroy(&f->settings);
    buf_destroy(&f->said);
    return 0;
}

/* A frame of the agent at this place. */
static int from_agent(struct fixture *f, int place, enum frame_type type, void *message)
{
    const struct part_frame *row = tree_part.frames;
    const struct agent_frame frame = {.type = type, .epoch = 1, .message = message};
    while (row->type != type)
        row++;
    int result = row->rule.take(&f->job, f->job.places[place], &frame);
    run_turns(f->loop, 3);
    return result;
}

static int opened(struct fixture *f, int place, uint32_t port, const char *problem)
{
    Hvdrun__TreeOpened message = HVDRUN__TREE_OPENED__INIT;
    message.port = port;
    message.problem = (char *)problem;
    return from_agent(f, place, FRAME_TREE_OPENED, &message);
}

static int joined(struct fixture *f, int place, uint32_t number)
{
    Hvdrun__TreeJoined message = HVDRUN__TREE_JOINED__INIT;
    message.number = number;
    return from_agent(f, place, FRAME_TREE_JOINED, &message);
}

static int left_since(struct fixture *f, int place, uint32_t number, const char *why)
{
    Hvdrun__TreeLeft message = HVDRUN__TREE_LEFT__INIT;
    message.number = number;
    message.why = (char *)why;
    return from_agent(f, place, FRAME_TREE_LEFT, &message);
}

static int left(struct fixture *f, int place, uint32_t number)
{
    return left_since(f, place, number, "");
}

static int dropped(struct fixture *f, int place, uint32_t below)
{
    Hvdrun__TreeLeft message = HVDRUN__TREE_LEFT__INIT;
    message.below = below;
    return from_agent(f, place, FRAME_TREE_LEFT, &message);
}

static int taken(struct fixture *f, int place, uint64_t serial)
{
    Hvdrun__TreeTaken message = HVDRUN__TREE_TAKEN__INIT;
    message.serial = serial;
    return from_agent(f, place, FRAME_TREE_TAKEN, &message);
}

/* 3, 4 and 5 are below 0. */
static void join_three(struct fixture *f)
{
    assert_int_equal(opened(f, 0, 7, ""), 0);
    for (int i = 3; i <= 5; i++)
        assert_int_equal(joined(f, i, 1), 0);
}

static void send_block(struct fixture *f, int place, enum frame_type type,
                       struct shared_block *block)
{
    Hvdrun__MpiCollected result = HVDRUN__MPI_COLLECTED__INIT;
    Hvdrun__MpiModexData answer = HVDRUN__MPI_MODEX_DATA__INIT;
    const ProtobufCMessage *message = type == FRAME_MPI_COLLECTED ? &result.base : &answer.base;
    node_link_send_pieces(f->job.places[place], type, 1, message, 4 /* data */, block);
}

/* The same result for these places. */
static void send_result(struct fixture *f, const int *places, size_t count, size_t length)
{
    struct shared_block *block = shared_block_create(length);
    memset(block->bytes, 7, length);
    for (size_t i = 0; i < count; i++)
        send_block(f, places[i], FRAME_MPI_COLLECTED, block);
    shared_block_release(block);
}

/* To a question of this place. */
static void send_answer(struct fixture *f, int place, size_t length)
{
    struct shared_block *block = shared_block_create(length);
    memset(block->bytes, 7, length);
    send_block(f, place, FRAME_MPI_MODEX_DATA, block);
    shared_block_release(block);
}

static void test_orders(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(f->agents[0].counts[FRAME_TREE_OPEN], 1);
    assert_int_equal(f->agents[19].counts[FRAME_TREE_OPEN], 0);
    assert_int_equal(f->agents[3].counts[FRAME_TREE_JOIN], 0);
    assert_int_equal(opened(f, 0, 7, ""), 0);
    assert_int_equal(opened(f, 0, 7, ""), -1); /* again */
    assert_int_equal(opened(f, 1, 0, ""), -1);
    assert_int_equal(opened(f, 1, 0, "no"), 0);
    for (int i = 3; i <= 5; i++)
        assert_int_equal(f->agents[i].join, 1);
    assert_int_equal(f->agents[6].join, 0);
    assert_int_equal(joined(f, 6, 1), -1); /* it was never told to */
    assert_int_equal(left(f, 6, 1), -1);
    assert_int_equal(joined(f, 3, 2), -1);
    assert_int_equal(joined(f, 3, 0), -1);
    assert_int_equal(joined(f, 0, 1), -1); /* nobody is above it */
    assert_int_equal(taken(f, 3, 1), -1);
}

/* One frame for all that are reached by way of 0, which has no other copy of its own. */
static void test_a_result(void **state)
{
    static const int all[] = {0, 1, 3, 4, 5};
    struct fixture *f = *state;
    join_three(f);
    send_result(f, all, 5, 4 * KIB);
    run_turns(f->loop, 5);
    assert_int_equal(f->agents[0].counts[FRAME_TREE_DOWN], 1);
    assert_int_equal(f->agents[0].counts[FRAME_MPI_COLLECTED], 0);
    assert_int_equal(f->agents[0].serial, 1);
    assert_int_equal(f->agents[0].for_others, 3);
    assert_int_equal(f->agents[1].serial, 1);
    assert_int_equal(f->agents[3].counts[FRAME_TREE_DOWN], 0);
    assert_int_equal(left(f, 4, 1), 0); /* it comes again, on its own link */
    assert_int_equal(f->agents[4].serial, 1);
    assert_int_equal(f->agents[4].counts[FRAME_TREE_LEFT], 0);
    assert_int_equal(taken(f, 4, 1), 0);
    assert_int_equal(taken(f, 4, 2), -1);
}

/* Too much waits at the agent above: nothing is late for that, and it may connect again. */
static void test_a_child_that_is_dropped(void **state)
{
    static const int below[] = {3, 4};
    struct fixture *f = *state;
    join_three(f);
    send_result(f, below, 2, 4 * KIB);
    run_turns(f->loop, 5);
    assert_int_equal(dropped(f, 1, 3), -1); /* not below that one */
    assert_int_equal(dropped(f, 0, SIZE), -1);
    assert_int_equal(dropped(f, 0, UINT32_MAX), -1);
    assert_int_equal(f->agents[3].counts[FRAME_TREE_DOWN], 0);
    assert_int_equal(dropped(f, 0, 3), 0);
    assert_int_equal(f->agents[3].serial, 1);
    assert_int_equal(f->agents[3].counts[FRAME_TREE_LEFT], 1);
    assert_int_equal(left_since(f, 3, 1, "the end"), 0); /* it has seen it, too */
    assert_null(strstr(buf_text(&f->said), "not below another agent"));
    assert_int_equal(f->agents[4].counts[FRAME_TREE_DOWN], 0);
    assert_int_equal(f->agents[3].join, 1);
    assert_int_equal(taken(f, 3, 1), 0);
    assert_int_equal(f->agents[3].join, 2);
    assert_int_equal(left_since(f, 3, 2, "another end"), 0);
    assert_non_null(strstr(buf_text(&f->said), "not below another agent: another end"));
}

/* Nothing overtakes what others bring, also not the answer to a question, and nothing is overtaken.
 */
static void test_order(void **state)
{
    static const int below[] = {3};
    struct fixture *f = *state;
    join_three(f);
    send_result(f, below, 1, 4 * KIB);
    send_result(f, below, 1, 1); /* on its own link */
    send_answer(f, 3, 4 * KIB);
    send_result(f, below, 1, 4 * KIB);
    run_turns(f->loop, 5);
    assert_int_equal(f->agents[0].for_others, 1);
    assert_int_equal(f->agents[3].counts[FRAME_TREE_DOWN], 0);
    assert_int_equal(taken(f, 3, 1), 0);
    assert_int_equal(f->agents[3].serial, 3);
    assert_int_equal(f->agents[0].for_others, 1);
    assert_int_equal(taken(f, 3, 2), 0);
    assert_int_equal(f->agents[0].for_others, 1);
    assert_int_equal(taken(f, 3, 3), 0);
    assert_int_equal(f->agents[0].for_others, 2);
    assert_int_equal(f->agents[3].counts[FRAME_MPI_COLLECTED], 0);
    assert_int_equal(f->agents[3].counts[FRAME_MPI_MODEX_DATA], 0);
    assert_int_equal(f->agents[3].counts[FRAME_TREE_DOWN], 2);
}

/* Else a result that comes by others could overtake one of the time before the tree. */
static void test_results_before_the_tree(void **state)
{
    static const int leaf[] = {6};
    struct fixture *f = *state;
    send_result(f, leaf, 1, 4 * MIB);
    assert_int_equal(opened(f, 1, 7, ""), 0);
    send_result(f, leaf, 1, 4 * KIB);
    run_until(f->loop, strlen(f->agents[6].order) == 3);
    assert_string_equal(f->agents[6].order, "rjp");
}

/* A turn may bring a few agents one block, then another one, and then others the first. */
static void test_order_within_a_turn(void **state)
{
    struct fixture *f = *state;
    struct shared_block *one = shared_block_create(4 * KIB), *other = shared_block_create(4 * KIB);
    memset(one->bytes, 7, one->length);
    memset(other->bytes, 7, other->length);
    join_three(f);
    send_block(f, 4, FRAME_MPI_COLLECTED, one);
    send_block(f, 0, FRAME_MPI_COLLECTED, other);
    send_block(f, 0, FRAME_MPI_COLLECTED, one);
    send_block(f, 0, FRAME_MPI_COLLECTED, one);
    run_turns(f->loop, 5);
    assert_false(f->agents[0].overtaken);
    assert_int_equal(f->agents[0].serial, 3);
    shared_block_release(one);
    shared_block_release(other);
}

/* A link breaks if more waits there than it may have. */
static void test_much_comes_again(void **state)
{
    static const int one[] = {3};
    struct fixture *f = *state;
    join_three(f);
    struct shared_block *block = shared_block_create(15 * MIB);
    memset(block->bytes, 7, block->length);
    for (int i = 0; i < 20; i++)
        send_block(f, 3, FRAME_MPI_COLLECTED, block);
    shared_block_release(block);
    assert_int_equal(left(f, 3, 1), 0);
    assert_true(link_queued(f->job.places[3]->link) <= LINK_QUEUE_MAX / 2);
    for (uint64_t serial = 1; serial <= 20; serial++) {
        run_until(f->loop, f->agents[3].serial >= serial);
        assert_int_equal(taken(f, 3, serial), 0);
    }
    assert_true(node_link_alive(f->job.places[3]));
    send_result(f, one, 1, 4 * KIB);
    run_until(f->loop, f->agents[3].serial == 21);
}

/* Different bytes for each agent, more in one turn of the loop than the queue of one link takes. */
static void test_much_for_many(void **state)
{
    struct fixture *f = *state;
    join_three(f);
    for (int i = 3; i <= 5; i++)
        send_answer(f, i, 60 * MIB);
    run_turns(f->loop, 3); /* not the next tick */
    for (int i = 3; i <= 5; i++)
        assert_true(link_queued(f->job.places[i]->link) > 30 * MIB);
}

/* Also of what comes again: the lowest places are no better off. */
static void test_much_for_many_comes_again(void **state)
{
    struct fixture *f = *state;
    join_three(f);
    for (int i = 3; i <= 5; i++) {
        send_result(f, &i, 1, 15 * MIB);
        send_answer(f, i, 60 * MIB);
        send_answer(f, i, 15 * MIB);
    }
    tree_part.node_event(&f->job, f->job.places[0], "node_suspect", NULL);
    run_turns(f->loop, 3); /* not the next tick */
    for (int i = 3; i <= 5; i++)
        assert_true(link_queued(f->job.places[i]->link) > 60 * MIB);
}

/* In turns, so that no two of them leave as one. */
static void send_many(struct fixture *f, int place, int count)
{
    struct shared_block *blocks[] = {shared_block_create(60 * MIB), shared_block_create(60 * MIB)};
    memset(blocks[0]->bytes, 7, blocks[0]->length);
    memset(blocks[1]->bytes, 7, blocks[1]->length);
    for (int i = 0; i < count; i++)
        send_block(f, place, FRAME_MPI_MODEX_DATA, blocks[i % 2]);
    shared_block_release(blocks[0]);
    shared_block_release(blocks[1]);
}

/* The agent is not to blame for what the driver has not sent. */
static void test_much_waits_for_another_way(void **state)
{
    static const int one[] = {3};
    struct fixture *f = *state;
    join_three(f);
    send_result(f, one, 1, 4 * KIB);
    send_many(f, 3, 18);
    run_until(f->loop, f->agents[3].counts[FRAME_TREE_LEFT] == 1 && f->agents[3].serial >= 2);
    assert_true(node_link_alive(f->job.places[3]));
    assert_int_equal(f->agents[4].counts[FRAME_TREE_LEFT], 0);
}

static void test_an_agent_that_takes_nothing(void **state)
{
    struct fixture *f = *state;
    join_three(f);
    f->job.places[3]->suspect = true; /* then its node's liveness is the judge */
    send_many(f, 3, 20);
    send_many(f, 4, 20);
    run_until(f->loop, !node_link_alive(f->job.places[4]));
    assert_true(node_link_alive(f->job.places[3]));
    assert_int_equal(f->agents[4].counts[FRAME_TREE_LEFT], 0);
    f->job.places[3]->suspect = false;
}

/* An answer may wait, but not too many bytes of them. */
static void test_room_for_answers(void **state)
{
    static const int one[] = {3};
    struct fixture *f = *state;
    join_three(f);
    assert_false(node_link_takes(f->job.places[7], 97 * MIB)); /* it does not know the tree */
    send_result(f, one, 1, 4 * KIB);
    send_many(f, 3, 2); /* behind the result, which is not confirmed */
    assert_true(node_link_takes(f->job.places[3], 60 * MIB));
    assert_false(node_link_takes(f->job.places[3], 73 * MIB));
}

/* A loss must not look like a hang. */
static void test_jobs_without_a_tree(void **state)
{
    struct fixture *f = *state;
    tree_part.close(&f->job);
    f->job.own[PART_tree] = NULL;
    f->settings.hang_timeout = TREE_HANG_LEAST_MS - 1;
    assert_int_equal(tree_part.open(&f->job, NULL), 0);
    assert_null(f->job.own[PART_tree]);
    f->settings.hang_timeout = 0;
    assert_int_equal(tree_part.open(&f->job, NULL), 0);
    assert_non_null(f->job.own[PART_tree]);
}

/* Most of the queue of a link is for what only its agent gets. */
static void test_an_agent_that_is_slow(void **state)
{
    static const int one[] = {3};
    struct fixture *f = *state;
    join_three(f);
    uint8_t *much AUTO_FREE = mem_array(40 * MIB, 1);
    link_send(f->job.places[0]->link, FRAME_LOG, 0, much, 40 * MIB);
    for (int i = 0; i < 3; i++)
        send_result(f, one, 1, 4 * MIB); /* in one turn of the loop */
    run_until(f->loop, f->agents[0].for_others == 1);
    run_turns(f->loop, 5);
    assert_int_equal(f->agents[0].for_others, 1); /* the others wait */
    assert_int_equal(taken(f, 3, 1), 0);
    run_until(f->loop, f->agents[0].for_others + (size_t)f->agents[3].counts[FRAME_TREE_DOWN] >= 3);
}

/* It was only slow. It tries again when it has all, but not for ever. */
static void test_late(void **state)
{
    static const int both[] = {0, 3};
    struct fixture *f = *state;
    join_three(f);
    for (uint32_t i = 1; i <= TREE_TRIES + 1; i++) {
        send_result(f, both, 2, 4 * KIB);
        run_until(f->loop, f->agents[3].serial == i); /* on its own link */
        assert_int_equal(f->agents[3].counts[FRAME_TREE_LEFT], i);
        assert_int_equal(f->agents[3].join, i);
        assert_int_equal(taken(f, 0, i), 0);
        assert_int_equal(taken(f, 3, i), 0);
        if (i <= TREE_TRIES)
            assert_int_equal(joined(f, 3, i + 1), 0);
    }
    assert_int_equal(f->agents[3].join, TREE_TRIES + 1);
    assert_int_equal(f->agents[4].counts[FRAME_TREE_LEFT], 0);
}

/* Each heartbeat has its answer behind what the ranks have printed. */
static void test_a_busy_way_back(void **state)
{
    static const int both[] = {3, 4};
    struct fixture *f = *state;
    join_three(f);
    f->job.places[3]->answered_ns = -INT64_MAX; /* long ago */
    send_result(f, both, 2, 4 * KIB);
    run_until(f->loop, f->agents[4].serial == 1); /* on its own link */
    run_turns(f->loop, 5);
    assert_int_equal(f->agents[3].counts[FRAME_TREE_LEFT], 0);
    f->job.places[3]->answered_ns = INT64_MAX;
    run_until(f->loop, f->agents[3].serial == 1);
    assert_int_equal(f->agents[3].counts[FRAME_TREE_LEFT], 1);
}

/* It has its own results first, and then connects again, once. */
static void test_silent_with_results_on_the_way(void **state)
{
    static const int one[] = {3};
    struct fixture *f = *state;
    struct node_link *above = f->job.places[0];
    join_three(f);
    send_result(f, one, 1, 4 * KIB);
    run_turns(f->loop, 3);
    above->suspect = true;
    tree_part.node_event(&f->job, above, "node_suspect", NULL);
    run_until(f->loop, f->agents[3].serial == 1);
    above->suspect = false;
    tree_part.node_event(&f->job, above, "node_heard", NULL);
    run_turns(f->loop, 3);
    assert_int_equal(f->agents[3].join, 1);
    assert_int_equal(f->agents[4].join, 2);
    assert_int_equal(taken(f, 3, 1), 0);
    assert_int_equal(f->agents[3].join, 2);
    assert_int_equal(joined(f, 3, 2), 0);
    assert_int_equal(left(f, 3, 2), 0);
    send_result(f, one, 1, 4 * KIB);
    assert_int_equal(taken(f, 3, 2), 0);
    assert_int_equal(f->agents[3].join, 2);
}

static void silent_and_heard(struct fixture *f, int place)
{
    tree_part.node_event(&f->job, f->job.places[place], "node_suspect", NULL);
    tree_part.node_event(&f->job, f->job.places[place], "node_heard", NULL);
    run_turns(f->loop, 3);
}

/* Agent 0 may still pass on old parcels for those below 3, of which it has dropped the first ones.
 */
static void owe_those_below(struct fixture *f)
{
    static const int both[] = {12, 13};
    join_three(f);
    assert_int_equal(opened(f, 3, 7, ""), 0);
    for (int i = 12; i <= 14; i++)
        assert_int_equal(joined(f, i, 1), 0);
    send_result(f, both, 2, 4 * KIB);
    run_until(f->loop, f->agents[0].for_others == 2);
    silent_and_heard(f, 0);
    assert_int_equal(f->agents[4].join, 2);
    assert_int_equal(f->agents[3].join, 1);
    assert_int_equal(taken(f, 12, 1), 0);
    assert_int_equal(f->agents[3].join, 1);
}

static void test_silent_with_results_for_those_below(void **state)
{
    struct fixture *f = *state;
    owe_those_below(f);
    assert_int_equal(taken(f, 13, 1), 0);
    assert_int_equal(f->agents[3].join, 2);
}

/* It will never confirm. */
static void test_silent_with_results_for_one_that_is_lost(void **state)
{
    struct fixture *f = *state;
    owe_those_below(f);
    tree_part.node_lost(&f->job, f->job.places[13]);
    run_turns(f->loop, 3);
    assert_int_equal(f->agents[3].join, 2);
}

/* Before the tree begins, and before the agent waits for others. A second order would end the
 * connection of the first one, and the driver would not know. */
static void test_silent_at_the_start(void **state)
{
    struct fixture *f = *state;
    tree_part.close(&f->job);
    assert_int_equal(tree_part.open(&f->job, NULL), 0);
    silent_and_heard(f, 0);
    tree_part.steps_begin(&f->job);
    run_turns(f->loop, 3);
    silent_and_heard(f, 0);
    assert_int_equal(f->agents[3].counts[FRAME_TREE_JOIN], 0);
    join_three(f);
    tree_part.node_event(&f->job, f->job.places[0], "node_heard", NULL);
    run_turns(f->loop, 3);
    assert_int_equal(f->agents[3].counts[FRAME_TREE_JOIN], 1);
    assert_int_equal(f->agents[3].counts[FRAME_TREE_LEFT], 0);
}

/* Not even if the agent above it was silent, too. */
static void test_late_and_then_silent(void **state)
{
    static const int both[] = {0, 3};
    struct fixture *f = *state;
    join_three(f);
    for (uint32_t i = 1; i <= TREE_TRIES + 1; i++) {
        send_result(f, both, 2, 4 * KIB);
        run_until(f->loop, f->agents[3].serial == i);
        f->job.places[0]->suspect = true;
        tree_part.node_event(&f->job, f->job.places[0], "node_suspect", NULL);
        assert_int_equal(taken(f, 0, i), 0);
        assert_int_equal(taken(f, 3, i), 0);
        assert_int_equal(f->agents[3].join, i);
        f->job.places[0]->suspect = false;
        tree_part.node_event(&f->job, f->job.places[0], "node_heard", NULL);
        run_turns(f->loop, 3);
        assert_int_equal(f->agents[3].join, i <= TREE_TRIES ? i + 1 : i);
        if (i <= TREE_TRIES)
            assert_int_equal(joined(f, 3, i + 1), 0);
    }
    assert_int_equal(f->agents[4].join, TREE_TRIES + 2);
}

/* Workers may still pass a fence after a warning, before they end. */
static void test_late_while_the_job_ends(void **state)
{
    static const int both[] = {0, 3};
    struct fixture *f = *state;
    join_three(f);
    f->job.state = JOB_ENDING;
    send_result(f, both, 2, 4 * KIB);
    run_until(f->loop, f->agents[3].serial == 1); /* on its own link */
    assert_int_equal(taken(f, 0, 1), 0);
    assert_int_equal(taken(f, 3, 1), 0);
    f->job.state = JOB_RUNNING;
}

/* -v counts those that are below others when the last one has said so. */
static void test_settled(void **state)
{
    struct fixture *f = *state;
    join_three(f);
    assert_int_equal(left(f, 4, 1), 0);
    for (int i = 3; i <= 5; i++)
        assert_int_equal(opened(f, i, 0, "no"), 0);
    assert_int_equal(opened(f, 1, 0, "no"), 0);
    assert_null(strstr(buf_text(&f->said), "agents are below others"));
    tree_part.node_lost(&f->job, f->job.places[2]);
    assert_non_null(strstr(buf_text(&f->said), "2 of 20 agents are below others"));
}

/* Several machines, and none has an address. */
static void test_without_addresses(void **state)
{
    struct fixture *f = *state;
    Hvdrun__AgentHello other = f->hello;
    tree_part.close(&f->job);
    other.boot_id = (char *)"two";
    f->job.nodes[1]->hello = &other;
    assert_int_equal(tree_part.open(&f->job, NULL), 0);
    tree_part.steps_begin(&f->job);
    run_turns(f->loop, 3);
    assert_int_equal(f->agents[0].counts[FRAME_TREE_OPEN], 1); /* of the tree before */
    assert_non_null(strstr(buf_text(&f->said), "it has no address that others reach"));
    assert_non_null(strstr(buf_text(&f->said), "0 of 20 agents are below others"));
    f->job.nodes[1]->hello = &f->hello;
}

/* What it says about an older order is about a connection that is no more. */
static void test_old_words(void **state)
{
    static const int one[] = {3};
    struct fixture *f = *state;
    join_three(f);
    tree_part.node_event(&f->job, f->job.places[0], "node_suspect", NULL);
    run_turns(f->loop, 3);
    assert_int_equal(f->agents[3].counts[FRAME_TREE_LEFT], 1);
    tree_part.node_event(&f->job, f->job.places[0], "node_heard", NULL);
    run_turns(f->loop, 3);
    assert_int_equal(f->agents[3].join, 2);
    assert_int_equal(joined(f, 3, 1), 0);
    assert_int_equal(left(f, 3, 1), 0);
    send_result(f, one, 1, 4 * KIB);
    run_turns(f->loop, 5);
    assert_int_equal(f->agents[3].counts[FRAME_TREE_DOWN], 1);
    assert_int_equal(taken(f, 3, 1), 0);
    assert_int_equal(joined(f, 3, 2), 0);
    assert_int_equal(left(f, 3, 1), 0);
    send_result(f, one, 1, 4 * KIB);
    run_turns(f->loop, 5);
    assert_int_equal(f->agents[0].for_others, 1);
    assert_int_equal(f->agents[3].counts[FRAME_TREE_LEFT], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_orders, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_result, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_agent_that_is_slow, setup, teardown),
        cmocka_unit_test_setup_teardown(test_old_words, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_child_that_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order_within_a_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(test_results_before_the_tree, setup, teardown),
        cmocka_unit_test_setup_teardown(test_much_comes_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_much_for_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_much_for_many_comes_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_much_waits_for_another_way, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_agent_that_takes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_room_for_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_jobs_without_a_tree, setup, teardown),
        cmocka_unit_test_setup_teardown(test_silent_with_results_on_the_way, setup, teardown),
        cmocka_unit_test_setup_teardown(test_silent_with_results_for_those_below, setup, teardown),
        cmocka_unit_test_setup_teardown(test_silent_with_results_for_one_that_is_lost, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_silent_at_the_start, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_busy_way_back, setup_short, teardown),
        cmocka_unit_test_setup_teardown(test_late, setup_short, teardown),
        cmocka_unit_test_setup_teardown(test_late_and_then_silent, setup_short, teardown),
        cmocka_unit_test_setup_teardown(test_late_while_the_job_ends, setup_short, teardown),
        cmocka_unit_test_setup_teardown(test_settled, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_addresses, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
