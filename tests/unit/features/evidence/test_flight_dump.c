/* SPDX-License-Identifier: Apache-2.0 */
/* One dump: the FIFO of a rank, and the file that it writes in place. */
#include "node/fake_root.h"

#include "features/evidence/evidence_agent_test.h"

#define WHOLE "\x80\x02}q\x00."

struct place {
    char root[sizeof(FAKE_ROOT)];
    char *pipe, *file;
    int reader;
    struct flight_dump dump;
    struct buf text;
};

static int open_place(void **state)
{
    struct place *place = mem_alloc(sizeof(*place));
    *place = (struct place){.root = FAKE_ROOT, .text = BUF_INIT(100)};
    assert_non_null(mkdtemp(place->root));
    place->pipe = fake_path(place->root, "flight_7.pipe");
    place->file = fake_path(place->root, "flight_7");
    assert_int_equal(mkfifo(place->pipe, 0600), 0);
    place->reader = fd_open(place->pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
    assert_true(place->reader >= 0);
    *state = place;
    return 0;
}

static int close_place(void **state)
{
    struct place *place = *state;
    fd_close(&place->reader);
    fake_remove(place->root);
    free(place->pipe);
    free(place->file);
    buf_destroy(&place->text);
    free(place);
    return 0;
}

static int ask(struct place *place)
{
    return flight_dump_ask(&place->dump, place->pipe, place->file);
}

static enum flight_state look(struct place *place)
{
    return flight_dump_look(&place->dump, place->file, &place->text);
}

static void put(struct place *place, const char *bytes, size_t length)
{
    int fd AUTO_FD = fd_open(place->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(fd_write_all(fd, bytes, length), 0);
}

static void test_a_dump(void **state)
{
    struct place *place = *state;
    char byte[2];
    assert_int_equal(ask(place), 0);
    assert_int_equal(read(place->reader, byte, sizeof(byte)), 1);
    assert_int_equal(look(place), FLIGHT_WAITS);
    put(place, "", 0);
    assert_int_equal(look(place), FLIGHT_WAITS);
    put(place, WHOLE, sizeof(WHOLE) - 2); /* without its last byte */
    assert_int_equal(look(place), FLIGHT_WAITS);
    assert_int_equal(look(place), FLIGHT_WAITS);
    put(place, WHOLE, sizeof(WHOLE) - 1);
    assert_int_equal(look(place), FLIGHT_WAITS); /* it has just changed */
    assert_int_equal(look(place), FLIGHT_TAKEN);
    assert_int_equal(place->text.length, sizeof(WHOLE) - 1);
    assert_memory_equal(buf_text(&place->text), WHOLE, sizeof(WHOLE) - 1);
}

static void test_an_earlier_dump(void **state)
{
    struct place *place = *state;
    put(place, "an old one.", 11);
    assert_int_equal(ask(place), 0);
    assert_int_equal(look(place), FLIGHT_WAITS);
    assert_int_equal(look(place), FLIGHT_WAITS);
    put(place, WHOLE, sizeof(WHOLE) - 1);
    assert_int_equal(look(place), FLIGHT_WAITS);
    assert_int_equal(look(place), FLIGHT_TAKEN);
    assert_int_equal(place->text.length, sizeof(WHOLE) - 1);
}

static void test_a_large_dump(void **state)
{
    struct place *place = *state;
    char bytes[101] = {[100] = '.'};
    assert_int_equal(ask(place), 0);
    put(place, bytes, sizeof(bytes));
    assert_int_equal(look(place), FLIGHT_WAITS);
    assert_int_equal(look(place), FLIGHT_TOO_LARGE);
    put(place, bytes + 1, sizeof(bytes) - 1);
    assert_int_equal(look(place), FLIGHT_WAITS);
    assert_int_equal(look(place), FLIGHT_TAKEN);
}

static void test_who_cannot_be_asked(void **state)
{
    struct place *place = *state;
    char *target AUTO_FREE = fake_path(place->root, "target");
    fd_close(&place->reader);
    assert_int_equal(ask(place), -1); /* nobody reads */
    unlink(place->pipe);
    assert_int_equal(ask(place), -1);
    put_file(place->root, "flight_7.pipe", "");
    assert_int_equal(ask(place), -1); /* it is a file, which stays as it is */
    struct stat info;
    assert_int_equal(stat(place->pipe, &info), 0);
    assert_int_equal(info.st_size, 0);
    unlink(place->pipe);
    assert_int_equal(mkfifo(target, 0600), 0);
    place->reader = fd_open(target, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
    assert_int_equal(symlink(target, place->pipe), 0);
    assert_int_equal(ask(place), -1); /* a link */
}

/* What a rank could put there instead of a file of its own. */
static void test_what_is_not_taken(void **state)
{
    struct place *place = *state;
    assert_int_equal(ask(place), 0);
    put_file(place->root, "secret", "of the user.");
    assert_int_equal(symlink("secret", place->file), 0);
    assert_int_equal(look(place), FLIGHT_WAITS);
    assert_int_equal(look(place), FLIGHT_WAITS);
    unlink(place->file);
    assert_int_equal(mkfifo(place->file, 0600), 0);
    assert_int_equal(look(place), FLIGHT_WAITS);
    unlink(place->file);
    assert_int_equal(mkdir(place->file, 0700), 0);
    assert_int_equal(look(place), FLIGHT_WAITS);
    assert_int_equal(look(place), FLIGHT_WAITS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_dump, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_an_earlier_dump, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_a_large_dump, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_who_cannot_be_asked, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_what_is_not_taken, open_place, close_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
