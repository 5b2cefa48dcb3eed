/* SPDX-License-Identifier: Apache-2.0 */
/* The whole room with its loop and its thread: pipes, slow and gone readers, full disks, files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "output_fixture.h"
#include "unit.h"

/* ---- lines ---- */

static void labelled_lines(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){0});
    rig_read(&rig);
    say(&rig, 1, OUTPUT_STDOUT, "one\ntw");
    say(&rig, 3, OUTPUT_STDERR, "oops\n");
    say(&rig, 0, OUTPUT_STDOUT, "zero\n");
    say(&rig, 1, OUTPUT_STDOUT, "o\nrest");
    output_end(rig.output, 1, OUTPUT_STDOUT);
    output_message(rig.output, LOG_NOTICE, "job ended");
    output_message(rig.output, LOG_INFO, "not without --verbose");
    output_print(rig.output, "table\nrow");
    flush(&rig);
    assert_int_equal(rig.consumed[1], 12);
    rig_end(&rig);
    expect(&rig,
           "[1]<stdout>:one\n[0]<stdout>:zero\n[1]<stdout>:two\n[1]<stdout>:rest\ntable\nrow\n",
           "[3]<stderr>:oops\nhvdrun: job ended\n");
}

static void options(void **state)
{
    (void)state;
    struct rig rig;
    static const char *const hosts[] = {"a", "a", "b", "b"};
    static const int local_ranks[] = {0, 1, 0, 1};
    rig_start(&rig, (struct output_config){.hosts = hosts,
                                           .local_ranks = local_ranks,
                                           .label = "%h.%l ",
                                           .timestamp = true,
                                           .merge_stderr = true,
                                           .ranks_shown = "0,2-3",
                                           .quiet = true});
    rig_read(&rig);
    say(&rig, 0, OUTPUT_STDOUT, "x\n");
    say(&rig, 1, OUTPUT_STDOUT, "hidden\n");
    say(&rig, 3, OUTPUT_STDERR, "y\n");
    output_message(rig.output, LOG_WARNING, "not with --quiet");
    output_message(rig.output, LOG_ERROR, "but errors");
    flush(&rig);
    assert_int_equal(rig.consumed[1], 7);
    rig_end(&rig);
    expect(&rig, "Sun Nov  1 03:05:59 2026a.0 x\nSun Nov  1 03:05:59 2026b.1 y\n",
           "hvdrun: but errors\n");

    rig_start(&rig, (struct output_config){.color = OUTPUT_COLOR_ALWAYS, .verbose = true});
    rig_read(&rig);
    say(&rig, 0, OUTPUT_STDOUT, "x\n");
    output_message(rig.output, LOG_DEBUG, "details");
    flush(&rig);
    rig_end(&rig);
    expect(&rig, "\033[36m[0]<stdout>:\033[0mx\n", "hvdrun: details\n");
}

static void wrong_options(void **state)
{
    (void)state;
    struct loop *loop = loop_create(NULL);
    const struct output_ops ops = {.consumed = on_consumed, .failed = on_failed};
    const struct output_config wrong[] = {
        {.ranks = 2, .raw_seat = -1, .label = "%x"},
        {.ranks = 2, .raw_seat = -1, .ranks_shown = "0,2"},
        {.ranks = 2, .raw_seat = -1, .files = "log.%q"},
    };
    static const char *const named[] = {"--label", "--ranks", "--output-filename"};
    for (int i = 0; i < 3; i++) {
        struct error err = ERROR_INIT;
        assert_null(output_create(loop, &wrong[i], &ops, NULL, &err));
        assert_non_null(strstr(err.text, named[i]));
        assert_int_equal(err.status, 2);
    }
    loop_destroy(loop);
}

