/* SPDX-License-Identifier: Apache-2.0 */
/* The store's meaning of PUT, GET and DELETE, held GETs, epochs, the memory limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "rendezvous/held.h"
#include "rendezvous/store.h"

enum { ANSWERS = 8192, NOTHING = -1 };

struct fixture {
    struct rendezvous_store *store;
    int status[ANSWERS]; /* by id; NOTHING until answered */
    char body[ANSWERS][64];
    int answers[ANSWERS];
    uint64_t last_id;
    uint32_t epoch;
    int problems, elastic, elastic_dropped, met;
    char stuck[32]; /* ranks, in the order in which they were reported; "!": not at the gate */
    char problem[256];
};

static void on_reply(void *context, struct rendezvous_source source, int status, const void *body,
                     size_t length)
{
    struct fixture *f = context;
    assert_true(source.id < ANSWERS);
    f->status[source.id] = status;
    f->answers[source.id]++;
    snprintf(f->body[source.id], sizeof(f->body[0]), "%.*s", (int)length,
             length > 0 ? (const char *)body : "");
}

static void on_problem(void *context, const char *text)
{
    struct fixture *f = context;
    f->problems++;
    snprintf(f->problem, sizeof(f->problem), "%s", text);
}

static void on_elastic(void *context, struct rendezvous_source source,
                       const struct rendezvous_request *request)
{
    (void)source, (void)request;
    ((struct fixture *)context)->elastic++;
}

static void on_elastic_dropped(void *context, struct rendezvous_source source)
{
    (void)source;
    ((struct fixture *)context)->elastic_dropped++;
}

static void on_met(void *context)
{
    ((struct fixture *)context)->met++;
}

static void on_stuck(void *context, int rank, bool at_gate)
{
    struct fixture *f = context;
    size_t length = strlen(f->stuck);
    snprintf(f->stuck + length, sizeof(f->stuck) - length, "%d%s ", rank, at_gate ? "" : "!");
}

static const struct rendezvous_store_ops static_ops = {.reply = on_reply, .problem = on_problem};
static const struct rendezvous_store_ops elastic_ops = {.reply = on_reply,
                                                        .problem = on_problem,
                                                        .met = on_met,
                                                        .stuck = on_stuck,
                                                        .elastic = on_elastic,
                                                        .elastic_dropped = on_elastic_dropped};

/* Two nodes: a with ranks 0 and 1, b with rank 2. */
static void begin(struct fixture *f, uint32_t epoch)
{
    struct plan_rank ranks[3] = {
        {.rank = 0, .node = 0, .local_rank = 0, .cross_rank = 0, .cross_size = 2},
        {.rank = 1, .node = 0, .local_rank = 1, .cross_rank = 0, .cross_size = 1},
        {.rank = 2, .node = 1, .local_rank = 0, .cross_rank = 1, .cross_size = 2},
    };
    struct plan_node nodes[2] = {{.name = (char *)"a", .local_size = 2},
                                 {.name = (char *)"b", .local_size = 1}};
    struct plan plan = {.size = 3, .node_count = 2, .ranks = ranks, .nodes = nodes};
    f->epoch = epoch;
    rendezvous_store_begin(f->store, epoch, &plan);
}

static struct fixture *create(const struct rendezvous_store_ops *ops, uint64_t limit)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    for (int i = 0; i < ANSWERS; i++)
        f->status[i] = NOTHING;
    f->store = rendezvous_store_create(ops, f, limit);
    begin(f, 1);
    return f;
}

static int setup(void **state)
{
    *state = create(&static_ops, 1 << 20);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    rendezvous_store_destroy(f->store);
    free(f);
    return 0;
}

/* Sends a request at time `now` and returns its id. */
static uint64_t send_at(struct fixture *f, int64_t now, enum rendezvous_method method,
                        const char *scope, const char *key, const char *body)
{
    struct rendezvous_request request = {
        .method = method, .scope = scope, .key = key, .body = body, .length = strlen(body)};
    uint64_t id = ++f->last_id;
    rendezvous_store_request(f->store, now, f->epoch, (struct rendezvous_source){1, id}, &request);
    return id;
}

