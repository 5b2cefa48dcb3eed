/* SPDX-License-Identifier: Apache-2.0 */
/* Dialogues with the store of torch.distributed, byte by byte. */
#include <stdio.h>

#include "torch_store_fixture.h"

/* Dialect C */

static void test_set_and_get(void **state)
{
    (void)state;
    struct torch_world world;
    torch_world_begin(&world, 1 << 20);
    torch_ask(&world, 0, "bubu", 0, TORCH_MAGIC, 13, UINT32_C(4711)); /* VALIDATE, PING */
    torch_expect(&world, 0, "u", UINT32_C(4711));
    torch_ask(&world, 0, "bss", 1, "/a", "value");
    torch_expect(&world, 0, "");
    torch_ask(&world, 0, "bs", 3, "/a");
    torch_expect(&world, 0, "s", "value");
    torch_ask(&world, 0, "bs", 3, "/missing");
    torch_expect(&world, 0, "s", "");
    torch_ask(&world, 0, "bssbs", 1, "/a", "", 3, "/a"); /* two queries in one read */
    torch_expect(&world, 0, "s", "");
    torch_ask(&world, 0, "bsss", 2, "/a", "no", "new");
    torch_expect(&world, 0, "s", "");
    torch_ask(&world, 0, "bsss", 2, "/a", "", "new");
    torch_expect(&world, 0, "s", "new");
    torch_ask(&world, 0, "bsss", 2, "/b", "echo", "new");
    torch_expect(&world, 0, "s", "echo");
    torch_ask(&world, 0, "bis", 5, INT64_C(1), "/b"); /* CHECK: it was not stored */
    torch_expect(&world, 0, "b", 1);
    torch_ask(&world, 0, "bsss", 2, "/b", "", "first");
    torch_expect(&world, 0, "s", "first");
    torch_ask(&world, 0, "bssbs", 9, "/b", "+", 3, "/b");
    torch_expect(&world, 0, "s", "first+");
    torch_ask(&world, 0, "bssbs", 9, "/c", "+", 3, "/c");
    torch_expect(&world, 0, "s", "+");
    torch_ask(&world, 0, "b", 7);
    torch_expect(&world, 0, "i", INT64_C(3));
    torch_world_end(&world);
}

static void test_add(void **state)
{
    (void)state;
    struct torch_world world;
    torch_world_begin(&world, 1 << 20);
    torch_world_validate(&world, 0, 2);
    torch_ask(&world, 0, "bsi", 4, "init/", INT64_C(1));
    torch_expect(&world, 0, "i", INT64_C(1));
    torch_ask(&world, 0, "bsi", 4, "init/", INT64_C(-3));
    torch_expect(&world, 0, "i", INT64_C(-2));
    torch_ask(&world, 0, "bs", 3, "init/");
    torch_expect(&world, 0, "s", "-2");
    torch_ask(&world, 0, "bss", 1, "/n", "40");
    torch_ask(&world, 0, "bsi", 4, "/n", INT64_C(2));
    torch_expect(&world, 0, "i", INT64_C(42));
    torch_ask(&world, 0, "bss", 1, "/t", "no number");
    assert_int_equal(torch_try(&world, 0, "bsi", 4, "/t", INT64_C(1)), -1);
    assert_string_equal(world.err.text, "it added to a value that is not a number");
    torch_ask(&world, 1, "bss", 1, "/empty", "");
    assert_int_equal(torch_try(&world, 1, "bsi", 4, "/empty", INT64_C(1)), -1);
    torch_ask(&world, 2, "bsi", 4, "/big", INT64_MAX);
    torch_expect(&world, 2, "i", INT64_MAX);
    assert_int_equal(torch_try(&world, 2, "bsi", 4, "/big", INT64_C(1)), -1);
    torch_world_end(&world);
}