static void without_labels_bytes_stay(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.no_label = true, .ranks = 1});
    rig_read(&rig);
    output_bytes(rig.output, 0, OUTPUT_STDOUT, "a\0b\r\xff\n\r\r\nlast", 13, WALL);
    output_end(rig.output, 0, OUTPUT_STDOUT);
    flush(&rig);
    rig_end(&rig);
    assert_int_equal(rig.readers[0].text.length, 13);
    assert_memory_equal(buf_text(&rig.readers[0].text), "a\0b\r\xff\n\r\r\nlast", 13);
    rig_free(&rig);
}

static void a_partial_line_is_shown(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){0});
    say(&rig, 0, OUTPUT_STDOUT, "Name: ");
    flush(&rig); /* nothing of it by itself */
    struct pollfd pollfd = {.fd = rig.out[0], .events = POLLIN};
    assert_int_equal(poll(&pollfd, 1, 0), 0);
    output_show(rig.output, 0, OUTPUT_STDOUT);
    output_show(rig.output, 3, OUTPUT_STDOUT); /* has said nothing */
    output_show(rig.output, 9, OUTPUT_STDOUT); /* there is none */
    flush(&rig);
    wait_for_text(rig.out[0], "[0]<stdout>:Name: ");
    say(&rig, 1, OUTPUT_STDOUT, "x\n");
    say(&rig, 0, OUTPUT_STDOUT, "Bob\n");
    flush(&rig);
    wait_for_text(rig.out[0], "\n[1]<stdout>:x\n[0]<stdout>:...Bob\n");
    rig_end(&rig);
}

static void collapsed(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.collapse = true});
    rig_read(&rig);
    for (int rank = 0; rank < 4; rank++)
        say(&rig, rank, OUTPUT_STDOUT, rank == 2 ? "same\nother\n" : "same\n");
    say(&rig, 1, OUTPUT_STDERR, "part");
    output_end(rig.output, 1, OUTPUT_STDERR);
    flush(&rig);
    rig_end(&rig);
    expect(&rig, "[0-3]: same\n[2]<stdout>:other\n", "[1]<stderr>:part\n");
}

static void on_a_terminal(void **state)
{
    (void)state;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0)
        skip();
    int side = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(side >= 0);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    struct rig rig;
    rig_start(&rig, (struct output_config){.out_fd = side, .err_fd = side});
    output_progress(rig.output, "2 of 4 ready");
    flush(&rig);
    wait_for_text(terminal, "2 of 4 ready");
    say(&rig, 0, OUTPUT_STDOUT, "5%\r6%\n");
    flush(&rig);
    wait_for_text(terminal, "\r\033[K\033[36m[0]<stdout>:\033[0m5%"
                            "\r\033[K\033[36m[0]<stdout>:\033[0m6%\r\n2 of 4 ready");
    output_progress(rig.output, NULL);
    rig_end(&rig);
    setenv("NO_COLOR", "1", 1);
    rig_start(&rig, (struct output_config){.out_fd = side, .err_fd = side, .raw_seat = 2});
    say(&rig, 1, OUTPUT_STDOUT, "(gdb) ");
    say(&rig, 0, OUTPUT_STDERR, "x\n");
    flush(&rig);
    rig_end(&rig);
    wait_for_text(terminal, "\r\033[K(gdb) \r\r\n[0]<stderr>:x\r\r\n");
    close(side);
    close(terminal);
}

/* ---- back-pressure ---- */

