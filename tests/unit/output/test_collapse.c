/* SPDX-License-Identifier: Apache-2.0 */
/* Identical lines of many ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/collapse.h"

struct shown {
    struct buf text;
    int ranks;
};

static void on_line(void *context, const struct collapse_line *line)
{
    struct shown *shown = context;
    buf_putc(&shown->text, '[');
    collapse_ranks(line->ranks, shown->ranks, &shown->text);
    buf_printf(&shown->text, "]%d ", line->stream);
    buf_append(&shown->text, line->text, line->length);
    assert_true((line->ranks[line->first_rank / 64] >> (line->first_rank % 64) & 1) != 0);
}

/* All ranks write to both streams. */
static struct collapse *
create(int ranks, void (*emit)(void *context, const struct collapse_line *line), void *context)
{
    struct collapse *collapse = collapse_create(ranks, emit, context);
    for (int i = 0; i < 2 * ranks; i++)
        collapse_joined(collapse, i / 2, i % 2);
    return collapse;
}

static struct collapse *start(struct shown *shown, int ranks)
{
    buf_init(&shown->text, 1 << 24);
    shown->ranks = ranks;
    return create(ranks, on_line, shown);
}

static void add(struct collapse *collapse, int rank, const char *line, int64_t now)
{
    collapse_add(collapse, rank, 0, line, strlen(line), now);
}

static void expect(struct shown *shown, const char *text)
{
    assert_string_equal(buf_text(&shown->text), text);
    buf_clear(&shown->text);
}

static void complete_group_at_once(void **state)
{
    (void)state;
    struct shown shown;
    struct collapse *collapse = start(&shown, 4);
    for (int rank = 3; rank > 0; rank--)
        add(collapse, rank, "hello\n", 10);
    expect(&shown, "");
    assert_int_equal(collapse_due_ms(collapse), 10 + COLLAPSE_MS);
    add(collapse, 0, "hello\n", 50);
    expect(&shown, "[0-3]0 hello\n");
    assert_int_equal(collapse_due_ms(collapse), -1);
    collapse_destroy(collapse);
    buf_destroy(&shown.text);
}

static void incomplete_group_after_the_window(void **state)
{
    (void)state;
    struct shown shown;
    struct collapse *collapse = start(&shown, 8);
    add(collapse, 0, "a\n", 0);
    add(collapse, 2, "a\n", 60);
    add(collapse, 1, "b\n", 60);
    collapse_tick(collapse, COLLAPSE_MS - 1);
    expect(&shown, "");
    collapse_tick(collapse, COLLAPSE_MS);
    expect(&shown, "[0,2]0 a\n");
    collapse_tick(collapse, 60 + COLLAPSE_MS);
    expect(&shown, "[1]0 b\n");
    collapse_destroy(collapse);
    buf_destroy(&shown.text);
}

static void order_of_a_rank_is_kept(void **state)
{
    (void)state;
    struct shown shown;
    struct collapse *collapse = start(&shown, 2);
    add(collapse, 0, "a\n", 0);
    add(collapse, 0, "b\n", 0);
    add(collapse, 1, "b\n", 0); /* joins rank 0's b; its own a must come after that */
    add(collapse, 1, "a\n", 0);
    collapse_flush(collapse);
    expect(&shown, "[0]0 a\n[0-1]0 b\n[1]0 a\n");
    add(collapse, 0, "x\n", 0);
    add(collapse, 0, "x\n", 0);
    add(collapse, 1, "x\n", 0);
    expect(&shown, "[0-1]0 x\n");
    add(collapse, 1, "x\n", 0);
    expect(&shown, "[0-1]0 x\n");
    collapse_destroy(collapse);
    buf_destroy(&shown.text);
}

static void streams_are_apart_and_in_order(void **state)
{
    (void)state;
    struct shown shown;
    struct collapse *collapse = start(&shown, 2);
    collapse_add(collapse, 0, 0, "a\n", 2, 0);
    collapse_add(collapse, 1, 1, "a\n", 2, 0);
    collapse_add(collapse, 0, 1, "a\n", 2, 0);
    expect(&shown, "");
    collapse_flush_rank(collapse, 0);
    expect(&shown, "[0]0 a\n[0-1]1 a\n");
    collapse_destroy(collapse);
    buf_destroy(&shown.text);
}