static int put(struct fixture *f, const char *scope, const char *key, const char *body)
{
    return f->status[send_at(f, 0, RENDEZVOUS_PUT, scope, key, body)];
}

static int del(struct fixture *f, const char *scope, const char *key)
{
    return f->status[send_at(f, 0, RENDEZVOUS_DELETE, scope, key, "")];
}

static uint64_t get(struct fixture *f, const char *scope, const char *key)
{
    return send_at(f, 0, RENDEZVOUS_GET, scope, key, "");
}

static bool present(struct fixture *f, const char *scope, const char *key)
{
    uint64_t id = get(f, scope, key);
    bool found = f->status[id] == 200;
    if (f->status[id] == NOTHING)
        rendezvous_store_drop(f->store, (struct rendezvous_source){1, id});
    return found;
}

static void test_put_get(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(put(f, "local_a", "rank_0", "vm"), 200);
    assert_int_equal(put(f, "global", "0", ""), 200);
    assert_int_equal(put(f, "scope", "x", "1"), 200);
    assert_string_equal(f->body[get(f, "local_a", "rank_0")], "vm");
    uint64_t empty = get(f, "global", "0"); /* an empty blob is a blob */
    assert_int_equal(f->status[empty], 200);
    assert_string_equal(f->body[empty], "");
    assert_int_equal(put(f, "local_a", "rank_0", "other"), 200);
    assert_string_equal(f->body[get(f, "local_a", "rank_0")], "other");
    assert_int_equal(f->status[get(f, "local_a", "rank_1")], 404);
    assert_int_equal(f->status[get(f, "nowhere", "rank_0")], 404);
}

static void test_held_until_put(void **state)
{
    struct fixture *f = *state;
    uint64_t first = get(f, "global", "1"), second = get(f, "global", "1");
    uint64_t other = get(f, "global", "2");
    assert_int_equal(f->status[first], NOTHING);
    assert_int_equal(rendezvous_store_next_deadline(f->store), RENDEZVOUS_HOLD_MS);
    assert_int_equal(put(f, "local_a", "1", "wrong scope"), 200);
    assert_int_equal(f->status[first], NOTHING);
    assert_int_equal(put(f, "global", "1", "here"), 200);
    assert_string_equal(f->body[first], "here");
    assert_string_equal(f->body[second], "here");
    assert_int_equal(f->status[other], NOTHING);
    assert_int_equal(f->answers[first], 1);
}

static void test_held_until_late(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(rendezvous_store_next_deadline(f->store), -1);
    uint64_t early = send_at(f, 5000, RENDEZVOUS_GET, "global", "1", "");
    uint64_t late = send_at(f, 5400, RENDEZVOUS_GET, "global", "1", "");
    rendezvous_store_expire(f->store, 5999);
    assert_int_equal(f->status[early], NOTHING);
    rendezvous_store_expire(f->store, 6000);
    assert_int_equal(f->status[early], 404);
    assert_int_equal(f->status[late], NOTHING);
    assert_int_equal(rendezvous_store_next_deadline(f->store), 6400);
    rendezvous_store_expire(f->store, 10000);
    assert_int_equal(f->status[late], 404);
    assert_int_equal(rendezvous_store_next_deadline(f->store), -1);
}

static void test_dropped_waiters(void **state)
{
    struct fixture *f = *state;
    uint64_t one = get(f, "global", "1"), two = get(f, "global", "1"),
             three = get(f, "global", "1");
    rendezvous_store_drop(f->store, (struct rendezvous_source){1, two});
    rendezvous_store_drop(f->store, (struct rendezvous_source){1, 4444});
    rendezvous_store_drop(f->store, (struct rendezvous_source){2, one}); /* another node's id */
    put(f, "global", "1", "x");
    assert_int_equal(f->status[one], 200);
    assert_int_equal(f->status[two], NOTHING);
    assert_int_equal(f->status[three], 200);
    uint64_t gone = get(f, "global", "2");
    rendezvous_store_drop_node(f->store, 2);
    assert_int_equal(rendezvous_store_next_deadline(f->store), RENDEZVOUS_HOLD_MS);
    rendezvous_store_drop_node(f->store, 1);
    assert_int_equal(rendezvous_store_next_deadline(f->store), -1);
    put(f, "global", "2", "x");
    assert_int_equal(f->status[gone], NOTHING);
}

