/* SPDX-License-Identifier: Apache-2.0 */
/* Seats of elastic jobs: workers come and go under numbers that are used again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <malloc.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "output_fixture.h"

#define REUSES 10000

static void take(struct rig *rig, int seat, int rank, int local_rank, const char *host)
{
    output_seat(rig->output, seat,
                &(struct output_seat){.rank = rank, .local_rank = local_rank, .host = host});
}

static void leave(struct rig *rig, int seat)
{
    output_end(rig->output, seat, OUTPUT_STDOUT);
    output_end(rig->output, seat, OUTPUT_STDERR);
}

/* ---- who sits there ---- */

static void growing_from_nothing(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.ranks = -1, .label = "%r %h.%l %s: "});
    rig_read(&rig);
    say(&rig, 0, OUTPUT_STDOUT, "nobody sits there yet\n");
    char host[] = "a";
    take(&rig, 0, 0, 0, host);
    take(&rig, 1, 1, 1, host);
    host[0] = '!'; /* it was copied */
    say(&rig, 1, OUTPUT_STDERR, "tail\n");
    take(&rig, 40, 2, 0, "b");
    take(&rig, 41, 3, 1, NULL);
    say(&rig, 0, OUTPUT_STDOUT, "x\n");
    say(&rig, 40, OUTPUT_STDERR, "y\n");
    say(&rig, 41, OUTPUT_STDOUT, "z\n");
    output_seat(rig.output, -1, &(struct output_seat){0});
    flush(&rig);
    assert_int_equal(rig.consumed[0], 2);
    rig_end(&rig);
    expect(&rig, "0 a.0 stdout: x\n3 ?.1 stdout: z\n", "1 a.1 stderr: tail\n2 b.0 stderr: y\n");
}

static void a_seat_is_taken_again(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.label = "%r.%l.%h: "});
    rig_read(&rig);
    take(&rig, 2, 2, 0, "a");
    say(&rig, 2, OUTPUT_STDOUT, "whole\nthe last li");
    say(&rig, 2, OUTPUT_STDERR, "failed\n");
    leave(&rig, 2);
    take(&rig, 2, 5, 1, "b");
    say(&rig, 2, OUTPUT_STDOUT, "new\n");
    say(&rig, 2, OUTPUT_STDERR, "second\n");
    say(&rig, 2, OUTPUT_STDOUT, "unfinished");
    take(&rig, 2, 3, 0, "c"); /* its ends have never come */
    say(&rig, 2, OUTPUT_STDOUT, "third\n");
    leave(&rig, 2);
    leave(&rig, 2);
    flush(&rig);
    rig_end(&rig);
    expect(&rig, "2.0.a: whole\n2.0.a: the last li\n5.1.b: new\n5.1.b: unfinished\n3.0.c: third\n",
           "2.0.a: failed\n5.1.b: second\n");
}

/* Also a part that was shown already, and with nothing in front of the lines. */
static void lines_of_two_workers_stay_apart(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.no_label = true});
    say(&rig, 0, OUTPUT_STDOUT, "old");
    output_show(rig.output, 0, OUTPUT_STDOUT);
    flush(&rig);
    wait_for_text(rig.out[0], "old");
    leave(&rig, 0);
    take(&rig, 0, 0, 0, "a");
    say(&rig, 0, OUTPUT_STDOUT, "new\n");
    flush(&rig);
    wait_for_text(rig.out[0], "\nnew\n");
    rig_end(&rig);

    rig_start(&rig, (struct output_config){0});
    say(&rig, 0, OUTPUT_STDOUT, "old");
    output_show(rig.output, 0, OUTPUT_STDOUT);
    flush(&rig);
    wait_for_text(rig.out[0], "[0]<stdout>:old");
    take(&rig, 0, 1, 0, "a");
    say(&rig, 0, OUTPUT_STDOUT, "new\n");
    flush(&rig);
    wait_for_text(rig.out[0], "\n[1]<stdout>:new\n");
    rig_end(&rig);
}

