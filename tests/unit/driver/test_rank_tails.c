/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "driver/tell/recent.h"

static void add(struct rank_tails *tails, int rank, const char *text)
{
    struct recent_piece piece = {.rank = rank, .text = text, .length = strlen(text)};
    rank_tails_add(tails, &piece);
}

static void add_bar(struct rank_tails *tails, int rank, const char *text)
{
    struct recent_piece piece = {.rank = rank, .text = text, .length = strlen(text)};
    rank_tails_add_bar(tails, &piece);
}

static void append(void *context, const struct recent_piece *piece)
{
    buf_append(context, piece->text, piece->length);
}

static void expect(const struct rank_tails *tails, int rank, const char *text)
{
    struct buf out AUTO_BUF = BUF_INIT(1 << 20);
    const struct recent *recent = rank_tails_of(tails, rank);
    if (recent != NULL)
        recent_walk(recent, append, &out);
    assert_string_equal(buf_text(&out), text);
}

static void test_each_has_its_own(void **state)
{
    (void)state;
    struct rank_tails *tails = rank_tails_create(2);
    add(tails, 0, "zero\n");
    add(tails, 900, "far\n"); /* an elastic job has grown */
    add(tails, 0, "more\n");
    add(tails, RECENT_LAUNCHER, "hvdrun: nothing of a rank\n");
    expect(tails, 0, "zero\nmore\n");
    expect(tails, 900, "far\n");
    assert_null(rank_tails_of(tails, 1));
    assert_null(rank_tails_of(tails, 1 << 24));
    assert_null(rank_tails_of(tails, -1));
    assert_null(rank_tails_of(NULL, 0));
    add(NULL, 0, "nobody wants it\n");
    rank_tails_destroy(tails);
    rank_tails_destroy(NULL);
}

static void test_bar(void **state)
{
    (void)state;
    struct rank_tails *tails = rank_tails_create(2);
    char long_bar[2 * RANK_TAIL_BAR_BYTES];
    memset(long_bar, '=', sizeof(long_bar) - 1);
    long_bar[sizeof(long_bar) - 1] = '\0';
    add_bar(tails, 1, " 10 %\r");
    add_bar(tails, 1, " 20 %\r");
    assert_string_equal(rank_tails_bar(tails, 1), " 20 %");
    add(tails, 1, "a line\n");
    assert_null(rank_tails_bar(tails, 1));
    expect(tails, 1, "a line\n");
    add_bar(tails, 1, long_bar);
    assert_int_equal(strlen(rank_tails_bar(tails, 1)), RANK_TAIL_BAR_BYTES);
    assert_null(rank_tails_bar(tails, 0));
    add_bar(NULL, 0, "x\r");
    rank_tails_destroy(tails);
}

/* Each keeps its last bytes, and all together have a limit. */
static void test_bounds(void **state)
{
    (void)state;
    enum { RANKS = 20000 };
    struct rank_tails *tails = rank_tails_create(RANKS);
    int kept = 0;
    for (int rank = 0; rank < RANKS; rank++)
        add(tails, rank, "line\n");
    for (int rank = 0; rank < RANKS; rank++)
        kept += rank_tails_of(tails, rank) != NULL;
    assert_int_equal(kept, RANK_TAILS_BYTES / RANK_TAIL_BYTES_MIN);
    for (int i = 0; i < 10000; i++)
        add(tails, 0, "one more line\n");
    struct buf out AUTO_BUF = BUF_INIT(1 << 20);
    recent_walk(rank_tails_of(tails, 0), append, &out);
    assert_true(out.length > 0 && out.length <= RANK_TAIL_BYTES_MIN);
    rank_tails_destroy(tails);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_has_its_own),
        cmocka_unit_test(test_bar),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