static void an_ended_rank_is_not_waited_for(void **state)
{
    (void)state;
    struct shown shown;
    struct collapse *collapse = start(&shown, 3);
    add(collapse, 0, "a\n", 0);
    add(collapse, 1, "a\n", 0);
    collapse_ended(collapse, 2, 1);
    expect(&shown, "");
    collapse_ended(collapse, 2, 0);
    expect(&shown, "[0-1]0 a\n");
    collapse_destroy(collapse);
    buf_destroy(&shown.text);
}

/* Ranks that have said the line and ended must not be taken for those that are still to come. */
static void an_ended_rank_does_not_stand_in_for_others(void **state)
{
    (void)state;
    struct shown shown;
    struct collapse *collapse = start(&shown, 3);
    add(collapse, 0, "a\n", 0);
    add(collapse, 1, "a\n", 0);
    collapse_ended(collapse, 0, 0);
    collapse_ended(collapse, 1, 0);
    expect(&shown, "");
    add(collapse, 2, "a\n", 1);
    expect(&shown, "[0-2]0 a\n");
    collapse_destroy(collapse);
    buf_destroy(&shown.text);
}

static void ranks_come_and_go(void **state)
{
    (void)state;
    struct shown shown;
    struct collapse *collapse = start(&shown, 2);
    add(collapse, 0, "a\n", 0);
    collapse_ended(collapse, 0, 0);
    collapse_ended(collapse, 0, 0); /* once is enough */
    collapse_flush_rank(collapse, 0);
    collapse_joined(collapse, 0, 0);
    expect(&shown, "[0]0 a\n");
    add(collapse, 0, "b\n", 0);
    expect(&shown, "");
    collapse_grow(collapse, 100); /* what waits has sets of the old size */
    expect(&shown, "[0]0 b\n");
    shown.ranks = 100;
    add(collapse, 0, "c\n", 0);
    add(collapse, 1, "c\n", 0); /* the new ones do not talk yet */
    expect(&shown, "[0-1]0 c\n");
    collapse_joined(collapse, 99, 0);
    add(collapse, 0, "d\n", 0);
    add(collapse, 1, "d\n", 0);
    expect(&shown, "");
    add(collapse, 99, "d\n", 0);
    expect(&shown, "[0-1,99]0 d\n");
    collapse_destroy(collapse);
    buf_destroy(&shown.text);
}

static void memory_is_bounded(void **state)
{
    (void)state;
    struct shown shown;
    struct collapse *collapse = start(&shown, 2);
    char line[64];
    for (int i = 0; i <= COLLAPSE_LINES; i++) {
        snprintf(line, sizeof(line), "%d\n", i);
        add(collapse, 0, line, 0);
    }
    expect(&shown, "[0]0 0\n");
    collapse_flush(collapse);
    buf_clear(&shown.text);
    char *large = calloc(1, COLLAPSE_BYTES / 2 + 1);
    memset(large, 'x', COLLAPSE_BYTES / 2);
    for (int i = 0; i < 3; i++)
        add(collapse, 0, large, 0);
    assert_true(shown.text.length >= COLLAPSE_BYTES / 2);
    assert_true(shown.text.length < COLLAPSE_BYTES);
    free(large);
    collapse_destroy(collapse); /* what waits is forgotten */
    buf_destroy(&shown.text);
}

/* By rank, what came out must be what went in, whatever happens. */
struct witness {
    struct buf in[70], out[70];
};

static void on_witnessed(void *context, const struct collapse_line *line)
{
    struct witness *witness = context;
    int count = 0;
    for (int rank = 0; rank < 70; rank++) {
        if ((line->ranks[rank / 64] >> (rank % 64) & 1) == 0)
            continue;
        count++;
        buf_append(&witness->out[rank], line->text, line->length);
    }
    assert_int_equal(count, line->count);
}