/* A repeated request (same source) is answered once. */
static void test_repeated_wait(void **state)
{
    struct fixture *f = *state;
    struct rendezvous_request request = {.method = RENDEZVOUS_GET, .scope = "global", .key = "1"};
    struct rendezvous_source source = {1, 77};
    rendezvous_store_request(f->store, 0, 1, source, &request);
    rendezvous_store_request(f->store, 500, 1, source, &request);
    assert_int_equal(rendezvous_store_next_deadline(f->store), 500 + RENDEZVOUS_HOLD_MS);
    put(f, "global", "1", "x");
    assert_int_equal(f->answers[77], 1);
}

static void put_all(struct fixture *f, const char *scope, int count)
{
    for (int i = 0; i < count; i++) {
        char key[32];
        snprintf(key, sizeof(key), "%d", i);
        put(f, scope, key, "x");
        snprintf(key, sizeof(key), "rank_%d", i);
        put(f, scope, key, "vm");
    }
}

static void test_plan_scope_empties_when_all_are_done(void **state)
{
    struct fixture *f = *state;
    for (int round = 0; round < 4; round++) { /* shutdown and init again, several times */
        put_all(f, "global", 3);
        assert_int_equal(del(f, "global", "0"), 200);
        assert_int_equal(del(f, "global", "0"), 200); /* repeated: counts once */
        assert_int_equal(del(f, "global", "0"), 200);
        assert_int_equal(del(f, "global", "2"), 200);
        assert_true(present(f, "global", "0")); /* readable until all are done */
        assert_true(present(f, "global", "rank_1"));
        assert_int_equal(del(f, "global", "1"), 200);
        assert_false(present(f, "global", "0"));
        assert_false(present(f, "global", "1"));
        assert_false(present(f, "global", "rank_1"));
        assert_int_equal(del(f, "global", "1"), 200); /* repeated after the end: no harm */
    }
}

static void test_each_plan_scope_counts_for_itself(void **state)
{
    struct fixture *f = *state;
    put_all(f, "global", 3);
    put_all(f, "local_a", 2);
    put_all(f, "local_b", 1);
    put_all(f, "cross_0", 2);
    put_all(f, "cross_1", 1);
    del(f, "global", "0");
    del(f, "local_a", "0");
    del(f, "local_b", "0");
    del(f, "cross_1", "0");
    del(f, "cross_0", "1");
    assert_false(present(f, "local_b", "0"));
    assert_false(present(f, "cross_1", "0"));
    assert_true(present(f, "local_a", "0"));
    assert_true(present(f, "cross_0", "1"));
    assert_true(present(f, "global", "0"));
    del(f, "local_a", "1");
    del(f, "cross_0", "0");
    assert_false(present(f, "local_a", "0"));
    assert_false(present(f, "cross_0", "1"));
    del(f, "global", "1");
    del(f, "global", "2");
    assert_false(present(f, "global", "0"));
}

static void test_what_does_not_count(void **state)
{
    struct fixture *f = *state;
    put_all(f, "global", 3);
    put(f, "global", "3", "beyond the plan");
    del(f, "global", "3");
    del(f, "global", "rank_0");
    del(f, "global", "17");
    del(f, "global", "0");
    del(f, "global", "1");
    assert_true(present(f, "global", "0"));
    put(f, "global", "0", "again"); /* takes its "done" back */
    del(f, "global", "2");
    assert_true(present(f, "global", "2"));
    del(f, "global", "0");
    assert_false(present(f, "global", "2"));
}