static void test_many_keys(void **state)
{
    (void)state;
    struct torch_world world;
    torch_world_begin(&world, 1 << 20);
    torch_world_validate(&world, 0, 0);
    torch_ask(&world, 0, "bissss", 11, INT64_C(2), "/a", "1", "/b", "2"); /* MULTI_SET */
    torch_ask(&world, 0, "bisss", 10, INT64_C(3), "/b", "/none", "/a");   /* MULTI_GET */
    torch_expect(&world, 0, "sss", "2", "", "1");
    torch_ask(&world, 0, "biss", 5, INT64_C(2), "/a", "/b");
    torch_expect(&world, 0, "b", 0);
    torch_ask(&world, 0, "biss", 5, INT64_C(2), "/a", "/none");
    torch_expect(&world, 0, "b", 1);
    torch_ask(&world, 0, "bi", 5, INT64_C(0));
    torch_expect(&world, 0, "b", 0);
    torch_ask(&world, 0, "bi", 6, INT64_C(0)); /* a WAIT for nothing */
    torch_expect(&world, 0, "b", 0);
    torch_ask(&world, 0, "bs", 8, "/a");
    torch_expect(&world, 0, "i", INT64_C(1));
    torch_ask(&world, 0, "bs", 8, "/a");
    torch_expect(&world, 0, "i", INT64_C(0));
    torch_ask(&world, 0, "b", 17); /* LIST_KEYS */
    torch_expect(&world, 0, "is", INT64_C(1), "/b");
    torch_world_end(&world);
}

static void test_wait(void **state)
{
    (void)state;
    struct torch_world world;
    torch_world_begin(&world, 1 << 20);
    torch_world_validate(&world, 0, 4);
    torch_ask(&world, 0, "biss", 6, INT64_C(2), "/a", "/b");
    torch_ask(&world, 1, "bisss", 6, INT64_C(3), "/a", "/a", "/a"); /* the same three times */
    torch_ask(&world, 2, "bis", 6, INT64_C(1), "/b");
    torch_ask(&world, 3, "bss", 1, "/a", "x");
    assert_int_equal(world.answered, 1);
    torch_expect(&world, 0, "");
    torch_expect(&world, 1, "b", 0);
    torch_ask(&world, 3, "bsi", 4, "/b", INT64_C(0)); /* ADD makes a key, too */
    assert_int_equal(world.answered, 3);
    torch_expect(&world, 0, "b", 0);
    torch_expect(&world, 2, "b", 0);
    torch_ask(&world, 0, "biss", 6, INT64_C(2), "/a", "/b"); /* all there */
    torch_expect(&world, 0, "b", 0);
    torch_ask(&world, 0, "bis", 6, INT64_C(1), "/c");
    torch_ask(&world, 1, "bis", 6, INT64_C(1), "/d");
    torch_ask(&world, 2, "bis", 6, INT64_C(1), "/e");
    torch_ask(&world, 3, "bsssbssbiss", 2, "/c", "", "x", 9, "/d", "x", 11, INT64_C(1), "/e", "x");
    torch_expect(&world, 0, "b", 0); /* COMPARE_SET, APPEND, MULTI_SET */
    torch_expect(&world, 1, "b", 0);
    torch_expect(&world, 2, "b", 0);
    torch_world_end(&world);
}