static void a_stalled_reader_holds_the_rest_back(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.ranks = 2});
    size_t chunk_length = 256 * 1024, total = 0;
    char *chunk = malloc(chunk_length);
    AUTO_BUF struct buf wanted = BUF_INIT(1 << 28);
    for (int i = 0; i < 64; i++) {
        int length = 0;
        while ((size_t)length < chunk_length - 32)
            length += snprintf(chunk + length, 32, "%d of %d\n", length, i);
        output_bytes(rig.output, i % 2, OUTPUT_STDOUT, chunk, (size_t)length, WALL);
        total += (size_t)length;
        for (char *line = chunk; line < chunk + length; line = strchr(line, '\n') + 1)
            buf_printf(&wanted, "[%d]<stdout>:%.*s", i % 2, (int)strcspn(line, "\n") + 1, line);
    }
    output_end(rig.output, 0, OUTPUT_STDOUT);
    output_end(rig.output, 1, OUTPUT_STDOUT);
    run_for(&rig, 50);
    size_t consumed = rig.consumed[0] + rig.consumed[1];
    assert_true(consumed > 0 && consumed <= OUTPUT_QUEUE_MAX);
    rig_read(&rig);
    flush(&rig);
    assert_int_equal(rig.consumed[0] + rig.consumed[1], total);
    rig_end(&rig);
    assert_int_equal(rig.readers[0].text.length, wanted.length);
    assert_memory_equal(buf_text(&rig.readers[0].text), buf_text(&wanted), wanted.length);
    free(chunk);
    rig_free(&rig);
}

/* What is shown of a line keeps its place behind a slow reader, and takes no memory there however
 * often it is asked for. */
static void a_part_is_shown_in_its_turn(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.ranks = 2});
    size_t length = 2 * OUTPUT_QUEUE_MAX;
    char *text = malloc(length);
    memset(text, 'x', length);
    for (size_t i = 4095; i < length; i += 4096)
        text[i] = '\n';
    output_bytes(rig.output, 1, OUTPUT_STDOUT, text, length, WALL);
    say(&rig, 0, OUTPUT_STDOUT, "Name: ");
    struct mallinfo2 before = mallinfo2();
    for (int i = 0; i < 10000; i++)
        output_show(rig.output, 0, OUTPUT_STDOUT);
    assert_true(mallinfo2().uordblks < before.uordblks + 10000);
    say(&rig, 1, OUTPUT_STDOUT, "between\n");
    say(&rig, 0, OUTPUT_STDOUT, "Bob\n");
    rig_read(&rig);
    flush(&rig);
    rig_end(&rig);
    const char *end = "[0]<stdout>:Name: \n[1]<stdout>:between\n[0]<stdout>:...Bob\n";
    const struct buf *got = &rig.readers[0].text;
    assert_int_equal(got->length, length + length / 4096 * strlen("[1]<stdout>:") + strlen(end));
    assert_string_equal(buf_text(got) + got->length - strlen(end), end);
    free(text);
    rig_free(&rig);
}

/* Without the loop's timers: what is held comes out because it is too much. */
static void unfinished_lines_of_many_ranks_are_bounded(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.ranks = 320});
    size_t length = 60000;
    char *line = malloc(length);
    memset(line, 'x', length);
    struct pollfd pollfd = {.fd = rig.out[0], .events = POLLIN};
    for (int rank = 0; rank < 270; rank++) /* 15.4 MiB */
        output_bytes(rig.output, rank, OUTPUT_STDOUT, line, length, WALL);
    assert_int_equal(poll(&pollfd, 1, 20), 0);
    for (int rank = 270; rank < 320; rank++)
        output_bytes(rig.output, rank, OUTPUT_STDOUT, line, length, WALL);
    assert_int_equal(poll(&pollfd, 1, LIMIT_MS), 1);
    free(line);
    rig_read(&rig);
    rig_end(&rig);
    size_t count = 0;
    for (size_t i = 0; i < rig.readers[0].text.length; i++)
        count += buf_text(&rig.readers[0].text)[i] == 'x';
    assert_int_equal(count, 320 * length);
    rig_free(&rig);
}