static void nothing_is_lost(void **state)
{
    (void)state;
    struct witness *witness = calloc(1, sizeof(*witness));
    for (int rank = 0; rank < 70; rank++) {
        buf_init(&witness->in[rank], 1 << 20);
        buf_init(&witness->out[rank], 1 << 20);
    }
    struct collapse *collapse = create(70, on_witnessed, witness);
    unsigned seed = 3;
    for (int i = 0; i < 20000; i++) {
        int rank = rand_r(&seed) % 70;
        char line[16];
        snprintf(line, sizeof(line), "%d\n", rand_r(&seed) % 5);
        buf_puts(&witness->in[rank], line);
        collapse_add(collapse, rank, rand_r(&seed) % 2, line, strlen(line), i / 10);
        if (rand_r(&seed) % 50 == 0)
            collapse_tick(collapse, i / 10);
    }
    collapse_flush(collapse);
    for (int rank = 0; rank < 70; rank++) {
        assert_string_equal(buf_text(&witness->in[rank]), buf_text(&witness->out[rank]));
        buf_destroy(&witness->in[rank]);
        buf_destroy(&witness->out[rank]);
    }
    collapse_destroy(collapse);
    free(witness);
}

static void lists_of_ranks(void **state)
{
    (void)state;
    uint64_t set[2] = {0xF0B, 1u << 5};
    AUTO_BUF struct buf out = BUF_INIT(100);
    collapse_ranks(set, 70, &out);
    assert_string_equal(buf_text(&out), "0-1,3,8-11,69");
}

/* Sets of ranks have 64 to a word: jobs of every size around that, all of whose ranks say the same,
 * then all but the last, which has ended, then all again. */
static void jobs_of_every_size(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 200; ranks++) {
        struct shown shown;
        struct collapse *collapse = start(&shown, ranks);
        char wanted[64];
        for (int rank = 0; rank < ranks; rank++)
            add(collapse, rank, "a\n", 0);
        snprintf(wanted, sizeof(wanted), "[0-%d]0 a\n", ranks - 1);
        expect(&shown, wanted);
        collapse_ended(collapse, ranks - 1, 0);
        for (int rank = 0; rank < ranks - 1; rank++)
            add(collapse, rank, "b\n", 0);
        snprintf(wanted, sizeof(wanted), ranks == 2 ? "[0]0 b\n" : "[0-%d]0 b\n", ranks - 2);
        expect(&shown, wanted);
        collapse_joined(collapse, ranks - 1, 0);
        for (int rank = ranks - 1; rank >= 0; rank--)
            add(collapse, rank, "c\n", 0);
        snprintf(wanted, sizeof(wanted), "[0-%d]0 c\n", ranks - 1);
        expect(&shown, wanted);
        collapse_destroy(collapse);
        buf_destroy(&shown.text);
    }
}

/* A rank has ended twice on one stream: the others are still waited for. */
static void each_rank_ends_once(void **state)
{
    (void)state;
    struct shown shown;
    struct collapse *collapse = start(&shown, 70);
    for (int rank = 0; rank < 70; rank += 23)
        for (int i = 0; i < 3; i++)
            collapse_ended(collapse, rank, 0);
    for (int rank = 0; rank < 69; rank++)
        if (rank % 23 != 0)
            add(collapse, rank, "a\n", 0);
    expect(&shown, "[1-22,24-45,47-68]0 a\n");
    collapse_destroy(collapse);
    buf_destroy(&shown.text);
}

static void one_who_does_not_talk_may_end(void **state)
{
    (void)state;
    struct shown shown = {.text = BUF_INIT(1 << 20), .ranks = 4};
    struct collapse *collapse = collapse_create(4, on_line, &shown);
    collapse_ended(collapse, 0, 0);
    collapse_joined(collapse, 1, 0);
    collapse_joined(collapse, 2, 0);
    add(collapse, 1, "a\n", 0);
    expect(&shown, "");
    add(collapse, 2, "a\n", 0);
    expect(&shown, "[1-2]0 a\n");
    collapse_destroy(collapse);
    buf_destroy(&shown.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complete_group_at_once),
        cmocka_unit_test(incomplete_group_after_the_window),
        cmocka_unit_test(order_of_a_rank_is_kept),
        cmocka_unit_test(streams_are_apart_and_in_order),
        cmocka_unit_test(an_ended_rank_is_not_waited_for),
        cmocka_unit_test(an_ended_rank_does_not_stand_in_for_others),
        cmocka_unit_test(ranks_come_and_go),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(lists_of_ranks),
        cmocka_unit_test(jobs_of_every_size),
        cmocka_unit_test(each_rank_ends_once),
        cmocka_unit_test(one_who_does_not_talk_may_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