/* A WAIT ends by CANCEL_WAIT, by any other query, and when its client has gone. */
static void test_wait_ends(void **state)
{
    (void)state;
    struct torch_world world;
    torch_world_begin(&world, 1 << 20);
    torch_world_validate(&world, 0, 3);
    size_t memory = torch_keys_used(&world.store->keys);
    torch_ask(&world, 0, "b", 12); /* nothing waits */
    torch_expect(&world, 0, "b", 1);
    torch_ask(&world, 0, "bis", 6, INT64_C(1), "/a");
    torch_ask(&world, 0, "b", 12);
    torch_expect(&world, 0, "b", 1);
    torch_ask(&world, 0, "bis", 6, INT64_C(1), "/a");
    torch_ask(&world, 1, "bss", 1, "/a", "x");
    torch_ask(&world, 0, "b", 12); /* the two have crossed */
    torch_expect(&world, 0, "bb", 0, 1);
    torch_ask(&world, 0, "bis", 6, INT64_C(1), "/b");
    torch_ask(&world, 0, "bsi", 4, "/n", INT64_C(1)); /* after a time-out without CANCEL_WAIT */
    torch_expect(&world, 0, "i", INT64_C(1));
    torch_ask(&world, 1, "bss", 1, "/b", "x");
    torch_expect(&world, 0, ""); /* no stray byte */
    torch_ask(&world, 2, "biss", 6, INT64_C(2), "/c", "/d");
    torch_store_leave(world.clients[2]);
    world.clients[2] = NULL;
    torch_ask(&world, 1, "bss", 1, "/c", "x");
    torch_ask(&world, 3, "bis", 6, INT64_C(1), "/e");
    torch_ask(&world, 1, "bs", 8, "/e"); /* DELETE_KEY of a key that is waited for */
    torch_expect(&world, 1, "i", INT64_C(0));
    torch_ask(&world, 1, "bssbs", 1, "/e", "x", 8, "/e");
    torch_expect(&world, 1, "i", INT64_C(1));
    torch_expect(&world, 3, "b", 0);
    torch_ask(&world, 1, "bsbsbsbs", 8, "/a", 8, "/b", 8, "/c", 8, "/n");
    torch_expect(&world, 1, "iiii", INT64_C(1), INT64_C(1), INT64_C(1), INT64_C(1));
    assert_int_equal(torch_keys_used(&world.store->keys), memory); /* nothing is left of them */
    torch_world_end(&world);
}

static void test_queues(void **state)
{
    (void)state;
    struct torch_world world;
    torch_world_begin(&world, 1 << 20);
    torch_world_validate(&world, 0, 3);
    torch_ask(&world, 0, "bs", 15, "/q"); /* QUEUE_POP, not blocking */
    torch_expect(&world, 0, "i", INT64_C(0));
    torch_ask(&world, 0, "bis", 6, INT64_C(1), "/q");
    torch_ask(&world, 1, "bis", 6, INT64_C(1), "/q");
    torch_ask(&world, 2, "bss", 14, "/q", "one"); /* wakes one of them, the older */
    torch_expect(&world, 0, "b", 0);
    torch_expect(&world, 1, "");
    torch_ask(&world, 2, "bss", 14, "/q", "two");
    torch_expect(&world, 1, "b", 0);
    torch_ask(&world, 0, "bsbsb", 16, "/q", 15, "/q", 7); /* LEN, POP, NUMKEYS */
    torch_expect(&world, 0, "iisi", INT64_C(2), INT64_C(2), "one", INT64_C(0));
    torch_ask(&world, 0, "bis", 5, INT64_C(1), "/q");
    torch_expect(&world, 0, "b", 0);
    torch_ask(&world, 0, "bsbs", 15, "/q", 16, "/q");
    torch_expect(&world, 0, "isi", INT64_C(1), "two", INT64_C(0));
    torch_ask(&world, 0, "bis", 5, INT64_C(1), "/q");
    torch_expect(&world, 0, "b", 1);
    torch_ask(&world, 0, "bss", 14, "/left", "over");
    torch_world_end(&world);
}

static void test_barrier(void **state)
{
    (void)state;
    struct torch_world world;
    torch_world_begin(&world, 1 << 20);
    torch_world_validate(&world, 0, 4);
    torch_ask(&world, 0, "bsi", 18, "/b", INT64_C(3));
    torch_ask(&world, 1, "bsi", 18, "/b", INT64_C(3));
    torch_ask(&world, 3, "bss", 1, "/other", "x");
    torch_expect(&world, 0, "");
    torch_ask(&world, 1, "b", 12); /* it has had its time-out, and still counts */
    torch_expect(&world, 1, "b", 1);
    torch_ask(&world, 2, "bsi", 18, "/b", INT64_C(3));
    torch_expect(&world, 0, "b", 0);
    torch_expect(&world, 1, "");
    torch_expect(&world, 2, "b", 0);
    torch_ask(&world, 3, "bs", 3, "/b");
    torch_expect(&world, 3, "s", "3");
    torch_world_end(&world);
}