static int threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    int count = -2; /* . and .. */
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static void destroy_does_not_hang(void **state)
{
    (void)state;
    int before = threads();
    struct rig rig;
    rig_start(&rig, (struct output_config){.ranks = 1, .no_label = true});
    char *large = calloc(1, 1 << 20);
    output_bytes(rig.output, 0, OUTPUT_STDOUT, large, 1 << 20, WALL);
    free(large);
    run_for(&rig, 50);
    assert_false(output_destroy(rig.output, 50));
    fd_close(&rig.out[0]); /* lets the thread go, which then frees all by itself */
    for (int64_t until = unit_limit_ms(LIMIT_MS); threads() > before;) {
        assert_true(!unit_is_over(until));
        poll(NULL, 0, 5);
    }
    loop_timer_destroy(rig.timer);
    loop_destroy(rig.loop);
    /* rig.out[1] stays open: whoever gives up on the thread leaves it its descriptors */
    fd_close(&rig.err[0]);
    fd_close(&rig.err[1]);
}

static void flushes_come_in_order_and_only_when_written(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.ranks = 1});
    flush(&rig); /* nothing to write is written at once */
    char *large = malloc(1 << 20);
    memset(large, '\n', 1 << 20);
    output_bytes(rig.output, 0, OUTPUT_STDOUT, large, 1 << 20, WALL);
    free(large);
    output_flush(rig.output, on_flushed, &rig);
    run_for(&rig, 50);
    assert_true(rig.timed_out);
    assert_int_equal(rig.flushed, 1);
    rig_read(&rig);
    run_for(&rig, LIMIT_MS);
    assert_int_equal(rig.flushed, 2);
    assert_int_equal(rig.consumed[0], 1 << 20);
    rig_end(&rig);
    assert_int_equal(rig.readers[0].text.length, (size_t)13 << 20);
    rig_free(&rig);
}

/* ---- failures ---- */

static void a_reader_that_has_gone(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){0});
    fd_close(&rig.out[0]);
    say(&rig, 0, OUTPUT_STDOUT, "x\n");
    say(&rig, 0, OUTPUT_STDERR, "y\n");
    flush(&rig);
    say(&rig, 0, OUTPUT_STDOUT, "x\n");
    flush(&rig);
    assert_int_equal(rig.failures, 1);
    assert_int_equal(rig.failed_stream, OUTPUT_STDOUT);
    assert_int_equal(rig.failed_errnum, EPIPE);
    assert_non_null(strstr(rig.failed_text, "standard output: Broken pipe"));
    wait_for_text(rig.err[0], "[0]<stderr>:y\n");
    rig_end(&rig);
}

static void somebody_elses_nonblock(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.ranks = 1, .no_label = true});
    fd_nonblock(rig.out[1]);
    char *large = malloc(1 << 20);
    memset(large, 'x', 1 << 20);
    large[(1 << 20) - 1] = '\n';
    output_bytes(rig.output, 0, OUTPUT_STDOUT, large, 1 << 20, WALL);
    free(large);
    run_for(&rig, 20);
    rig_read(&rig);
    flush(&rig);
    assert_int_equal(rig.failures, 0);
    assert_true((fcntl(rig.out[1], F_GETFL) & O_NONBLOCK) != 0); /* left as it was */
    assert_true((fcntl(rig.err[1], F_GETFL) & O_NONBLOCK) == 0);
    rig_end(&rig);
    assert_int_equal(rig.readers[0].text.length, 1 << 20);
    rig_free(&rig);
}

static void a_full_disk_is_said_once(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){0});
    rig_read(&rig);
    struct output_file *file = output_file_open(rig.output, "/dev/full", true);
    for (int i = 0; i < 3; i++) {
        output_file_write(file, "x", 1);
        say(&rig, 0, OUTPUT_STDOUT, "console\n");
        flush(&rig);
    }
    output_file_close(file);
    flush(&rig);
    rig_end(&rig);
    expect(&rig, "[0]<stdout>:console\n[0]<stdout>:console\n[0]<stdout>:console\n",
           "hvdrun: cannot write '/dev/full': No space left on device; the job goes on, and files "
           "that hvdrun "
           "cannot write stay "
           "incomplete\n");
}

/* ---- files ---- */