static void test_other_scopes_lose_the_key(void **state)
{
    struct fixture *f = *state;
    const char *scope = "global_process_set_hash_5f";
    uint64_t before = rendezvous_store_memory(f->store);
    put_all(f, scope, 3);
    assert_int_equal(del(f, scope, "0"), 200);
    assert_false(present(f, scope, "0"));
    assert_true(present(f, scope, "1"));
    del(f, scope, "1");
    del(f, scope, "2");
    assert_true(present(f, scope, "rank_0"));
    for (int i = 0; i < 3; i++) {
        char key[32];
        snprintf(key, sizeof(key), "rank_%d", i);
        del(f, scope, key);
    }
    assert_int_equal(rendezvous_store_memory(f->store), before);
    assert_int_equal(del(f, scope, "0"), 200);
    assert_int_equal(del(f, "nowhere", "0"), 200);
}

static void test_epochs(void **state)
{
    struct fixture *f = *state;
    put_all(f, "global", 3);
    del(f, "global", "0");
    del(f, "global", "1");
    uint64_t waiting = get(f, "global", "9");
    begin(f, 2);
    assert_int_equal(f->status[waiting], 404);
    assert_int_equal(rendezvous_store_next_deadline(f->store), -1);
    assert_false(present(f, "global", "0"));
    /* the counts begin again */
    put_all(f, "global", 3);
    del(f, "global", "2");
    assert_true(present(f, "global", "2"));
    /* one that is late is answered, and changes nothing */
    f->epoch = 1;
    assert_int_equal(put(f, "global", "0", "stale"), 404);
    assert_int_equal(del(f, "global", "0"), 404);
    assert_int_equal(f->status[get(f, "global", "0")], 404);
    assert_int_equal(f->status[get(f, "global", "1")], 404);
    f->epoch = 2;
    assert_string_equal(f->body[get(f, "global", "0")], "x");
}

static void test_memory_limit(void **state)
{
    (void)state;
    struct fixture *f = create(&static_ops, 20000);
    char body[4001];
    memset(body, 'x', sizeof(body) - 1);
    body[4000] = '\0';
    int stored = 0;
    char key[16];
    for (; stored < 10; stored++) {
        snprintf(key, sizeof(key), "%d", stored);
        if (put(f, "global", key, body) != 200)
            break;
    }
    assert_in_range(stored, 2, 4);
    assert_int_equal(put(f, "global", "9", body), 507);
    assert_int_equal(put(f, "other", "9", body), 507);
    assert_int_equal(f->problems, 1); /* said once, in one line */
    assert_null(strchr(f->problem, '\n'));
    assert_non_null(strstr(f->problem, "full"));
    assert_int_equal(put(f, "global", "0", body), 200); /* replacing needs no more room */
    assert_true(present(f, "global", "0"));
    assert_true(rendezvous_store_memory(f->store) <= 20000);
    /* empty blobs and new scopes cost too */
    int tiny = 0;
    for (; tiny < 1000; tiny++) {
        snprintf(key, sizeof(key), "s%d", tiny);
        if (put(f, key, "0", "") != 200)
            break;
    }
    assert_true(tiny < 100);
    begin(f, 2);
    assert_int_equal(put(f, "global", "9", body), 200);
    void *handle = f;
    teardown(&handle);
}

static void test_elastic_hooks(void **state)
{
    (void)state;
    struct fixture *f = create(&elastic_ops, 1 << 20);
    uint64_t id = get(f, "rank_and_size", "a:0");
    f->epoch = 0; /* the vote of a worker that is still in the old round counts */
    get(f, "rank_and_size", "a:1");
    send_at(f, 0, RENDEZVOUS_PUT, "worker_addresses", "a:0", "gAWV");
    assert_int_equal(f->elastic, 3);
    assert_int_equal(f->status[id], NOTHING);
    assert_int_equal(rendezvous_store_next_deadline(f->store), -1); /* no limit to its waiting */
    rendezvous_store_drop(f->store, (struct rendezvous_source){1, id});
    assert_int_equal(f->elastic_dropped, 1);
    void *handle = f;
    teardown(&handle);
}