/* All of it once more, byte by byte. */
static void test_pieces(void **state)
{
    (void)state;
    struct torch_world world;
    torch_world_begin(&world, 1 << 20);
    world.piece = 1;
    torch_world_validate(&world, 0, 1);
    torch_ask(&world, 0, "biss", 6, INT64_C(2), "/a", "/b");
    torch_ask(&world, 1, "bissssbsi", 11, INT64_C(2), "/a", "1", "/b", "2", 4, "/n", INT64_C(7));
    torch_expect(&world, 0, "b", 0);
    torch_expect(&world, 1, "i", INT64_C(7));
    torch_ask(&world, 1, "bsssbisbu", 2, "/a", "1", "9", 10, INT64_C(1), "/a", 13, UINT32_C(5));
    torch_expect(&world, 1, "ssu", "9", "9", UINT32_C(5));
    torch_ask(&world, 2, "bsi", 3, "init/", INT64_C(1)); /* dialect A or B */
    torch_expect(&world, 2, "i", INT64_C(1));
    torch_world_end(&world);
}

/* Dialects A and B */

static void test_old_dialects(void **state)
{
    (void)state;
    struct torch_world world;
    torch_world_begin(&world, 1 << 20);
    /* A: each client has a second connection. 0 and 1 speak, 2 to 7 are silent */
    torch_ask(&world, 0, "bsi", 3, "init/", INT64_C(1));
    torch_ask(&world, 1, "bsi", 3, "init/", INT64_C(1));
    torch_expect(&world, 0, "i", INT64_C(1));
    torch_expect(&world, 1, "i", INT64_C(2));
    torch_ask(&world, 0, "bssbs", 0, "/a", "x", 2, "/a");
    torch_expect(&world, 0, "s", "x");
    torch_ask(&world, 0, "bsssbisb", 1, "/a", "x", "y", 4, INT64_C(1), "/a", 6);
    torch_expect(&world, 0, "sbi", "y", 0, INT64_C(2));
    torch_ask(&world, 1, "bis", 5, INT64_C(1), "/b");
    torch_ask(&world, 0, "bss", 0, "/b", "x");
    torch_expect(&world, 1, "b", 0);
    torch_ask(&world, 0, "bsbs", 8, "/b", 7, "/b"); /* DELETE_KEY, WATCH_KEY */
    torch_expect(&world, 0, "ib", INT64_C(1), 3);
    assert_int_equal(torch_try(&world, 1, "bs", 2, "/b"), -1); /* GET without the key */
    assert_int_equal(torch_try(&world, 0, "bis", 9, INT64_C(1), "/a"), -1);
    torch_world_end(&world);
    torch_world_begin(&world, 1 << 20);
    for (int i = 2; i < TORCH_TEST_CLIENTS; i++) { /* B: there are no others */
        torch_store_leave(world.clients[i]);
        world.clients[i] = NULL;
    }
    torch_ask(&world, 0, "bsi", 3, "init/", INT64_C(1));
    torch_ask(&world, 1, "bsi", 3, "init/", INT64_C(1));
    torch_expect(&world, 0, "i", INT64_C(1));
    torch_ask(&world, 0, "bissbss", 10, INT64_C(1), "/a", "x", 8, "/a", "y");
    torch_ask(&world, 0, "bisbsb", 9, INT64_C(1), "/a", 7, "/a", 11);
    torch_expect(&world, 0, "sib", "xy", INT64_C(1), 1);
    assert_int_equal(torch_try(&world, 0, "b", 12), -1);
    torch_world_end(&world);
}

/* Limits */

static void expect_dropped(const char *text, const char *format, ...)
{
    struct torch_world world;
    torch_world_begin(&world, 1 << 20);
    torch_world_validate(&world, 0, 0);
    va_list args;
    va_start(args, format);
    struct buf query AUTO_BUF = torch_query_text(format, args);
    va_end(args);
    assert_int_equal(torch_world_give(&world, 0, buf_text(&query), query.length), -1);
    assert_string_equal(world.err.text, text);
    torch_world_end(&world);
}

