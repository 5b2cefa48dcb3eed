/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes come out in the order in which they went in, and a block ends with its last holder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "io/send_queue.h"

static struct shared_block *block_of(const char *text)
{
    struct shared_block *block = shared_block_create(strlen(text));
    memcpy(block->bytes, text, strlen(text));
    return block;
}

static void put(struct send_queue *queue, const char *text)
{
    uint8_t *place = send_queue_reserve(queue, strlen(text));
    assert_non_null(place);
    memcpy(place, text, strlen(text));
    send_queue_commit(queue, strlen(text));
}

/* Takes everything, at most `step` bytes at a time. */
static const char *drain(struct send_queue *queue, size_t step, struct buf *out)
{
    size_t length;
    buf_clear(out);
    for (const void *next = send_queue_next(queue, &length); next != NULL;
         next = send_queue_next(queue, &length)) {
        size_t some = length < step ? length : step;
        size_t before = send_queue_length(queue);
        assert_true(length > 0);
        buf_append(out, next, some);
        send_queue_consume(queue, some);
        assert_int_equal(send_queue_length(queue), before - some);
    }
    assert_int_equal(length, 0);
    assert_int_equal(send_queue_length(queue), 0);
    return buf_text(out);
}

static void fill(struct send_queue *queue, struct shared_block *block)
{
    put(queue, "one ");
    put(queue, "two ");
    assert_int_equal(send_queue_share(queue, block, 0, 6), 0);
    assert_int_equal(send_queue_share(queue, block, 8, 4), 0);
    put(queue, " end");
    assert_int_equal(send_queue_share(queue, block, 3, 0), 0);
    assert_int_equal(send_queue_share(queue, block, 0, 1), 0);
}

static void test_order(void **state)
{
    (void)state;
    struct send_queue queue;
    struct buf out AUTO_BUF = BUF_INIT(1000);
    struct shared_block *block = block_of("three, four!");
    send_queue_init(&queue, 1000);
    for (size_t step = 1; step < 10; step++) {
        fill(&queue, block);
        assert_int_equal(send_queue_length(&queue), 23);
        assert_string_equal(drain(&queue, step, &out), "one two three,our! endt");
        assert_int_equal(block->holders, 1);
    }
    put(&queue, "more");
    assert_string_equal(drain(&queue, 100, &out), "more");
    shared_block_release(block);
    send_queue_destroy(&queue);
}

static void test_holders(void **state)
{
    (void)state;
    struct send_queue queues[3];
    struct shared_block *block = block_of("shared by all");
    for (size_t i = 0; i < 3; i++) {
        send_queue_init(&queues[i], 1000);
        assert_int_equal(send_queue_share(&queues[i], block, 0, block->length), 0);
    }
    assert_int_equal(block->holders, 4);
    shared_block_release(block); /* the queues still hold it */
    size_t length;
    assert_memory_equal(send_queue_next(&queues[2], &length), "shared by all", 13);
    send_queue_consume(&queues[2], 6);
    assert_int_equal(block->holders, 3);
    send_queue_clear(&queues[0]);
    assert_int_equal(block->holders, 2);
    send_queue_destroy(&queues[1]);
    assert_memory_equal(send_queue_next(&queues[2], &length), " by all", 7);
    send_queue_destroy(&queues[2]);
    send_queue_destroy(&queues[0]);
    shared_block_release(NULL);
}

static void test_limit(void **state)
{
    (void)state;
    struct send_queue queue;
    struct buf out AUTO_BUF = BUF_INIT(1000);
    struct shared_block *block = block_of("0123456789");
    send_queue_init(&queue, 16);
    put(&queue, "123456");
    assert_int_equal(send_queue_share(&queue, block, 0, 10), 0);
    assert_int_equal(send_queue_share(&queue, block, 0, 1), -1);
    assert_null(send_queue_reserve(&queue, 1));
    assert_int_equal(block->holders, 2);
    assert_string_equal(drain(&queue, 100, &out), "1234560123456789");
    put(&queue, "room again");
    assert_int_equal(send_queue_share(&queue, block, 0, 7), -1);
    send_queue_destroy(&queue);
    shared_block_release(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_holders),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