static void test_elastic_scopes_in_a_static_job(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(put(f, "worker_addresses", "a:0", "gAWV"), 200);
    assert_int_equal(f->status[get(f, "rank_and_size", "a:0")], 501); /* never 404 */
}

static void test_invalid_requests(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(put(f, "", "0", ""), 400);
    assert_int_equal(put(f, "a b", "0", ""), 400);
    assert_int_equal(put(f, "global", "x/y", ""), 400);
}

/* 512 ranks, every rank's address read by every rank: quick, and every answer is there. */
static void test_many_ranks(void **state)
{
    (void)state;
    enum { RANKS = 512 };
    struct fixture *f = create(&static_ops, 0);
    char key[16];
    uint64_t waiting[RANKS];
    for (int i = 0; i < RANKS; i++) {
        snprintf(key, sizeof(key), "%d", i);
        waiting[i] = get(f, "global_x", key);
    }
    for (int i = RANKS - 1; i >= 0; i--) {
        snprintf(key, sizeof(key), "%d", i);
        assert_int_equal(put(f, "global_x", key, key), 200);
        assert_string_equal(f->body[waiting[i]], key);
    }
    for (int round = 0; round < RANKS; round++) {
        f->last_id = 2 * RANKS;
        for (int i = 0; i < RANKS; i++) {
            snprintf(key, sizeof(key), "%d", i);
            assert_string_equal(f->body[get(f, "global_x", key)], key);
        }
    }
    void *handle = f;
    teardown(&handle);
}

/* By itself the limit is what the ranks can need: a process that stores without end is stopped. */
static void test_limit_of_a_small_job(void **state)
{
    (void)state;
    static char blob[1000 * 1000 + 1];
    struct fixture *f = create(&static_ops, 0);
    memset(blob, 'x', sizeof(blob) - 1);
    int stored = 0, status = 200;
    while (status == 200 && stored < 1000) {
        char key[16];
        snprintf(key, sizeof(key), "k%d", stored++);
        status = put(f, "global", key, blob);
    }
    assert_int_equal(status, 507);
    assert_in_range(stored, 30, 40);
    assert_true(rendezvous_memory_need(4096) > UINT64_C(2) * 136 * 4096 * 4096);
    assert_true(rendezvous_memory_need(INT64_MAX) > rendezvous_memory_need(4096));
    void *handle = f;
    teardown(&handle);
}

/* Nor does it hold more questions than there can be workers. */
static void test_limit_of_the_held(void **state)
{
    struct fixture *f = *state;
    enum { LIMIT = 1024 + 2 * 3 };
    for (int i = 0; i < LIMIT; i++)
        assert_int_equal(f->status[get(f, "global", "1")], NOTHING);
    assert_int_equal(f->status[get(f, "global", "1")], 404);
    rendezvous_store_expire(f->store, 1000000);
    assert_int_equal(f->status[get(f, "global", "1")], NOTHING);
}

/* Whoever is done first: a scope is emptied by the last of its members, with all that it has. */
static void test_a_scope_waits_for_each_member(void **state)
{
    struct fixture *f = *state;
    for (int first = 0; first < 2; first++) {
        put_all(f, "cross_0", 2);
        del(f, "cross_0", first == 0 ? "0" : "1");
        assert_true(present(f, "cross_0", "0"));
        assert_true(present(f, "cross_0", "1"));
        del(f, "cross_0", first == 0 ? "1" : "0");
        assert_false(present(f, "cross_0", "0"));
        assert_false(present(f, "cross_0", "rank_1"));
    }
    put_all(f, "cross_1", 1);
    del(f, "cross_1", "0");
    assert_false(present(f, "cross_1", "rank_0"));
    put_all(f, "local_b", 1);
    del(f, "local_b", "rank_0"); /* not a member's number: nobody is done */
    assert_true(present(f, "local_b", "0"));
    assert_true(present(f, "local_b", "rank_0"));
}