static void test_limits(void **state)
{
    (void)state;
    char *key AUTO_FREE = mem_alloc(TORCH_KEY_MAX + 2);
    memset(key, 'k', TORCH_KEY_MAX + 1);
    expect_dropped("it sent a key longer than 8 KiB", "bs", 3, key);
    expect_dropped("it sent a key longer than 8 KiB", "bi", 3, INT64_MIN); /* 2^63 */
    expect_dropped("it sent a value longer than 128 MiB", "bsi", 1, "/a", INT64_MIN);
    expect_dropped("it sent a value longer than 128 MiB", "bsi", 1, "/a", INT64_C(-1));
    expect_dropped("it sent a query with more than 131072 keys", "bi", 6, INT64_C(131073));
    expect_dropped("it sent a query that torch's store does not have", "b", 19);
    expect_dropped("it sent VALIDATE twice", "bu", 0, TORCH_MAGIC);
    struct torch_world world;
    torch_world_begin(&world, 8 << 20);
    torch_world_validate(&world, 0, 0);
    key[TORCH_KEY_MAX] = '\0';
    torch_ask(&world, 0, "bssbs", 1, key, "v", 3, key); /* just short enough */
    torch_expect(&world, 0, "s", "v");
    torch_ask(&world, 0, "bi", 5, INT64_C(131072));
    for (int i = 0; i < 131072; i++)
        torch_ask(&world, 0, "s", "");
    torch_expect(&world, 0, "b", 1);
    torch_world_end(&world);
}

static void test_memory(void **state)
{
    (void)state;
    struct torch_world world;
    torch_world_begin(&world, 1 << 20);
    torch_world_validate(&world, 0, 2);
    char *value AUTO_FREE = mem_alloc((400 << 10) + 1);
    memset(value, 'v', 400 << 10);
    torch_ask(&world, 0, "bss", 1, "/a", value);
    torch_ask(&world, 0, "bss", 1, "/a", value); /* replaces the first */
    torch_ask(&world, 0, "bs", 3, "/a");
    torch_ask(&world, 0, "bs", 8, "/a"); /* while its value is being sent */
    torch_expect(&world, 0, "si", value, INT64_C(1));
    assert_int_equal(torch_keys_used(&world.store->keys), 0);
    torch_ask(&world, 0, "bss", 14, "/q", value);
    torch_ask(&world, 0, "bs", 15, "/q");
    torch_expect(&world, 0, "is", INT64_C(1), value);
    assert_int_equal(torch_keys_used(&world.store->keys), 0);
    torch_ask(&world, 0, "bss", 1, "/a", value);
    assert_int_equal(torch_try(&world, 0, "bss", 9, "/a", value), -1); /* 800 KiB for a moment */
    torch_ask(&world, 1, "bss", 1, "/b", value);
    assert_int_equal(torch_try(&world, 1, "bss", 1, "/c", value), -1);
    assert_string_equal(world.err.text, "the store is full (2048 MiB)");
    torch_ask(&world, 2, "bsbs", 8, "/a", 8, "/b"); /* the values have survived their clients */
    torch_expect(&world, 2, "ii", INT64_C(1), INT64_C(1));
    assert_int_equal(torch_keys_used(&world.store->keys), 0);
    torch_world_end(&world);
}

/* Small answers count, too, and so do the places of shared values, if a client does not read. When
 * the store is full, it is to be dropped, and those who read are served. */