/* What waits for a slow reader goes out under the name of the one who said it. */
static void labels_change_in_order(void **state)
{
    (void)state;
    enum { LINE = 64, OLD = (OUTPUT_QUEUE_MAX + (1 << 20)) / LINE };
    struct rig rig;
    rig_start(&rig, (struct output_config){.ranks = -1, .label = "%r%h:"});
    AUTO_BUF struct buf text = BUF_INIT(1 << 26), wanted = BUF_INIT(1 << 26);
    for (int i = 0; i < OLD; i++) {
        buf_printf(&text, "%0*d\n", LINE - 1, i);
        buf_printf(&wanted, "0a:%0*d\n", LINE - 1, i);
    }
    take(&rig, 0, 0, 0, "a");
    output_bytes(rig.output, 0, OUTPUT_STDOUT, buf_text(&text), text.length, WALL);
    say(&rig, 0, OUTPUT_STDOUT, "the last of the old");
    leave(&rig, 0);
    take(&rig, 0, 7, 0, "b");
    say(&rig, 0, OUTPUT_STDOUT, "the first of the new\n");
    take(&rig, 1, 8, 0, NULL); /* a new seat, behind all that */
    say(&rig, 1, OUTPUT_STDOUT, "another\n");
    buf_puts(&wanted, "0a:the last of the old\n7b:the first of the new\n8?:another\n");
    run_for(&rig, 50);
    assert_true(rig.consumed[0] < text.length); /* it did wait */
    rig_read(&rig);
    flush(&rig);
    assert_int_equal(rig.consumed[0], text.length + strlen("the last of the old") +
                                          strlen("the first of the new\n"));
    rig_end(&rig);
    assert_int_equal(rig.readers[0].text.length, wanted.length);
    assert_memory_equal(buf_text(&rig.readers[0].text), buf_text(&wanted), wanted.length);
    rig_free(&rig);
}

static void shown_by_the_rank_of_the_moment(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.ranks = -1, .ranks_max = 8, .ranks_shown = "1,6-7"});
    rig_read(&rig);
    take(&rig, 0, 0, 0, "a");
    take(&rig, 1, 6, 0, "a");
    say(&rig, 0, OUTPUT_STDOUT, "hidden\n");
    say(&rig, 1, OUTPUT_STDOUT, "six\n");
    leave(&rig, 0);
    leave(&rig, 1);
    take(&rig, 0, 1, 0, "a");
    take(&rig, 1, 2, 0, "a");
    take(&rig, 2, 64, 0, "a"); /* just behind the list that is kept */
    say(&rig, 0, OUTPUT_STDOUT, "one\n");
    say(&rig, 1, OUTPUT_STDOUT, "hidden\n");
    say(&rig, 2, OUTPUT_STDOUT, "hidden\n");
    flush(&rig);
    rig_end(&rig);
    expect(&rig, "[6]<stdout>:six\n[1]<stdout>:one\n", "");

    const struct output_ops ops = {.consumed = on_consumed, .failed = on_failed};
    const struct output_config wrong = {.ranks_max = 8, .raw_seat = -1, .ranks_shown = "8"};
    struct error err = ERROR_INIT;
    struct loop *loop = loop_create(NULL);
    assert_null(output_create(loop, &wrong, &ops, NULL, &err));
    assert_non_null(strstr(err.text, "0 to 7"));
    loop_destroy(loop);
    rig_start(&rig, (struct output_config){.ranks = -1, .ranks_shown = "70000"});
    rig_read(&rig);
    take(&rig, 0, 70000, 0, "a"); /* nobody knows how many there can be */
    say(&rig, 0, OUTPUT_STDOUT, "x\n");
    flush(&rig);
    rig_end(&rig);
    expect(&rig, "[70000]<stdout>:x\n", "");
}

static void a_raw_seat_stays_raw(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.raw_seat = 1}); /* seat 0 */
    rig_read(&rig);
    say(&rig, 0, OUTPUT_STDOUT, "(gdb) ");
    leave(&rig, 0);
    take(&rig, 0, 3, 0, "a");
    take(&rig, 1, 0, 0, "a");
    say(&rig, 0, OUTPUT_STDOUT, "(pdb) ");
    say(&rig, 1, OUTPUT_STDOUT, "x\n");
    flush(&rig);
    rig_end(&rig);
    expect(&rig, "(gdb) \n(pdb) \n[0]<stdout>:x\n", "");
}