/* The elastic part hears only of those who asked it. */
static void test_dropped_from_the_store_itself(void **state)
{
    (void)state;
    struct fixture *f = create(&elastic_ops, 1 << 20);
    uint64_t id = get(f, "global", "1");
    assert_int_equal(f->status[id], NOTHING);
    rendezvous_store_drop(f->store, (struct rendezvous_source){1, id});
    assert_int_equal(f->elastic_dropped, 0);
    void *handle = f;
    teardown(&handle);
}

static uint64_t come(struct fixture *f, int64_t now, const char *rank)
{
    return send_at(f, now, RENDEZVOUS_PUT, "global", rank, "vm");
}

/* Nobody begins to connect before all are there, however long one takes. */
static void test_the_gate(void **state)
{
    struct fixture *f = *state;
    for (int round = 0; round < 2; round++) { /* a program may begin anew */
        uint64_t first = come(f, 0, "rank_2"), second = come(f, 90000, "rank_0");
        assert_int_equal(f->status[first], NOTHING);
        assert_int_equal(f->status[second], NOTHING);
        assert_string_equal(f->body[get(f, "global", "rank_2")], "vm"); /* but it is stored */
        uint64_t again = come(f, 95000, "rank_2"); /* its client has sent it once more */
        assert_int_equal(f->status[first], 200);   /* nobody waits for ever */
        assert_int_equal(f->status[again], NOTHING);
        uint64_t last = come(f, 99000, "rank_1");
        assert_int_equal(f->status[second], 200);
        assert_int_equal(f->status[again], 200);
        assert_int_equal(f->status[last], 200);
    }
    assert_int_equal(put(f, "global", "rank_3", "vm"), 200); /* there is no such rank */
    assert_int_equal(put(f, "global_process_set_hash_1f", "rank_0", "vm"), 200);
}

static void test_the_gate_names_who_is_missing(void **state)
{
    struct fixture *f = *state;
    uint64_t first = come(f, 0, "rank_1");
    assert_int_equal(rendezvous_store_next_deadline(f->store), 60000);
    rendezvous_store_expire(f->store, 60000);
    assert_string_equal(f->problem,
                        "1 of 3 ranks have waited at the rendezvous for 60 s; not there yet: "
                        "rank 0, 2");
    assert_int_equal(rendezvous_store_next_deadline(f->store), RENDEZVOUS_GATE_MS);
    rendezvous_store_expire(f->store, RENDEZVOUS_GATE_MS); /* as if there were no gate */
    assert_int_equal(f->status[first], 200);
    assert_int_equal(f->problems, 1);
    assert_int_equal(rendezvous_store_next_deadline(f->store), -1);
}

static void test_the_next_epoch_opens_the_gate(void **state)
{
    struct fixture *f = *state;
    uint64_t held = come(f, 0, "rank_0");
    begin(f, 2);
    assert_int_equal(f->status[held], 404);
    come(f, 0, "rank_1");
    come(f, 0, "rank_2");
    assert_int_equal(f->status[come(f, 0, "rank_0")], 200);
}

/* Nobody comes in the place of a rank that has ended: the others must not wait for it. */
static void test_a_static_gate_opens_for_the_end_of_a_rank(void **state)
{
    struct fixture *f = *state;
    uint64_t held = come(f, 0, "rank_0");
    rendezvous_store_rank_gone(f->store, 1);
    assert_int_equal(f->status[held], 200);
    assert_int_equal(f->status[come(f, 0, "rank_2")], 200);
}

static void test_met(void **state)
{
    (void)state;
    struct fixture *f = create(&elastic_ops, 0);
    const char *const done[][2] = {{"global", "0"},  {"global", "1"},  {"global", "2"},
                                   {"local_a", "0"}, {"local_a", "1"}, {"local_b", "0"},
                                   {"cross_0", "0"}, {"cross_0", "1"}, {"cross_1", "0"}};
    for (int round = 0; round < 2; round++) /* once in an epoch */
        for (size_t i = 0; i < sizeof(done) / sizeof(done[0]); i++) {
            assert_int_equal(f->met, round);
            put(f, done[i][0], done[i][1], "");
            del(f, done[i][0], done[i][1]);
            if (round == 1)
                break;
        }
    assert_int_equal(f->met, 1);
    void *fixture = f;
    teardown(&fixture);
}