static void test_unread_answers(void **state)
{
    (void)state;
    enum { KEYS = 20000 };
    struct torch_world world;
    char value[513];
    torch_world_begin(&world, 4 << 20);
    torch_world_validate(&world, 0, 3);
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    torch_ask(&world, 0, "bssbss", 1, "/a", "x", 1, "/b", value);
    torch_ask(&world, 1, "bi", 10, (int64_t)KEYS); /* MULTI_GET of a value of 1 byte */
    for (int i = 0; i < KEYS; i++)
        torch_ask(&world, 1, "s", "/a");
    assert_in_range(torch_keys_used(&world.store->keys), KEYS * 9 - 2 * TORCH_ANSWERS_FREE,
                    KEYS * 9);
    for (int i = 0; i < 2000; i++)
        torch_ask(&world, 2, "bs", 3, "/b");
    assert_in_range(torch_keys_used(&world.store->keys), KEYS * 9 + 2000 * 64,
                    KEYS * 9 + 2000 * 100);
    world.store->keys.limit = torch_keys_used(&world.store->keys);
    torch_ask(&world, 0, "bisbs", 6, INT64_C(1), "/a", 3, "/b");
    torch_expect(&world, 0, "bs", 0, value);
    for (int i = 0; i < 3; i++) { /* long values are shared, so many of them cost little */
        torch_ask(&world, 0, "bi", 10, INT64_C(16));
        for (int j = 0; j < 16; j++)
            torch_ask(&world, 0, "s", "/b");
        assert_int_equal(send_queue_length(&world.clients[0]->out), 16 * (8 + 512));
        send_queue_clear(&world.clients[0]->out);
        torch_client_sent(world.clients[0]);
    }
    assert_int_equal(torch_try(&world, 1, "bis", 6, INT64_C(1), "/a"), -1);
    assert_string_equal(world.err.text, "the store is full (2048 MiB)");
    torch_world_end(&world);
}

/* A query takes memory as it comes, and not when it says how long it will be. */
static void test_long_queries(void **state)
{
    (void)state;
    struct torch_world world;
    const size_t length = (size_t)3 << 20;
    char *value AUTO_FREE = mem_alloc(length + 1);
    torch_world_begin(&world, 16 << 20);
    torch_world_validate(&world, 0, 7);
    memset(value, 'v', length);
    for (int i = 0; i < 8; i++)
        torch_ask(&world, i, "bsi", 1, "/a", INT64_C(100) << 20);
    assert_int_equal(torch_keys_used(&world.store->keys), 0);
    assert_int_equal(torch_world_give(&world, 0, value, length), 0);
    assert_in_range(torch_keys_used(&world.store->keys), length, 3 * length);
    assert_int_equal(torch_world_give(&world, 1, value, length), 0);
    assert_int_equal(torch_world_give(&world, 2, value, length), 0);
    assert_int_equal(torch_world_give(&world, 3, value, length), 0);
    assert_int_equal(torch_world_give(&world, 4, value, length), -1);
    assert_string_equal(world.err.text, "the store is full (2048 MiB)");
    for (int i = 0; i < 4; i++) {
        torch_store_leave(world.clients[i]);
        world.clients[i] = NULL;
    }
    assert_int_equal(torch_keys_used(&world.store->keys), 0);
    torch_world_end(&world);
}

/* Behind a long query, its buffer holds only what has come of the next one. */
static void test_room_is_given_back(void **state)
{
    (void)state;
    struct torch_world world;
    const size_t length = (size_t)1 << 20;
    char *value AUTO_FREE = mem_alloc(length + 1);
    torch_world_begin(&world, 16 << 20);
    torch_world_validate(&world, 0, 0);
    memset(value, 'v', length);
    torch_ask(&world, 0, "bssbi", 1, "/a", value, 1, INT64_C(1)); /* a SET, and a part of another */
    assert_in_range(torch_keys_used(&world.store->keys), length, length + 4096);
    torch_ask(&world, 0, "b", 'b');
    torch_ask(&world, 0, "sbs", "x", 3, "b");
    torch_expect(&world, 0, "s", "x");
    for (int i = 0; i < 2000; i++)
        torch_ask(&world, 0, "b", 7); /* GETNUMKEYS */
    struct send_queue *out = &world.clients[0]->out;
    assert_in_range(out->own.room, 2000 * 8, SIZE_MAX / 2);
    size_t sent;
    while (send_queue_next(out, &sent) != NULL)
        send_queue_consume(out, sent);
    torch_client_sent(world.clients[0]);
    assert_int_equal(out->own.room, 0);
    torch_world_end(&world);
}

