/* SPDX-License-Identifier: Apache-2.0 */
/* elastic_run() and what it calls, on one rank whose peers are a script. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "elastic/run.h"

#define STEPS_MAX 16
#define PEERS_MAX 8

/* The story is a letter for each call: o open, c close, m max, b broadcast, f the function. */
struct script {
    struct elastic_world world;
    struct elastic_state state;
    int64_t value;
    struct buf story;
    int opens[STEPS_MAX], opened;     /* what each open() returns */
    int functions[STEPS_MAX], called; /* what each call of the function returns */
    int failing, failure;             /* this broadcast, counted from 1, fails so */
    int broadcasts;
    int rank;
    int64_t peer_ages[PEERS_MAX]; /* of the other ranks; -1: none */
    int64_t peer_layout;          /* 0: as ours */
    int64_t root_value, root_age; /* what another root sends */
    int last_root;
    bool news;
    int64_t seen[STEPS_MAX]; /* the value at each call of the function */
};

static int script_open(void *context, struct error *err)
{
    struct script *s = context;
    buf_putc(&s->story, 'o');
    error_set(err, "open");
    return s->opens[s->opened++];
}

static void script_close(void *context)
{
    struct script *s = context;
    buf_putc(&s->story, 'c');
}

static int script_rank(void *context)
{
    const struct script *s = context;
    return s->rank;
}

static int script_max(void *context, const char *name, int64_t *value, struct error *err)
{
    struct script *s = context;
    (void)err;
    buf_putc(&s->story, 'm');
    if (strcmp(name, "hvd.elastic.layout") == 0 && s->peer_layout > *value)
        *value = s->peer_layout;
    if (strcmp(name, "hvd.elastic.layout.least") == 0 && s->peer_layout > 0 &&
        -s->peer_layout > *value)
        *value = -s->peer_layout;
    for (int peer = 0; strcmp(name, "hvd.elastic.age") == 0 && peer < PEERS_MAX; peer++) {
        int64_t other = s->peer_ages[peer] * (1 << 24) + (1 << 24) - 1 - peer;
        if (s->peer_ages[peer] >= 0 && peer != s->rank && other > *value)
            *value = other;
    }
    return HVD_OK;
}

static int script_broadcast(void *context, const char *name, void *memory, size_t bytes, int root,
                            struct error *err)
{
    struct script *s = context;
    buf_putc(&s->story, 'b');
    s->last_root = root;
    if (++s->broadcasts == s->failing) {
        memset(memory, 0xee, bytes); /* what had come before it failed */
        error_set(err, "broadcast");
        return s->failure;
    }
    if (root == s->rank)
        return HVD_OK;
    if (strcmp(name, "hvd.elastic.state.value") == 0)
        memcpy(memory, &s->root_value, bytes);
    if (strcmp(name, "hvd.elastic.age.root") == 0)
        memcpy(memory, &s->root_age, bytes);
    if (strcmp(name, "hvd.elastic.hosts") == 0)
        *(uint8_t *)memory = s->news;
    return HVD_OK;
}

static bool script_hosts_changed(void *context)
{
    struct script *s = context;
    bool news = s->news;
    s->news = false;
    return news;
}

/* One more at each call; committed at the first half of its work. */
static int function(void *context)
{
    struct script *s = context;
    buf_putc(&s->story, 'f');
    s->seen[s->called] = s->value;
    s->value++;
    elastic_state_commit(&s->state);
    s->value += 100; /* not committed */
    return s->functions[s->called++];
}

static void begin(struct script *s)
{
    *s = (struct script){.value = 0};
    buf_init(&s->story, 10000);
    for (int i = 0; i < PEERS_MAX; i++)
        s->peer_ages[i] = -1;
    elastic_state_init(&s->state);
    assert_int_equal(elastic_state_add(&s->state, "value", &s->value, sizeof(s->value), NULL), 0);
    s->world = (struct elastic_world){.open = script_open,
                                      .close = script_close,
                                      .rank = script_rank,
                                      .max = script_max,
                                      .broadcast = script_broadcast,
                                      .hosts_changed = script_hosts_changed,
                                      .context = s};
}

static void end(struct script *s)
{
    elastic_state_destroy(&s->state);
    buf_destroy(&s->story);
}

static int run(struct script *s)
{
    struct error err = ERROR_INIT;
    return elastic_run(&s->state, &s->world, true, function, s, &err);
}

static void test_success_and_own_errors(void **state)
{
    (void)state;
    static const int values[] = {HVD_OK, HVD_ERR_MISMATCH, HVD_ERR_ARGUMENT, 42, -1000};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct script s;
        begin(&s);
        s.functions[0] = values[i];
        assert_int_equal(run(&s), values[i]);
        assert_string_equal(buf_text(&s.story), "mmmbbf");
        end(&s);
    }
}

static void test_a_lost_rank(void **state)
{
    (void)state;
    static const int values[] = {HVD_ERR_PEER_LOST, HVD_ERR_SHUT_DOWN, HVD_ERR_TIMEOUT,
                                 HVD_ERR_ENGINE};
    for (size_t i = 0; i < 4; i++) {
        struct script s;
        begin(&s);
        s.functions[0] = values[i];
        assert_int_equal(run(&s), HVD_OK);
        assert_string_equal(buf_text(&s.story), "mmmbbfcommmbbf");
        assert_int_equal(s.seen[1], 1); /* the commit, without what came after it */
        end(&s);
    }
}