static void write_files(const char *where, bool merge)
{
    char text[256];
    snprintf(text, sizeof(text), "%s/%s", folder, where);
    struct rig rig;
    rig_start(&rig, (struct output_config){
                        .files = text, .merge_stderr = merge, .ranks = 11, .ranks_shown = "1"});
    rig_read(&rig);
    say(&rig, 3, OUTPUT_STDOUT, "1%\r2%");
    say(&rig, 3, OUTPUT_STDERR, "error\n");
    say(&rig, 3, OUTPUT_STDOUT, "\nend");
    for (int rank = 0; rank < 11; rank++) {
        output_end(rig.output, rank, OUTPUT_STDOUT);
        output_end(rig.output, rank, OUTPUT_STDERR);
        output_end(rig.output, rank, OUTPUT_STDERR);
    }
    flush(&rig);
    rig_end(&rig);
    expect(&rig, "", "");
}

static void a_folder_of_files(void **state)
{
    (void)state;
    write_files("dir", false);
    expect_file("dir/rank.03/stdout", "1%\r2%\nend");
    expect_file("dir/rank.03/stderr", "error\n");
    expect_file("dir/rank.10/stderr", "");
    write_files("merged", true);
    expect_file("merged/rank.03/stdout", "1%\r\nerror\n2%\nend");
    expect_file("merged/rank.00/stdout", "");
}

static void files_by_pattern(void **state)
{
    (void)state;
    write_files("by.%r.%s", false);
    expect_file("by.3.stdout", "1%\r2%\nend");
    write_files("deep/all.%s", false);
    expect_file("deep/all.stdout", "1%\r2%\nend");
    expect_file("deep/all.stderr", "error\n");
}

static void files_of_other_rooms(void **state)
{
    (void)state;
    char path[256];
    snprintf(path, sizeof(path), "%s/events", folder);
    struct rig rig;
    for (int i = 0; i < 2; i++) {
        rig_start(&rig, (struct output_config){0});
        struct output_file *file = output_file_open(rig.output, path, i == 1);
        output_file_write(file, "event\n", 6);
        if (i == 0)
            output_file_close(file); /* the second one is closed by destroy */
        rig_end(&rig);
    }
    output_file_close(NULL);
    expect_file("events", "event\nevent\n");
}

/* Removing a file comes after all that was written into it, also into a new one of its name. */
static void files_that_are_removed(void **state)
{
    (void)state;
    char path[256];
    snprintf(path, sizeof(path), "%s/removed", folder);
    struct rig rig;
    for (int again = 0; again < 2; again++) {
        rig_start(&rig, (struct output_config){0});
        struct output_file *file = output_file_open(rig.output, path, false);
        output_file_write(file, "old\n", 4);
        output_file_remove(file);
        if (again == 1)
            output_file_write(output_file_open(rig.output, path, true), "new\n", 4);
        rig_end(&rig);
        assert_int_equal(access(path, F_OK), again == 1 ? 0 : -1);
    }
    output_file_remove(NULL);
    expect_file("removed", "new\n");
}

/* ---- more ---- */

static void ranks_that_there_are_not(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){0});
    rig_read(&rig);
    static const int ranks[] = {-1, -100, 4, 1000000};
    for (int i = 0; i < 4; i++) {
        say(&rig, ranks[i], OUTPUT_STDOUT, "x\n");
        output_show(rig.output, ranks[i], OUTPUT_STDOUT);
        output_end(rig.output, ranks[i], OUTPUT_STDERR);
    }
    flush(&rig);
    rig_end(&rig);
    expect(&rig, "", "");
}

static void two_pipes_are_two_places(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){0});
    rig_read(&rig);
    say(&rig, 0, OUTPUT_STDOUT, "part");
    output_show(rig.output, 0, OUTPUT_STDOUT);
    say(&rig, 1, OUTPUT_STDERR, "other\n");
    say(&rig, 0, OUTPUT_STDOUT, " and rest\n");
    flush(&rig);
    rig_end(&rig);
    expect(&rig, "[0]<stdout>:part and rest\n", "[1]<stderr>:other\n");
}