/* A value that answers still hold counts until they are sent, though its key has another one. */
static void test_replaced_values(void **state)
{
    (void)state;
    struct torch_world world;
    const size_t length = (size_t)1 << 20;
    char *value AUTO_FREE = mem_alloc(length + 1);
    torch_world_begin(&world, 6 << 20);
    torch_world_validate(&world, 0, 7);
    memset(value, 'v', length);
    for (int i = 1; i < 4; i++) {
        torch_ask(&world, 0, "bss", 1, "/a", value);
        torch_ask(&world, i, "bs", 3, "/a"); /* and does not read */
    }
    torch_ask(&world, 0, "bss", 14, "/q", value);
    torch_ask(&world, 4, "bs", 15, "/q");
    assert_in_range(torch_keys_used(&world.store->keys), 4 * length, 5 * length);
    torch_ask(&world, 0, "bss", 1, "/b", value);
    assert_int_equal(torch_try(&world, 5, "bss", 1, "/c", value), -1);
    assert_string_equal(world.err.text, "the store is full (2048 MiB)");
    torch_expect(&world, 1, "s", value);
    torch_ask(&world, 6, "bss", 1, "/c", value); /* it has room now */
    torch_world_end(&world);
}

/* A client that asks for much in one read gets it in turns, in order, and as far as it reads. */
static void test_turns(void **state)
{
    (void)state;
    enum { QUERIES = 3000, KEYS = 100 };
    struct torch_world world;
    struct buf queries AUTO_BUF = BUF_INIT(SIZE_MAX / 4);
    char key[16];
    torch_world_begin(&world, 64 << 20);
    torch_world_validate(&world, 0, 1);
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof(key), "/%d", i);
        torch_ask(&world, 1, "bss", 1, key, "x");
    }
    for (int i = 0; i < QUERIES; i++)
        buf_putc(&queries, 17); /* LIST_KEYS */
    struct send_queue *out = &world.clients[0]->out;
    size_t got = 0, turns = 1, length;
    assert_int_equal(torch_world_give(&world, 0, buf_text(&queries), queries.length), 0);
    for (;; turns++) {
        assert_true(send_queue_length(out) < 2 * TORCH_UNREAD_MAX);
        for (; send_queue_next(out, &length) != NULL; got += length)
            send_queue_consume(out, length);
        torch_client_sent(world.clients[0]);
        if (!world.clients[0]->has_more)
            break;
        assert_int_equal(torch_client_take(world.clients[0], NULL, 0, 0, &world.err), 0);
    }
    /* the count, and each key with its length: 10 of two bytes, the others of three */
    assert_int_equal(got, QUERIES * (8 + KEYS * 8 + 10 * 2 + (KEYS - 10) * 3));
    assert_true(turns > 2);

    char *value AUTO_FREE = mem_alloc(TORCH_UNREAD_MAX + 1);
    memset(value, 'v', TORCH_UNREAD_MAX);
    torch_ask(&world, 1, "bss", 1, "/long", value);
    torch_ask(&world, 0, "bssbssbs", 9, "/long", "1", 9, "/long", "2", 3,
              "/2"); /* each copies it */
    assert_true(world.clients[0]->has_more);
    torch_expect(&world, 0, "");
    for (int i = 0; world.clients[0]->has_more; i++) {
        assert_true(i < 2);
        torch_ask(&world, 1, "bs", 3, "/2"); /* others are served in between */
        torch_expect(&world, 1, "s", "x");
        assert_int_equal(torch_client_take(world.clients[0], NULL, 0, 0, &world.err), 0);
    }
    torch_expect(&world, 0, "s", "x");
    torch_world_end(&world);
}