/* ---- collapse ---- */

static void collapsed_by_those_who_are_there(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.ranks = -1, .collapse = true});
    rig_read(&rig);
    for (int seat = 0; seat < 3; seat++)
        take(&rig, seat, seat, seat, "a");
    for (int seat = 2; seat >= 0; seat--)
        say(&rig, seat, OUTPUT_STDOUT, "three\n");
    say(&rig, 0, OUTPUT_STDOUT, "of one\n");
    say(&rig, 0, OUTPUT_STDERR, "failed\n");
    leave(&rig, 0);
    say(&rig, 1, OUTPUT_STDOUT, "two\n");
    say(&rig, 2, OUTPUT_STDOUT, "two\n");
    say(&rig, 1, OUTPUT_STDOUT, "waits\n");
    take(&rig, 0, 2, 0, "b"); /* the survivor of rank 2 still goes by its old name */
    for (int seat = 3; seat < 70; seat++)
        take(&rig, seat, seat, seat, "b");
    for (int seat = 0; seat < 70; seat++)
        say(&rig, seat, OUTPUT_STDOUT, "all\n");
    output_print(rig.output, "no time has passed\n");
    flush(&rig);
    rig_end(&rig);
    expect(&rig,
           "[0-2]: three\n[0]<stdout>:of one\n[1-2]: two\n[1]<stdout>:waits\n[1-69]: all\n"
           "no time has passed\n",
           "[0]<stderr>:failed\n");
}

/* ---- files ---- */

static const char *place(const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void files_go_on(void **state)
{
    (void)state;
    for (int run = 0; run < 2; run++) { /* the second one begins anew */
        struct rig rig;
        rig_start(&rig, (struct output_config){.ranks = -1, .ranks_max = 11, .files = place("go")});
        rig_read(&rig);
        take(&rig, 0, 0, 0, "a");
        take(&rig, 1, 1, 1, "a");
        say(&rig, 0, OUTPUT_STDOUT, "first\nunfinished");
        leave(&rig, 0);
        leave(&rig, 1);
        take(&rig, 0, 1, 0, "a");
        take(&rig, 1, 0, 0, "b");
        say(&rig, 0, OUTPUT_STDOUT, "one\n");
        say(&rig, 1, OUTPUT_STDOUT, "second\n");
        flush(&rig);
        expect_file("go/rank.00/stdout", "first\nunfinished\nsecond\n");
        leave(&rig, 1);
        take(&rig, 7, 0, 0, "b");
        say(&rig, 7, OUTPUT_STDOUT, "third");
        leave(&rig, 7);
        take(&rig, 7, 0, 0, "b");
        say(&rig, 7, OUTPUT_STDOUT, "fourth");
        flush(&rig);
        rig_end(&rig);
        rig_free(&rig);
        expect_file("go/rank.00/stdout", "first\nunfinished\nsecond\nthird\nfourth");
        expect_file("go/rank.01/stdout", "one\n");
        expect_file("go/rank.01/stderr", "");
    }
}

static int open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static void the_files_of_a_worker_that_left_are_closed(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.ranks = -1, .files = place("closed")});
    rig_read(&rig);
    output_print(rig.output, "the thread runs\n");
    flush(&rig);
    int before = open_files();
    take(&rig, 0, 0, 0, "a");
    say(&rig, 0, OUTPUT_STDOUT, "x\n");
    say(&rig, 0, OUTPUT_STDERR, "y\n");
    flush(&rig);
    assert_int_equal(open_files(), before + 2);
    leave(&rig, 0);
    flush(&rig);
    assert_int_equal(open_files(), before);
    rig_end(&rig);
    rig_free(&rig);
}

static void empty_lines_are_lines(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        struct rig rig;
        rig_start(&rig, (struct output_config){
                            .ranks = -1, .files = place(shared == 1 ? "empty.%h" : "empty/%r.%s")});
        rig_read(&rig);
        take(&rig, 0, 0, 0, "a");
        say(&rig, 0, OUTPUT_STDOUT, "\n");
        say(&rig, 0, OUTPUT_STDOUT, "x\n");
        say(&rig, 0, OUTPUT_STDOUT, "\n");
        leave(&rig, 0);
        flush(&rig);
        rig_end(&rig);
        rig_free(&rig);
        expect_file(shared == 1 ? "empty.a" : "empty/0.stdout", "\nx\n\n");
    }
}

