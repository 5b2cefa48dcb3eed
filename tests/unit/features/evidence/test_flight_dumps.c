/* SPDX-License-Identifier: Apache-2.0 */
/* The dumps of all workers: the test takes the place of PyTorch. */
#include "node/fake_root.h"

#include <poll.h>
#include <signal.h>
#include <time.h>

#include "features/evidence/evidence_agent_test.h"

#define RANKS 3
#define ROUNDS 4000 /* of 5 ms: never for ever */

struct ranks {
    char root[sizeof(FAKE_ROOT)];
    int readers[RANKS];
    struct flight_dumps *dumps;
    char *seen[RANKS]; /* the bytes, or why there are none */
    bool missing[RANKS];
    int told;
};

static char *path_of(const struct ranks *ranks, int rank, const char *suffix)
{
    char *name AUTO_FREE = mem_printf("flight_%d%s", rank, suffix);
    return fake_path(ranks->root, name);
}

static int open_ranks(void **state)
{
    struct ranks *ranks = mem_alloc(sizeof(*ranks));
    *ranks = (struct ranks){.root = FAKE_ROOT, .readers = {-1, -1, -1}};
    assert_non_null(mkdtemp(ranks->root));
    *state = ranks;
    return 0;
}

static int close_ranks(void **state)
{
    struct ranks *ranks = *state;
    flight_dumps_destroy(ranks->dumps);
    for (int i = 0; i < RANKS; i++) {
        fd_close(&ranks->readers[i]);
        free(ranks->seen[i]);
    }
    fake_remove(ranks->root);
    free(ranks);
    return 0;
}

static void make_fifo(struct ranks *ranks, int rank)
{
    char *pipe AUTO_FREE = path_of(ranks, rank, ".pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    ranks->readers[rank] = fd_open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
    assert_true(ranks->readers[rank] >= 0);
}

static void begin(struct ranks *ranks, int count, size_t room)
{
    struct flight_item *items = mem_array((size_t)count, sizeof(*items));
    for (int i = 0; i < count; i++) {
        items[i].seat = (uint32_t)i;
        items[i].places.pipe = path_of(ranks, i, ".pipe");
        items[i].places.dump = path_of(ranks, i, "");
    }
    ranks->dumps = flight_dumps_create(items, (size_t)count, room);
}

/* Until this rank has been asked. */
static void wait_for_question(const struct ranks *ranks, int rank)
{
    struct pollfd pollfd = {.fd = ranks->readers[rank], .events = POLLIN};
    char byte;
    assert_int_equal(poll(&pollfd, 1, ROUNDS * 5), 1);
    assert_int_equal(read(ranks->readers[rank], &byte, 1), 1);
}

static void write_dump(const struct ranks *ranks, int rank, const char *text)
{
    char *name AUTO_FREE = mem_printf("flight_%d", rank);
    put_file(ranks->root, name, text);
}

static void take(void *context, const struct flight_item *item)
{
    struct ranks *ranks = context;
    assert_in_range(item->seat, 0, RANKS - 1);
    assert_null(ranks->seen[item->seat]);
    ranks->missing[item->seat] = item->bytes == NULL;
    ranks->seen[item->seat] = item->bytes != NULL
                                  ? mem_strndup(item->bytes, item->length)
                                  : mem_strdup(item->missing == NULL ? "" : item->missing);
    ranks->told++;
}

/* Until so many are known, or all. */
static bool advance(struct ranks *ranks, int told)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    bool over = false;
    for (int i = 0; i < ROUNDS && !over && ranks->told < told; i++) {
        over = flight_dumps_advance(ranks->dumps, take, ranks);
        if (!over)
            nanosleep(&pause, NULL);
    }
    return over;
}

static void test_all_of_them(void **state)
{
    struct ranks *ranks = *state;
    make_fifo(ranks, 0);
    make_fifo(ranks, 2);
    begin(ranks, RANKS, 1000);
    wait_for_question(ranks, 0);
    wait_for_question(ranks, 2);
    assert_false(advance(ranks, 1)); /* rank 1 records nothing */
    assert_true(ranks->missing[1]);
    assert_string_equal(ranks->seen[1], "");
    write_dump(ranks, 2, "two.");
    assert_false(advance(ranks, 2)); /* as soon as it is there */
    assert_string_equal(ranks->seen[2], "two.");
    assert_null(ranks->seen[0]);
    write_dump(ranks, 0, "zero.");
    assert_true(advance(ranks, RANKS + 1));
    assert_string_equal(ranks->seen[0], "zero.");
    assert_false(ranks->missing[0] || ranks->missing[2]);
    assert_int_equal(ranks->told, RANKS);
}

static void test_too_large_together(void **state)
{
    struct ranks *ranks = *state;
    make_fifo(ranks, 0);
    make_fifo(ranks, 1);
    begin(ranks, 2, 9);
    wait_for_question(ranks, 0);
    wait_for_question(ranks, 1);
    write_dump(ranks, 0, "zero.");
    assert_false(advance(ranks, 1));
    write_dump(ranks, 1, "ones.");
    assert_true(advance(ranks, 3));
    assert_string_equal(ranks->seen[0], "zero.");
    assert_string_equal(ranks->seen[1], "the dumps of this host are too large in total");
    assert_true(ranks->missing[1]);
}

/* Nobody waits for the rest. */
static void test_given_up(void **state)
{
    struct ranks *ranks = *state;
    make_fifo(ranks, 0);
    begin(ranks, 1, 1000);
    wait_for_question(ranks, 0);
    assert_false(flight_dumps_advance(ranks->dumps, take, ranks));
    flight_dumps_destroy(ranks->dumps);
    ranks->dumps = NULL;
    flight_dumps_destroy(NULL);
    assert_int_equal(ranks->told, 0);
}

static void test_none(void **state)
{
    struct ranks *ranks = *state;
    begin(ranks, 2, 1000);
    assert_true(advance(ranks, 3));
    assert_int_equal(ranks->told, 2);
    assert_true(ranks->missing[0] && ranks->missing[1]);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_of_them, open_ranks, close_ranks),
        cmocka_unit_test_setup_teardown(test_too_large_together, open_ranks, close_ranks),
        cmocka_unit_test_setup_teardown(test_given_up, open_ranks, close_ranks),
        cmocka_unit_test_setup_teardown(test_none, open_ranks, close_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