static void test_rubbish(void **state)
{
    (void)state;
    static const char *const words[] = {"GET / HTTP/1.1\r\n\r\n", "SSH-2.0-x\r\n", "\x16\x03\x01",
                                        "\xff\xff\xff\xff\xff\xff", "*1\r\n$4\r\nPING\r\n"};
    struct torch_world world;
    torch_world_begin(&world, 1 << 20);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(torch_world_give(&world, i, words[i], strlen(words[i])), -1);
        assert_string_equal(world.err.text, "it sent a query that torch's store does not have");
    }
    assert_int_equal(torch_try(&world, 5, "bu", 0, UINT32_C(0x12345678)), 0);
    assert_int_equal(torch_try(&world, 5, "u", UINT32_C(0)), -1); /* a SET with an absurd key */
    torch_world_end(&world);
}

/* Who waits */

struct noted {
    const struct torch_world *world;
    struct buf text;
};

static void note_waiting(void *context, const struct torch_waiting *waiting)
{
    struct noted *noted = context;
    buf_printf(&noted->text, "%.*s/%zu since %d; ", (int)waiting->key_length, waiting->key,
               waiting->keys, (int)(noted->world->now_ms - waiting->waited_ms));
}

static void expect_waiting(const struct torch_world *world, const char *text)
{
    struct noted noted = {world, BUF_INIT(1000)};
    torch_store_each_waiting(world->store, world->now_ms, note_waiting, &noted);
    assert_string_equal(buf_text(&noted.text), text);
    buf_destroy(&noted.text);
}

static void test_who_waits(void **state)
{
    (void)state;
    struct torch_world world;
    torch_world_begin(&world, 1 << 20);
    torch_world_validate(&world, 0, 2);
    expect_waiting(&world, "");
    world.now_ms = 1000;
    torch_ask(&world, 0, "biss", 6, INT64_C(2), "a", "b");
    expect_waiting(&world, "a/2 since 1000; ");
    world.now_ms = 2000;
    torch_ask(&world, 1, "bss", 1, "a", "x");
    expect_waiting(&world, "b/1 since 1000; ");
    world.now_ms = 3000; /* a store barrier: 10 s of WAIT, CANCEL_WAIT, ADD 0, and again */
    torch_ask(&world, 0, "bbsi", 12, 4, "n", INT64_C(0));
    torch_ask(&world, 0, "bis", 6, INT64_C(1), "c");
    world.now_ms = 13000;
    torch_ask(&world, 0, "bbsi", 12, 4, "n", INT64_C(0));
    torch_ask(&world, 0, "bis", 6, INT64_C(1), "c");
    expect_waiting(&world, "c/1 since 3000; ");
    torch_ask(&world, 0, "bss", 1, "z", "x"); /* it does something else */
    torch_ask(&world, 0, "bis", 6, INT64_C(1), "c");
    expect_waiting(&world, "c/1 since 13000; ");
    torch_ask(&world, 1, "bss", 1, "c", "x");
    expect_waiting(&world, "");
    for (int i = 0; i < 3; i++) { /* the barrier of torch 1.13 */
        torch_ask(&world, 1, "bsi", 4, "n", INT64_C(0));
        world.now_ms += 10;
    }
    expect_waiting(&world, "n/1 since 13000; ");
    world.now_ms += 5000;
    expect_waiting(&world, "");
    torch_world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_and_get),     cmocka_unit_test(test_add),
        cmocka_unit_test(test_many_keys),       cmocka_unit_test(test_wait),
        cmocka_unit_test(test_wait_ends),       cmocka_unit_test(test_queues),
        cmocka_unit_test(test_barrier),         cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_old_dialects),    cmocka_unit_test(test_limits),
        cmocka_unit_test(test_memory),          cmocka_unit_test(test_unread_answers),
        cmocka_unit_test(test_long_queries),    cmocka_unit_test(test_room_is_given_back),
        cmocka_unit_test(test_replaced_values), cmocka_unit_test(test_turns),
        cmocka_unit_test(test_rubbish),         cmocka_unit_test(test_who_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