/* A line belongs to one worker, so it waits for its end, but not in any amount of memory. */
static void unfinished_lines_are_bounded(void **state)
{
    (void)state;
    enum { SEATS = 200, HALF = 30 * 1024, WITHIN = 16 * 1024 * 1024 / (2 * HALF) };
    struct rig rig;
    char *half = mem_alloc(HALF + 1);
    memset(half, 'x', HALF);
    rig_start(&rig, (struct output_config){.ranks = -1, .files = place("bounded.%h")});
    rig_read(&rig);
    for (int seat = 0; seat < 2 * SEATS; seat++)
        take(&rig, seat, seat, seat, "a");
    for (int seat = 0; seat < 2 * SEATS; seat++) {
        output_bytes(rig.output, seat, OUTPUT_STDOUT, half, HALF, WALL);
        output_bytes(rig.output, seat, OUTPUT_STDOUT, half, HALF, WALL);
        if (seat + 1 == WITHIN) {
            flush(&rig);
            expect_file("bounded.a", "");
        }
    }
    flush(&rig);
    struct stat facts;
    assert_int_equal(stat(place("bounded.a"), &facts), 0);
    assert_in_range(facts.st_size, (2 * SEATS - WITHIN) * 2 * HALF,
                    (2 * SEATS - WITHIN + 2) * 2 * HALF + 2 * SEATS);
    rig_end(&rig);
    rig_free(&rig);
    free(half);
}

static void files_of_hosts_that_change(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig,
              (struct output_config){.ranks = -1, .merge_stderr = true, .files = place("%h.%l")});
    rig_read(&rig);
    take(&rig, 0, 0, 0, "a");
    say(&rig, 0, OUTPUT_STDOUT, "1\n");
    say(&rig, 0, OUTPUT_STDERR, "2\n");
    leave(&rig, 0);
    take(&rig, 0, 0, 3, "b");
    say(&rig, 0, OUTPUT_STDERR, "3\n");
    leave(&rig, 0);
    take(&rig, 0, 0, 0, "a");
    say(&rig, 0, OUTPUT_STDERR, "4\n");
    flush(&rig);
    rig_end(&rig);
    rig_free(&rig);
    expect_file("a.0", "1\n2\n4\n");
    expect_file("b.3", "3\n");
}

/* Static seats whose lines were half written when the second worker of the rank came. */
static void a_worker_that_began_alone(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.files = place("alone")});
    rig_read(&rig);
    say(&rig, 1, OUTPUT_STDOUT, "the first ha");
    flush(&rig);
    expect_file("alone/rank.1/stdout", "the first ha"); /* as it comes */
    say(&rig, 1, OUTPUT_STDOUT, "lf\n");
    take(&rig, 4, 1, 0, "b");
    say(&rig, 4, OUTPUT_STDOUT, "of the");
    say(&rig, 1, OUTPUT_STDOUT, "draining\nand");
    leave(&rig, 1);
    say(&rig, 4, OUTPUT_STDOUT, " new\n");
    flush(&rig);
    expect_file("alone/rank.1/stdout", "the first half\ndraining\nand\nof the new\n");
    rig_end(&rig);
    rig_free(&rig);
}

/* Adds a part of the worker's lines, cut anywhere; true when that was the last one. */
static bool say_part(struct rig *rig, int seat, const struct buf *text, size_t *at, unsigned *seed)
{
    size_t part = (size_t)rand_r(seed) % 300 + 1;
    if (part > text->length - *at)
        part = text->length - *at;
    output_bytes(rig->output, seat, OUTPUT_STDOUT, buf_text(text) + *at, part, WALL);
    *at += part;
    return *at == text->length;
}