static void test_stuck_at_the_gate(void **state)
{
    (void)state;
    struct fixture *f = create(&elastic_ops, 0);
    uint64_t held = come(f, 0, "rank_0");
    rendezvous_store_rank_gone(f->store, 2);
    assert_string_equal(f->stuck, "0 ");
    come(f, 0, "rank_1");
    assert_string_equal(f->stuck, "0 1 ");
    assert_int_equal(f->status[held], NOTHING);
    assert_int_equal(rendezvous_store_next_deadline(f->store), -1);
    void *fixture = f;
    teardown(&fixture);
}

/* A program begins anew after a rank has ended. */
static void test_stuck_at_the_second_gate(void **state)
{
    (void)state;
    struct fixture *f = create(&elastic_ops, 0);
    come(f, 0, "rank_0"), come(f, 0, "rank_1"), come(f, 0, "rank_2");
    come(f, 0, "rank_0");
    rendezvous_store_rank_gone(f->store, 2);
    assert_string_equal(f->stuck, "0 ");
    come(f, 0, "rank_1");
    assert_string_equal(f->stuck, "0 1 ");
    void *fixture = f;
    teardown(&fixture);
}

/* Another worker comes for the rank that has gone; the others have waited on. */
static void test_the_gate_is_repaired(void **state)
{
    (void)state;
    struct fixture *f = create(&elastic_ops, 0);
    uint64_t first = come(f, 0, "rank_0"), gone = come(f, 0, "rank_2");
    rendezvous_store_rank_gone(f->store, 2);
    uint64_t late = come(f, 5, "rank_1"); /* it was on its way */
    assert_string_equal(f->stuck, "0 1 ");
    rendezvous_store_repair(f->store, 2);
    f->epoch = 2;
    assert_int_equal(f->status[first], NOTHING);
    uint64_t other = come(f, 9, "rank_2");
    assert_int_equal(f->status[first], 200);
    assert_int_equal(f->status[late], 200);
    assert_int_equal(f->status[other], 200);
    assert_int_equal(f->status[gone], NOTHING); /* nobody is there to hear it */
    come(f, 0, "rank_0");
    rendezvous_store_rank_gone(f->store, 2); /* that worker, too */
    assert_string_equal(f->stuck, "0 1 0 ");
    void *fixture = f;
    teardown(&fixture);
}

/* Behind the gate: those that are in a scope with the one that has gone, unless it was done. */
static void test_stuck_in_a_scope(void **state)
{
    (void)state;
    struct fixture *f = create(&elastic_ops, 0);
    come(f, 0, "rank_0");
    come(f, 0, "rank_1");
    come(f, 0, "rank_2");
    put(f, "global", "0", "");
    put(f, "global", "1", "");
    put(f, "global", "2", "");
    del(f, "global", "2");
    rendezvous_store_rank_gone(f->store, 2); /* rank 0 will miss it in cross_0 */
    assert_string_equal(f->stuck, "");
    del(f, "global", "0");
    put(f, "local_a", "0", "");
    assert_string_equal(f->stuck, "");
    put(f, "cross_0", "0", "");
    assert_string_equal(f->stuck, "0! ");
    rendezvous_store_rank_gone(f->store, 1); /* rank 0 was done with global, not with local_a */
    assert_string_equal(f->stuck, "0! 0! ");
    void *fixture = f;
    teardown(&fixture);
}

static int put_addresses(struct fixture *f, const char *scope, const char *key, int peers)
{
    char body[4 * RENDEZVOUS_PAIR_BYTES + 1];
    memset(body, 'x', sizeof(body));
    body[peers * RENDEZVOUS_PAIR_BYTES] = '\0';
    return put(f, scope, key, body);
}

/* The process set of all ranks, which Horovod makes in the same init. Other sets have members that
 * only their ranks know. */