static void parts_of_two_ranks_stay_apart(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.merge_stderr = true});
    rig_read(&rig);
    static const struct {
        int rank;
        enum output_stream stream;
        const char *text;
    } parts[] = {{0, OUTPUT_STDOUT, "a"},
                 {1, OUTPUT_STDOUT, "b"},
                 {0, OUTPUT_STDOUT, "c"},
                 {0, OUTPUT_STDERR, "d"},
                 {1, OUTPUT_STDOUT, "e"}};
    for (int i = 0; i < 5; i++) {
        say(&rig, parts[i].rank, parts[i].stream, parts[i].text);
        output_show(rig.output, parts[i].rank, parts[i].stream);
    }
    flush(&rig);
    rig_end(&rig);
    expect(&rig,
           "[0]<stdout>:a\n[1]<stdout>:b\n[0]<stdout>:...c\n[0]<stderr>:d\n[1]<stdout>:...e\n", "");
}

struct order {
    struct rig *rig;
    char *text;
    char letter;
};

static void note_flush(void *context)
{
    struct order *order = context;
    size_t length = strlen(order->text);
    order->text[length] = order->letter;
    order->text[length + 1] = '\0';
    if (order->letter == 'c')
        loop_stop(order->rig->loop);
}

static void several_flushes_at_once(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){0});
    rig_read(&rig);
    char text[8] = "";
    struct order orders[] = {{&rig, text, 'a'}, {&rig, text, 'b'}, {&rig, text, 'c'}};
    for (int i = 0; i < 3; i++) {
        say(&rig, i, OUTPUT_STDOUT, "x\n");
        output_flush(rig.output, note_flush, &orders[i]);
    }
    run_for(&rig, LIMIT_MS);
    assert_false(rig.timed_out);
    assert_string_equal(text, "abc");
    rig_end(&rig);
    expect(&rig, "[0]<stdout>:x\n[1]<stdout>:x\n[2]<stdout>:x\n", "");
}

static void several_files_of_other_rooms(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){0});
    struct output_file *files[3];
    for (int i = 0; i < 3; i++) {
        char path[256];
        snprintf(path, sizeof(path), "%s/several.%d", folder, i);
        files[i] = output_file_open(rig.output, path, false);
        if (i < 2)
            output_file_write(files[i], i == 0 ? "0\n" : "1\n", 2);
    }
    output_file_close(files[0]);
    output_file_close(files[2]);
    output_file_write(files[1], "more\n", 5);
    rig_end(&rig);
    expect_file("several.0", "0\n");
    expect_file("several.1", "1\nmore\n");
    expect_file("several.2", "");
}

static void collapsed_lines_have_the_time(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.collapse = true, .timestamp = true});
    rig_read(&rig);
    for (int rank = 0; rank < 4; rank++)
        say(&rig, rank, OUTPUT_STDOUT, "same\n");
    say(&rig, 1, OUTPUT_STDOUT, "own\n");
    flush(&rig);
    rig_end(&rig);
    expect(&rig, "Sun Nov  1 03:05:59 2026[0-3]: same\nSun Nov  1 03:05:59 2026[1]<stdout>:own\n",
           "");
}

/* Credit comes back for each byte that had to wait, also when it came alone. */
static void single_bytes_behind_a_slow_reader(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.ranks = 2, .no_label = true});
    size_t length = 2 * OUTPUT_QUEUE_MAX;
    char *text = calloc(1, length);
    memset(text, '\n', length);
    output_bytes(rig.output, 1, OUTPUT_STDOUT, text, length, WALL);
    for (int i = 0; i < 100; i++)
        say(&rig, 0, OUTPUT_STDOUT, "\n");
    assert_int_equal(rig.consumed[0], 0);
    rig_read(&rig);
    flush(&rig);
    assert_int_equal(rig.consumed[0], 100);
    assert_int_equal(rig.consumed[1], length);
    rig_end(&rig);
    assert_int_equal(rig.readers[0].text.length, length + 100);
    free(text);
    rig_free(&rig);
}