static void two_workers_of_one_rank(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.ranks = -1, .no_label = true, .files = place("two")});
    rig_read(&rig);
    struct buf texts[2] = {BUF_INIT(1 << 22), BUF_INIT(1 << 22)};
    unsigned seed = 11;
    for (int line = 0; line < 2000; line++)
        for (int i = 0; i < 2; i++)
            buf_printf(&texts[i], "%c %d %0*d.\n", 'a' + i, line, rand_r(&seed) % 100 + 1, 0);
    size_t at[2] = {0, 0};
    for (int i = 0; i < 2; i++)
        take(&rig, 3 + i, 1, 0, i == 0 ? "old" : "new");
    bool done[2] = {false, false};
    while (!done[0] || !done[1]) {
        int i = done[0] || (!done[1] && rand_r(&seed) % 2 == 1) ? 1 : 0;
        done[i] = say_part(&rig, 3 + i, &texts[i], &at[i], &seed);
        if (done[i])
            leave(&rig, 3 + i);
    }
    flush(&rig);
    rig_end(&rig);
    rig_free(&rig);
    buf_destroy(&texts[0]);
    buf_destroy(&texts[1]);
    AUTO_BUF struct buf content = BUF_INIT(1 << 23);
    assert_int_equal(fd_read_file(place("two/rank.1/stdout"), &content, NULL), 0);
    int next[2] = {0, 0};
    const char *text = buf_text(&content);
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        int i = line[0] - 'a';
        assert_true(i == 0 || i == 1);
        assert_int_equal(strtol(line + 2, NULL, 10), next[i]);
        assert_int_equal(strchr(line, '\n')[-1], '.');
        next[i]++;
    }
    assert_int_equal(next[0], 2000);
    assert_int_equal(next[1], 2000);
}

/* ---- for ever ---- */

/* A worker of one of eight ranks, on one of three hosts, in one of twenty seats. */
static void one_life(struct rig *rig, int number)
{
    static const char *const hosts[] = {"a", "bb", "a-host-with-a-name-that-is-rather-long"};
    int seat = number % 20;
    take(rig, seat, number % 8, number % 3, hosts[number % 3]);
    say(rig, seat, OUTPUT_STDOUT, "all the same\nprogress\runfinished");
    say(rig, seat, OUTPUT_STDERR, number % 2 == 0 ? "even\n" : "odd");
    if (number % 7 != 0)
        leave(rig, seat);
}

static void live(struct rig *rig, int lives)
{
    for (int i = 0; i < lives; i++) {
        one_life(rig, i);
        if (i % 40 == 39)
            flush(rig);
    }
    flush(rig);
}

static void thousands_of_workers_leave_nothing(void **state)
{
    (void)state;
    for (int collapse = 0; collapse < 2; collapse++) {
        struct rig rig;
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        rig_start(&rig, (struct output_config){.ranks = -1,
                                               .collapse = collapse == 1,
                                               .out_fd = null,
                                               .err_fd = null,
                                               .files = place("for-ever/%r.%h.%s")});
        live(&rig, 1000);
        int descriptors = open_files();
        size_t before = mallinfo2().uordblks;
        live(&rig, REUSES);
        size_t after = mallinfo2().uordblks;
        assert_true(open_files() <= descriptors + 2);
        /* a block or two of the sink may be in use that was not; less than 26 bytes a worker */
        assert_true(after < before + 256 * 1024);
        rig_end(&rig);
        fd_close(&null);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(growing_from_nothing),
        cmocka_unit_test(a_seat_is_taken_again),
        cmocka_unit_test(lines_of_two_workers_stay_apart),
        cmocka_unit_test(labels_change_in_order),
        cmocka_unit_test(shown_by_the_rank_of_the_moment),
        cmocka_unit_test(a_raw_seat_stays_raw),
        cmocka_unit_test(collapsed_by_those_who_are_there),
        cmocka_unit_test(files_go_on),
        cmocka_unit_test(the_files_of_a_worker_that_left_are_closed),
        cmocka_unit_test(empty_lines_are_lines),
        cmocka_unit_test(unfinished_lines_are_bounded),
        cmocka_unit_test(files_of_hosts_that_change),
        cmocka_unit_test(a_worker_that_began_alone),
        cmocka_unit_test(two_workers_of_one_rank),
        cmocka_unit_test(thousands_of_workers_leave_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
