/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's side: what is asked, what is answered from memory, who gets which answer. */
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
#include "rendezvous/proxy.h"

enum { TOKENS = 64 };

struct fixture {
    struct rendezvous_proxy *proxy;
    int asked, cancelled;
    uint64_t last_ask, last_cancel; /* ids */
    enum rendezvous_method method;
    char path[64], body[64];
    int answers[TOKENS], status[TOKENS];
    char answer[TOKENS][64];
    bool at_once; /* the driver answers inside ask() */
};

static void on_ask(void *context, uint64_t id, const struct rendezvous_request *request)
{
    struct fixture *f = context;
    f->asked++;
    f->last_ask = id;
    f->method = request->method;
    snprintf(f->path, sizeof(f->path), "%s/%s", request->scope, request->key);
    snprintf(f->body, sizeof(f->body), "%.*s", (int)request->length,
             request->length > 0 ? (const char *)request->body : "");
    if (f->at_once)
        rendezvous_proxy_reply(f->proxy, id, 200, "now", 3);
}

static void on_cancel(void *context, uint64_t id)
{
    struct fixture *f = context;
    f->cancelled++;
    f->last_cancel = id;
}

static void on_answer(void *context, uint64_t token, int status, const void *body, size_t length)
{
    struct fixture *f = context;
    assert_true(token < TOKENS);
    f->answers[token]++;
    f->status[token] = status;
    snprintf(f->answer[token], sizeof(f->answer[0]), "%.*s", (int)length,
             length > 0 ? (const char *)body : "");
}

static const struct rendezvous_proxy_ops ops = {
    .ask = on_ask, .cancel = on_cancel, .answer = on_answer};

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    f->proxy = rendezvous_proxy_create(&ops, f, 10000);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    rendezvous_proxy_destroy(f->proxy);
    free(f);
    return 0;
}

/* Returns the id of the question it led to, 0: none. */
static uint64_t request(struct fixture *f, uint64_t token, enum rendezvous_method method,
                        const char *scope, const char *key, const char *body)
{
    struct rendezvous_request text = {
        .method = method, .scope = scope, .key = key, .body = body, .length = strlen(body)};
    int before = f->asked;
    rendezvous_proxy_request(f->proxy, token, &text);
    return f->asked > before ? f->last_ask : 0;
}

static uint64_t get(struct fixture *f, uint64_t token, const char *scope, const char *key)
{
    return request(f, token, RENDEZVOUS_GET, scope, key, "");
}

static void reply(struct fixture *f, uint64_t id, int status, const char *body)
{
    rendezvous_proxy_reply(f->proxy, id, status, body, strlen(body));
}

static void assert_answer(struct fixture *f, uint64_t token, int status, const char *body)
{
    assert_int_equal(f->answers[token], 1);
    assert_int_equal(f->status[token], status);
    assert_string_equal(f->answer[token], body);
}

static void test_pass_through(void **state)
{
    struct fixture *f = *state;
    uint64_t put = request(f, 1, RENDEZVOUS_PUT, "global", "0", "blob");
    assert_int_equal(f->method, RENDEZVOUS_PUT);
    assert_string_equal(f->path, "global/0");
    assert_string_equal(f->body, "blob");
    assert_int_equal(f->answers[1], 0); /* not before the driver has it */
    uint64_t del = request(f, 2, RENDEZVOUS_DELETE, "global", "0", "");
    assert_true(put != 0 && del != 0 && put != del);
    reply(f, del, 200, "");
    assert_answer(f, 2, 200, "");
    reply(f, put, 507, "");
    assert_answer(f, 1, 507, "");
    reply(f, put, 200, ""); /* a second answer, an unknown id: nobody is there */
    reply(f, 12345, 200, "");
    assert_int_equal(f->answers[1], 1);
}

static void test_cached_answers(void **state)
{
    struct fixture *f = *state;
    reply(f, get(f, 1, "global", "0"), 200, "blob");
    assert_answer(f, 1, 200, "blob");
    assert_int_equal(get(f, 2, "global", "0"), 0);
    assert_answer(f, 2, 200, "blob");
    assert_true(get(f, 3, "cross_0", "0") != 0); /* another scope */
    /* that there is nothing is not remembered */
    reply(f, get(f, 4, "global", "7"), 404, "");
    assert_answer(f, 4, 404, "");
    assert_true(get(f, 5, "global", "7") != 0);
}

static void test_one_question_for_many(void **state)
{
    struct fixture *f = *state;
    uint64_t id = get(f, 1, "global", "3");
    for (uint64_t token = 2; token < 10; token++)
        assert_int_equal(get(f, token, "global", "3"), 0);
    rendezvous_proxy_dropped(f->proxy, 4);
    rendezvous_proxy_dropped(f->proxy, 4);
    rendezvous_proxy_dropped(f->proxy, 55);
    reply(f, id, 200, "blob");
    for (uint64_t token = 1; token < 10; token++) {
        if (token != 4)
            assert_answer(f, token, 200, "blob");
    }
    assert_int_equal(f->answers[4], 0);
    assert_int_equal(f->cancelled, 0);
}