static void each_line_has_its_own_time(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.label = "%t|"});
    rig_read(&rig);
    for (int i = 0; i < 2; i++)
        output_bytes(rig.output, 0, OUTPUT_STDOUT, "x\n", 2, WALL + i * INT64_C(1000000000));
    flush(&rig);
    rig_end(&rig);
    expect(&rig, "2026-11-01 03:05:59.000|x\n2026-11-01 03:06:00.000|x\n", "");
}

static void many_ranks_say_the_same(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.collapse = true, .ranks = 131});
    rig_read(&rig);
    for (int rank = 0; rank < 131; rank++)
        say(&rig, rank, OUTPUT_STDOUT, rank == 64 ? "other\n" : "same\n");
    flush(&rig);
    rig_end(&rig);
    expect(&rig, "[0-63,65-130]: same\n[64]<stdout>:other\n", "");
}

/* The shell's prompt begins on a line of its own. */
static void a_part_is_ended_at_the_end(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){0});
    rig_read(&rig);
    say(&rig, 0, OUTPUT_STDOUT, "Name: ");
    output_show(rig.output, 0, OUTPUT_STDOUT);
    say(&rig, 1, OUTPUT_STDERR, "Key: ");
    output_show(rig.output, 1, OUTPUT_STDERR);
    flush(&rig);
    rig_end(&rig);
    expect(&rig, "[0]<stdout>:Name: \n", "[1]<stderr>:Key: \n");
}

/* Runs the loop, and nothing else, until the text is there. */
static void comes_on_its_own(struct rig *rig, int fd, const char *text)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};
    for (int i = 0; i < LIMIT_MS / 20 && poll(&pollfd, 1, 0) == 0; i++)
        run_for(rig, 20);
    wait_for_text(fd, text);
}

static void everything_comes_without_a_flush(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.collapse = true});
    output_message(rig.output, LOG_NOTICE, "a word");
    comes_on_its_own(&rig, rig.err[0], "hvdrun: a word\n");
    output_print(rig.output, "a table\n");
    comes_on_its_own(&rig, rig.out[0], "a table\n");
    say(&rig, 1, OUTPUT_STDOUT, "waits for its equals\n");
    comes_on_its_own(&rig, rig.out[0], "[1]<stdout>:waits for its equals\n");
    say(&rig, 2, OUTPUT_STDERR, "part");
    output_show(rig.output, 2, OUTPUT_STDERR);
    comes_on_its_own(&rig, rig.err[0], "[2]<stderr>:part");
    output_end(rig.output, 2, OUTPUT_STDERR);
    comes_on_its_own(&rig, rig.err[0], "\n");
    rig_end(&rig);
}

/* The end of a stream keeps its place behind a slow reader: the last line comes then, not later. */
static void an_end_comes_in_its_turn(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.ranks = 2});
    size_t length = 2 * OUTPUT_QUEUE_MAX;
    char *text = malloc(length);
    memset(text, 'x', length);
    for (size_t i = 4095; i < length; i += 4096)
        text[i] = '\n';
    output_bytes(rig.output, 1, OUTPUT_STDOUT, text, length, WALL);
    say(&rig, 0, OUTPUT_STDOUT, "no newline");
    output_end(rig.output, 0, OUTPUT_STDOUT);
    say(&rig, 1, OUTPUT_STDOUT, "later\n");
    rig_read(&rig);
    flush(&rig);
    rig_end(&rig);
    const char *end = "[0]<stdout>:no newline\n[1]<stdout>:later\n";
    const struct buf *got = &rig.readers[0].text;
    assert_string_equal(buf_text(got) + got->length - strlen(end), end);
    free(text);
    rig_free(&rig);
}