static void test_changed_hosts(void **state)
{
    (void)state;
    struct script s;
    begin(&s);
    s.functions[0] = HVD_ERR_HOSTS_CHANGED;
    assert_int_equal(run(&s), HVD_OK);
    assert_string_equal(buf_text(&s.story), "mmmbbfcommmbbf");
    assert_int_equal(s.seen[1], 101); /* nothing was restored */
    end(&s);
}

static void test_a_loss_during_sync(void **state)
{
    (void)state;
    struct script s;
    begin(&s);
    s.functions[0] = HVD_ERR_PEER_LOST;
    s.failing = 4; /* the state in the second sync */
    s.failure = HVD_ERR_PEER_LOST;
    assert_int_equal(run(&s), HVD_OK);
    assert_string_equal(buf_text(&s.story), "mmmbbfcommmbbcommmbbf");
    assert_int_equal(s.seen[1], 1); /* not the torn memory */
    end(&s);
}

static void test_losses_while_opening(void **state)
{
    (void)state;
    struct script s;
    begin(&s);
    s.functions[0] = HVD_ERR_PEER_LOST;
    s.opens[0] = HVD_ERR_PEER_LOST;
    s.opens[1] = HVD_ERR_TIMEOUT;
    assert_int_equal(run(&s), HVD_OK);
    assert_string_equal(buf_text(&s.story), "mmmbbfcococommmbbf");
    end(&s);
}

static void test_what_ends_the_run(void **state)
{
    (void)state;
    static const int values[] = {HVD_ERR_REMOVED, HVD_ERR_ENGINE, HVD_ERR_ARGUMENT};
    for (size_t i = 0; i < 3; i++) {
        struct script s;
        begin(&s);
        s.functions[0] = HVD_ERR_HOSTS_CHANGED;
        s.opens[0] = values[i];
        assert_int_equal(run(&s), values[i]);
        assert_string_equal(buf_text(&s.story), "mmmbbfco");
        end(&s);
    }
}

static void test_without_an_elastic_launcher(void **state)
{
    (void)state;
    struct script s;
    struct error err = ERROR_INIT;
    begin(&s);
    s.functions[0] = HVD_ERR_PEER_LOST;
    assert_int_equal(elastic_run(&s.state, &s.world, false, function, &s, &err), HVD_ERR_PEER_LOST);
    assert_string_equal(buf_text(&s.story), "mmmbbf");
    end(&s);
}

/* The greatest age gives; of several the lowest rank. */
static void test_the_root(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct {
        int rank;
        int64_t own, ages[PEERS_MAX];
        int root;
    } cases[] = {
        {0, 0, {-1, -1, -1, -1, -1, -1, -1, -1}, 0},
        {0, 0, {-1, 0, 0, -1, -1, -1, -1, -1}, 0},
        {0, 0, {-1, 0, 5, 5, -1, -1, -1, -1}, 2}, /* rank 0 is new */
        {3, 6, {0, 5, 5, -1, -1, -1, -1, -1}, 3},
        {3, 5, {5, 5, 5, -1, -1, -1, -1, -1}, 0},
        {7, (int64_t)1 << 38, {-1, 5, -1, -1, -1, -1, -1, -1}, 7},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct script s;
        begin(&s);
        s.rank = cases[i].rank;
        s.state.age = cases[i].own;
        memcpy(s.peer_ages, cases[i].ages, sizeof(s.peer_ages));
        s.root_value = 77;
        s.root_age = 5;
        assert_int_equal(elastic_sync(&s.state, &s.world, &err), HVD_OK);
        assert_int_equal(s.last_root, cases[i].root);
        assert_int_equal(s.value, cases[i].root == cases[i].rank ? 0 : 77);
        assert_true(s.state.age == s.state.saved_age && s.state.age >= 1);
        assert_true(cases[i].root == cases[i].rank || s.state.age == 5);
        end(&s);
    }
}

static void test_different_entries(void **state)
{
    (void)state;
    static const int64_t layouts[] = {1, INT64_MAX / 2};
    for (size_t i = 0; i < 2; i++) {
        struct script s;
        struct error err = ERROR_INIT;
        begin(&s);
        s.peer_layout = layouts[i];
        assert_int_equal(elastic_sync(&s.state, &s.world, &err), HVD_ERR_MISMATCH);
        assert_non_null(strstr(err.text, "same on all ranks"));
        assert_string_equal(buf_text(&s.story), "mm");
        end(&s);
    }
}

static void test_check(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct script s;
    begin(&s);
    assert_int_equal(elastic_check(&s.world, &err), HVD_OK);
    s.news = true;
    assert_int_equal(elastic_check(&s.world, &err), HVD_ERR_HOSTS_CHANGED);
    assert_int_equal(elastic_check(&s.world, &err), HVD_OK); /* once */
    s.rank = 2;
    s.news = true; /* only the news of rank 0 count, and it has none */
    assert_int_equal(elastic_check(&s.world, &err), HVD_OK);
    s.failing = s.broadcasts + 1;
    s.failure = HVD_ERR_PEER_LOST;
    assert_int_equal(elastic_check(&s.world, &err), HVD_ERR_PEER_LOST);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_success_and_own_errors),
        cmocka_unit_test(test_a_lost_rank),
        cmocka_unit_test(test_changed_hosts),
        cmocka_unit_test(test_a_loss_during_sync),
        cmocka_unit_test(test_losses_while_opening),
        cmocka_unit_test(test_what_ends_the_run),
        cmocka_unit_test(test_without_an_elastic_launcher),
        cmocka_unit_test(test_the_root),
        cmocka_unit_test(test_different_entries),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