static void test_nobody_waits_any_more(void **state)
{
    struct fixture *f = *state;
    uint64_t id = get(f, 1, "global", "3");
    get(f, 2, "global", "3");
    rendezvous_proxy_dropped(f->proxy, 1);
    assert_int_equal(f->cancelled, 0);
    rendezvous_proxy_dropped(f->proxy, 2);
    assert_int_equal(f->cancelled, 1);
    assert_int_equal(f->last_cancel, id);
    uint64_t again = get(f, 3, "global", "3"); /* a question of its own */
    assert_true(again != 0 && again != id);
    reply(f, id, 404, "");
    assert_int_equal(f->answers[3], 0);
    reply(f, again, 200, "x");
    assert_answer(f, 3, 200, "x");
    /* a PUT is not taken back */
    request(f, 4, RENDEZVOUS_PUT, "global", "3", "y");
    rendezvous_proxy_dropped(f->proxy, 4);
    assert_int_equal(f->cancelled, 1);
}

static void test_delete_forgets_the_scope(void **state)
{
    struct fixture *f = *state;
    reply(f, get(f, 1, "global", "0"), 200, "old");
    reply(f, get(f, 2, "global", "1"), 200, "old");
    reply(f, get(f, 3, "cross_0", "1"), 200, "kept");
    uint64_t in_flight = get(f, 4, "global", "2");
    request(f, 5, RENDEZVOUS_DELETE, "global", "0", "");
    assert_true(get(f, 6, "global", "0") != 0);
    assert_true(get(f, 7, "global", "1") != 0);
    assert_int_equal(get(f, 8, "cross_0", "1"), 0);
    /* the old question is neither joined nor is its answer kept, but who asked it gets it */
    uint64_t fresh = get(f, 9, "global", "2");
    assert_true(fresh != 0);
    reply(f, in_flight, 200, "old");
    assert_answer(f, 4, 200, "old");
    assert_int_equal(f->answers[9], 0);
    assert_int_equal(get(f, 10, "global", "2"), 0); /* joins the fresh one */
    reply(f, fresh, 200, "new");
    assert_answer(f, 9, 200, "new");
    assert_answer(f, 10, 200, "new");
    get(f, 11, "global", "2");
    assert_answer(f, 11, 200, "new");
}

static void test_put_replaces(void **state)
{
    struct fixture *f = *state;
    reply(f, get(f, 1, "global", "0"), 200, "old");
    request(f, 2, RENDEZVOUS_PUT, "global", "0", "new");
    uint64_t fresh = get(f, 3, "global", "0");
    assert_true(fresh != 0);
    /* the same with a question on its way */
    request(f, 4, RENDEZVOUS_PUT, "global", "0", "newer");
    uint64_t fresher = get(f, 5, "global", "0");
    assert_true(fresher != 0);
    reply(f, fresh, 200, "new");
    reply(f, fresher, 200, "newer");
    get(f, 6, "global", "0");
    assert_answer(f, 3, 200, "new");
    assert_answer(f, 6, 200, "newer");
}

static void test_epoch(void **state)
{
    struct fixture *f = *state;
    reply(f, get(f, 1, "global", "0"), 200, "old");
    uint64_t in_flight = get(f, 2, "global", "1");
    rendezvous_proxy_begin(f->proxy);
    assert_true(get(f, 3, "global", "0") != 0);
    reply(f, in_flight, 200, "old");
    assert_answer(f, 2, 200, "old");
    assert_true(get(f, 4, "global", "1") != 0);
}

/* Votes and addresses of the elastic part are neither remembered nor joined. */
static void test_elastic_scopes(void **state)
{
    struct fixture *f = *state;
    uint64_t one = get(f, 1, "rank_and_size", "a:0"), two = get(f, 2, "rank_and_size", "a:0");
    assert_true(one != 0 && two != 0 && one != two);
    reply(f, one, 200, "0,1,0,1,0,1");
    assert_answer(f, 1, 200, "0,1,0,1,0,1");
    assert_int_equal(f->answers[2], 0);
    assert_true(get(f, 3, "rank_and_size", "a:0") != 0);
    rendezvous_proxy_dropped(f->proxy, 2);
    assert_int_equal(f->last_cancel, two);
}

static void test_answer_at_once(void **state)
{
    struct fixture *f = *state;
    f->at_once = true;
    get(f, 1, "global", "0");
    assert_answer(f, 1, 200, "now");
    assert_int_equal(get(f, 2, "global", "0"), 0);
    request(f, 3, RENDEZVOUS_DELETE, "global", "0", "");
    assert_answer(f, 3, 200, "now");
}

/* A worker that goes after its answer leaves nothing to cancel. */
static void test_dropped_after_the_answer(void **state)
{
    struct fixture *f = *state;
    uint64_t id = get(f, 1, "global", "3");
    get(f, 2, "global", "3");
    get(f, 3, "global", "3");
    reply(f, id, 404, "");
    uint64_t other = get(f, 4, "global", "3");
    for (uint64_t token = 1; token <= 3; token++)
        rendezvous_proxy_dropped(f->proxy, token);
    assert_int_equal(f->cancelled, 0);
    rendezvous_proxy_dropped(f->proxy, 4);
    assert_int_equal(f->cancelled, 1);
    assert_int_equal(f->last_cancel, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pass_through, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cached_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_question_for_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nobody_waits_any_more, setup, teardown),
        cmocka_unit_test_setup_teardown(test_delete_forgets_the_scope, setup, teardown),
        cmocka_unit_test_setup_teardown(test_put_replaces, setup, teardown),
        cmocka_unit_test_setup_teardown(test_epoch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_elastic_scopes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_answer_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dropped_after_the_answer, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