/* One unfinished line that grows byte by byte counts once, however often bytes are added. */
static void a_line_that_grows_slowly_is_not_shown(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (struct output_config){.ranks = 1});
    char part[5000];
    memset(part, 'x', sizeof(part));
    output_bytes(rig.output, 0, OUTPUT_STDOUT, part, sizeof(part), WALL);
    for (int i = 0; i < 8000; i++)
        output_bytes(rig.output, 0, OUTPUT_STDOUT, "y", 1, WALL);
    run_for(&rig, 20);
    struct pollfd pollfd = {.fd = rig.out[0], .events = POLLIN};
    assert_int_equal(poll(&pollfd, 1, 0), 0);
    rig_read(&rig);
    rig_end(&rig);
    assert_int_equal(rig.readers[0].text.length, strlen("[0]<stdout>:") + 13000 + 1);
    rig_free(&rig);
}

/* Nobody has to ask for it. */
static void a_file_is_written_soon(void **state)
{
    (void)state;
    struct rig rig;
    char path[256], text[16] = "";
    snprintf(path, sizeof(path), "%s/soon", folder);
    rig_start(&rig, (struct output_config){.ranks = 1});
    struct output_file *file = output_file_open(rig.output, path, false);
    output_file_write(file, "event\n", 6);
    int fd = -1;
    for (int waited = 0; waited < LIMIT_MS && strcmp(text, "event\n") != 0; waited += 5) {
        run_for(&rig, 5);
        if (fd < 0)
            fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
            (void)!pread(fd, text, sizeof(text) - 1, 0);
    }
    assert_string_equal(text, "event\n");
    fd_close(&fd);
    output_file_close(file);
    rig_end(&rig);
}

int main(void)
{
    setenv("TZ", "UTC", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labelled_lines),
        cmocka_unit_test(options),
        cmocka_unit_test(wrong_options),
        cmocka_unit_test(without_labels_bytes_stay),
        cmocka_unit_test(a_partial_line_is_shown),
        cmocka_unit_test(collapsed),
        cmocka_unit_test(on_a_terminal),
        cmocka_unit_test(a_stalled_reader_holds_the_rest_back),
        cmocka_unit_test(a_part_is_shown_in_its_turn),
        cmocka_unit_test(unfinished_lines_of_many_ranks_are_bounded),
        cmocka_unit_test(destroy_does_not_hang),
        cmocka_unit_test(flushes_come_in_order_and_only_when_written),
        cmocka_unit_test(a_reader_that_has_gone),
        cmocka_unit_test(somebody_elses_nonblock),
        cmocka_unit_test(a_full_disk_is_said_once),
        cmocka_unit_test(a_folder_of_files),
        cmocka_unit_test(files_by_pattern),
        cmocka_unit_test(files_of_other_rooms),
        cmocka_unit_test(files_that_are_removed),
        cmocka_unit_test(ranks_that_there_are_not),
        cmocka_unit_test(two_pipes_are_two_places),
        cmocka_unit_test(parts_of_two_ranks_stay_apart),
        cmocka_unit_test(several_flushes_at_once),
        cmocka_unit_test(several_files_of_other_rooms),
        cmocka_unit_test(collapsed_lines_have_the_time),
        cmocka_unit_test(single_bytes_behind_a_slow_reader),
        cmocka_unit_test(each_line_has_its_own_time),
        cmocka_unit_test(many_ranks_say_the_same),
        cmocka_unit_test(a_part_is_ended_at_the_end),
        cmocka_unit_test(everything_comes_without_a_flush),
        cmocka_unit_test(an_end_comes_in_its_turn),
        cmocka_unit_test(a_file_is_written_soon),
        cmocka_unit_test(a_line_that_grows_slowly_is_not_shown),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
