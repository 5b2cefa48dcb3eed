/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "output/sink.h"

static void put(struct backlog *backlog, const char *text)
{
    backlog_put(backlog, 3, OUTPUT_STDERR, text, strlen(text), 70);
}

/* The first chunk has these bytes, and is dropped. */
static void take(struct backlog *backlog, const char *text)
{
    const struct backlog_chunk *chunk = backlog->first;
    assert_non_null(chunk);
    assert_int_equal(chunk->what, BACKLOG_BYTES);
    assert_int_equal(chunk->seat, 3);
    assert_int_equal(chunk->stream, OUTPUT_STDERR);
    assert_int_equal(chunk->wall_ns, 70);
    assert_int_equal(chunk->taken, 0);
    assert_int_equal(chunk->length, strlen(text));
    assert_memory_equal(chunk->bytes, text, chunk->length);
    backlog_drop_first(backlog);
}

/* What waits behind a dropped chunk stays when more is added. */
static void test_added_behind_what_waits(void **state)
{
    (void)state;
    struct backlog backlog = {0};
    put(&backlog, "one");
    put(&backlog, "two");
    put(&backlog, "three");
    take(&backlog, "one");
    assert_non_null(backlog.last);
    put(&backlog, "four");
    take(&backlog, "two");
    take(&backlog, "three");
    take(&backlog, "four");
    assert_null(backlog.first);
    assert_null(backlog.last);
    assert_int_equal(backlog.put, 4);
    assert_int_equal(backlog.done, 4);
}

static void test_used_again_after_it_was_empty(void **state)
{
    (void)state;
    struct backlog backlog = {0};
    for (int i = 0; i < 3; i++) {
        put(&backlog, "again");
        assert_ptr_equal(backlog.first, backlog.last);
        take(&backlog, "again");
        assert_null(backlog.first);
        assert_null(backlog.last);
    }
}

static void test_words_and_seats_keep_their_place(void **state)
{
    (void)state;
    struct backlog backlog = {0};
    char host[] = "node1";
    const struct output_seat named = {.rank = 5, .local_rank = 1, .host = host};
    const struct output_seat nameless = {.rank = 6, .local_rank = 2};
    put(&backlog, "bytes");
    backlog_put_word(&backlog, BACKLOG_SHOW, 3, OUTPUT_STDOUT);
    backlog_put_seat(&backlog, 8, &named);
    backlog_put_seat(&backlog, 9, &nameless);
    backlog_put_word(&backlog, BACKLOG_END, 3, OUTPUT_STDERR);
    host[0] = 'x'; /* the name was copied */
    take(&backlog, "bytes");
    assert_int_equal(backlog.first->what, BACKLOG_SHOW);
    assert_int_equal(backlog.first->length, 0);
    backlog_drop_first(&backlog);
    assert_int_equal(backlog.first->what, BACKLOG_SEAT);
    assert_int_equal(backlog.first->seat, 8);
    assert_int_equal(backlog.first->length, 0);
    assert_int_equal(backlog.first->who.rank, 5);
    assert_int_equal(backlog.first->who.local_rank, 1);
    assert_string_equal(backlog.first->who.host, "node1");
    backlog_drop_first(&backlog);
    assert_int_equal(backlog.first->seat, 9);
    assert_null(backlog.first->who.host);
    backlog_drop_first(&backlog);
    assert_int_equal(backlog.first->what, BACKLOG_END);
    assert_int_equal(backlog.first->stream, OUTPUT_STDERR);
    backlog_drop_first(&backlog);
    assert_null(backlog.first);
    assert_int_equal(backlog.done, backlog.put);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_added_behind_what_waits),
        cmocka_unit_test(test_used_again_after_it_was_empty),
        cmocka_unit_test(test_words_and_seats_keep_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