static void test_stuck_in_the_scope_of_a_process_set(void **state)
{
    (void)state;
    struct fixture *f = create(&elastic_ops, 0);
    come(f, 0, "rank_0");
    come(f, 0, "rank_1");
    come(f, 0, "rank_2");
    put_addresses(f, "global_process_set_hash_1f", "0", 2);
    put_addresses(f, "global_process_set_hash_1f", "1", 2);
    put_addresses(f, "global_process_set_hash_1f", "2", 2);
    put_addresses(f, "global_process_set_hash_2f", "0", 1); /* two of the ranks */
    put_addresses(f, "node_process_set_hash_1f", "0", 2);
    del(f, "global_process_set_hash_1f", "1");
    rendezvous_store_rank_gone(f->store, 1); /* was done there */
    assert_string_equal(f->stuck, "");
    put_addresses(f, "cross_0_process_set_hash_1f", "0", 1);
    assert_string_equal(f->stuck, "");
    rendezvous_store_rank_gone(f->store, 2);
    assert_string_equal(f->stuck, "0! 0! ");                 /* in both scopes */
    put_addresses(f, "local_a_process_set_hash_1f", "0", 1); /* rank 1 will not come there */
    assert_string_equal(f->stuck, "0! 0! 0! ");
    void *fixture = f;
    teardown(&fixture);
}

/* A worker that ends long after the rendezvous holds nobody up. */
static void test_nobody_is_stuck_in_training(void **state)
{
    (void)state;
    struct fixture *f = create(&elastic_ops, 0);
    const char *const done[][2] = {{"global", "0"},  {"global", "1"},  {"global", "2"},
                                   {"local_a", "0"}, {"local_a", "1"}, {"local_b", "0"},
                                   {"cross_0", "0"}, {"cross_0", "1"}, {"cross_1", "0"}};
    come(f, 0, "rank_0");
    come(f, 0, "rank_1");
    come(f, 0, "rank_2");
    for (size_t i = 0; i < sizeof(done) / sizeof(done[0]); i++)
        put(f, done[i][0], done[i][1], "");
    for (size_t i = 0; i < sizeof(done) / sizeof(done[0]); i++)
        del(f, done[i][0], done[i][1]);
    rendezvous_store_rank_gone(f->store, 1);
    put(f, "global_process_set_hash_1f", "0", "");
    assert_string_equal(f->stuck, "");
    void *fixture = f;
    teardown(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_put_get, setup, teardown),
        cmocka_unit_test_setup_teardown(test_held_until_put, setup, teardown),
        cmocka_unit_test_setup_teardown(test_held_until_late, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dropped_waiters, setup, teardown),
        cmocka_unit_test_setup_teardown(test_repeated_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(test_plan_scope_empties_when_all_are_done, setup, teardown),
        cmocka_unit_test_setup_teardown(test_each_plan_scope_counts_for_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_does_not_count, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_scopes_lose_the_key, setup, teardown),
        cmocka_unit_test_setup_teardown(test_epochs, setup, teardown),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_elastic_hooks),
        cmocka_unit_test_setup_teardown(test_elastic_scopes_in_a_static_job, setup, teardown),
        cmocka_unit_test_setup_teardown(test_invalid_requests, setup, teardown),
        cmocka_unit_test(test_many_ranks),
        cmocka_unit_test(test_limit_of_a_small_job),
        cmocka_unit_test_setup_teardown(test_limit_of_the_held, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_scope_waits_for_each_member, setup, teardown),
        cmocka_unit_test(test_dropped_from_the_store_itself),
        cmocka_unit_test_setup_teardown(test_the_gate, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_gate_names_who_is_missing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_next_epoch_opens_the_gate, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_static_gate_opens_for_the_end_of_a_rank, setup,
                                        teardown),
        cmocka_unit_test(test_met),
        cmocka_unit_test(test_stuck_at_the_gate),
        cmocka_unit_test(test_stuck_at_the_second_gate),
        cmocka_unit_test(test_the_gate_is_repaired),
        cmocka_unit_test(test_stuck_in_a_scope),
        cmocka_unit_test(test_stuck_in_the_scope_of_a_process_set),
        cmocka_unit_test(test_nobody_is_stuck_in_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
