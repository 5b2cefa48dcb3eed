/* SPDX-License-Identifier: Apache-2.0 */
/* A whole agent that gets files: several roots, chunks in a row, and what goes wrong. */
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/fake_driver.h"
#include "base/tree.h"
#include "features/stage/stage.h"

#define KEEPS ((uint64_t)1 << 40)
#define SOME_CHUNKS 11 /* more than may be on the way at once */
#define WIDE (256 << 10)

struct desk {
    struct fake_driver driver;
    char folder[64];
    uint32_t roots;
    struct stage_list list; /* of the newest root, which is one file */
    uint8_t *bytes;         /* of that */
    size_t length;
};

static int open_folder(void **state)
{
    struct desk *desk = mem_alloc(sizeof(*desk));
    snprintf(desk->folder, sizeof(desk->folder), "/tmp/hvdrun-unit-desk-XXXXXX");
    *state = desk;
    return mkdtemp(desk->folder) == NULL ? -1 : 0;
}

static int close_folder(void **state)
{
    struct desk *desk = *state;
    (void)!tree_remove(AT_FDCWD, desk->folder, NULL);
    int result = access(desk->folder, F_OK) < 0 ? 0 : -1;
    stage_list_destroy(&desk->list);
    free(desk->bytes);
    free(desk);
    return result;
}

static void send_stage(struct desk *desk, Hvdrun__Stage *message)
{
    fake_send(&desk->driver, FRAME_STAGE, 0, &message->base);
}

/* The list of a file that nobody has yet. */
static void send_list(struct desk *desk, size_t length)
{
    struct buf text = BUF_INIT(1 << 20);
    struct stage_file file = {.kind = 'f', .name = "file", .size = length, .seconds = 1};
    struct sha256 hash;
    free(desk->bytes);
    desk->bytes = mem_alloc(length);
    desk->length = length;
    for (size_t i = 0; i < length; i++)
        desk->bytes[i] = (uint8_t)(desk->roots + i / 1000 + i);
    sha256_begin(&hash);
    sha256_add(&hash, desk->bytes, length);
    sha256_end(&hash, file.hash);
    assert_int_equal(stage_list_put(&text, &file), 0);
    Hvdrun__Stage message = HVDRUN__STAGE__INIT;
    message.root = desk->roots++;
    message.folder = desk->folder;
    message.keep_bytes = KEEPS;
    message.keep_ms = 1000000;
    message.list = (ProtobufCBinaryData){text.length, (uint8_t *)buf_text(&text)};
    send_stage(desk, &message);
    stage_list_destroy(&desk->list);
    size_t size = text.length;
    assert_int_equal(stage_list_read(buf_take(&text), size, &desk->list, NULL), 0);
}

static void fill_chunk(const struct desk *desk, uint64_t chunk, Hvdrun__Stage *message)
{
    *message = (Hvdrun__Stage)HVDRUN__STAGE__INIT;
    message->root = desk->roots - 1;
    message->chunk = chunk;
    message->bytes = (ProtobufCBinaryData){stage_chunk_size(desk->list.stream, chunk),
                                           desk->bytes + chunk * STAGE_CHUNK};
}

static void send_chunk(struct desk *desk, uint64_t chunk)
{
    Hvdrun__Stage message;
    fill_chunk(desk, chunk, &message);
    send_stage(desk, &message);
}

/* Another program may write the fields in another order. */
static void send_chunk_bytes_first(struct desk *desk, uint64_t chunk)
{
    struct buf body AUTO_BUF = BUF_INIT(1 << 20);
    Hvdrun__Stage message;
    fill_chunk(desk, chunk, &message);
    message.chunk = 0;
    size_t length = hvdrun__stage__get_packed_size(&message);
    hvdrun__stage__pack(&message, buf_reserve(&body, length));
    buf_commit(&body, length);
    buf_putc(&body, 8 << 3);
    buf_putc(&body, (char)chunk);
    link_send(desk->driver.link, FRAME_STAGE, 0, buf_text(&body), body.length);
}

/* What it says next, unless that is only a sign of life. Free it. */
static Hvdrun__Staged *hear(struct desk *desk, uint64_t taken)
{
    for (;;) {
        struct note note = fake_take(&desk->driver, FRAME_STAGED, 0, NO_SEAT);
        Hvdrun__Staged *message = hvdrun__staged__unpack(NULL, note.length, note.body);
        free(note.body);
        assert_non_null(message);
        assert_int_equal(message->root, desk->roots - 1);
        if (message->told || message->over || message->problem[0] != '\0' || message->taken > taken)
            return message;
        hvdrun__staged__free_unpacked(message, NULL);
    }
}

static void hear_told(struct desk *desk, uint64_t chunks)
{
    Hvdrun__Staged *message = hear(desk, UINT64_MAX);
    assert_string_equal(message->problem, "");
    assert_true(message->told);
    assert_int_equal(message->n_lacks, 2);
    assert_int_equal(message->lacks[0], 0);
    assert_int_equal(message->lacks[1], chunks);
    hvdrun__staged__free_unpacked(message, NULL);
}

static void hear_taken(struct desk *desk, uint64_t chunks)
{
    for (uint64_t taken = chunks - 1; taken < chunks;) {
        Hvdrun__Staged *message = hear(desk, taken);
        assert_string_equal(message->problem, "");
        assert_false(message->told || message->over);
        taken = message->taken;
        hvdrun__staged__free_unpacked(message, NULL);
    }
}

/* The copy is there, and has the bytes. */
static void hear_over(struct desk *desk)
{
    Hvdrun__Staged *message = hear(desk, UINT64_MAX);
    struct buf found AUTO_BUF = BUF_INIT((size_t)1 << 30);
    char id[STAGE_ID_ROOM];
    assert_string_equal(message->problem, "");
    assert_true(message->over);
    hvdrun__staged__free_unpacked(message, NULL);
    stage_list_id(&desk->list, id);
    char *pattern AUTO_FREE = mem_printf("%s/hvdrun-stage-*/%s/copy/file", desk->folder, id);
    glob_t paths; /* the name of the store has the number of the user */
    assert_int_equal(glob(pattern, 0, NULL, &paths), 0);
    assert_int_equal(paths.gl_pathc, 1);
    assert_int_equal(fd_read_file(paths.gl_pathv[0], &found, NULL), 0);
    globfree(&paths);
    assert_int_equal(found.length, desk->length);
    assert_memory_equal(buf_text(&found), desk->bytes, desk->length);
}

/* The memory of a chunk serves the next one, in each root; at the end of a root it is freed. */
static void test_two_roots(void **state)
{
    struct desk *desk = *state;
    fake_open(&desk->driver);
    for (int root = 0; root < 2; root++) {
        send_list(desk, SOME_CHUNKS * STAGE_CHUNK - 5);
        hear_told(desk, SOME_CHUNKS);
        for (uint64_t chunk = 0; chunk < SOME_CHUNKS; chunk++) {
            send_chunk(desk, chunk);
            if (chunk == 0 || chunk >= STAGE_WINDOW) /* one at a time, then several */
                hear_taken(desk, chunk + 1);
        }
        hear_over(desk);
    }
    fake_quit(&desk->driver);
}

static void test_bytes_that_are_not_last(void **state)
{
    struct desk *desk = *state;
    fake_open(&desk->driver);
    send_list(desk, 2 * STAGE_CHUNK - 5);
    hear_told(desk, 2);
    send_chunk(desk, 0);
    send_chunk_bytes_first(desk, 1);
    hear_taken(desk, 2);
    hear_over(desk);
    fake_quit(&desk->driver);
}

/* What comes after a write that failed is dropped, and the agent goes on. */
static void test_a_write_that_fails(void **state)
{
    struct desk *desk = *state;
    fake_open(&desk->driver);
    send_list(desk, 4 * STAGE_CHUNK);
    hear_told(desk, 4);
    send_chunk(desk, 0);
    hear_taken(desk, 1);
    desk->bytes[STAGE_CHUNK]++;
    send_chunk(desk, 1);
    for (uint64_t chunk = 2; chunk < 4; chunk++) /* the last one shows it */
        send_chunk(desk, chunk);
    for (int i = 0; i < 3; i++)
        send_chunk(desk, 1);
    Hvdrun__Staged *message = hear(desk, UINT64_MAX);
    assert_non_null(strstr(message->problem, "file changed while it was staged"));
    hvdrun__staged__free_unpacked(message, NULL);
    send_chunk(desk, 1);
    fake_settle(&desk->driver);
    fake_quit(&desk->driver);
}

static void test_quit_in_the_middle(void **state)
{
    struct desk *desk = *state;
    fake_open(&desk->driver);
    send_list(desk, 4 * STAGE_CHUNK);
    hear_told(desk, 4);
    for (uint64_t chunk = 0; chunk < 3; chunk++)
        send_chunk(desk, chunk);
    fake_quit(&desk->driver);
}

static void expect_breach(struct desk *desk, const char *what)
{
    struct note note = fake_take(&desk->driver, FRAME_LOG, 0, NO_SEAT);
    Hvdrun__Log *log = hvdrun__log__unpack(NULL, note.length, note.body);
    if (strstr(log->text, what) == NULL)
        fail_msg("'%s' is not in '%s'", what, log->text);
    hvdrun__log__free_unpacked(log, NULL);
    free(note.body);
    while (!desk->driver.closed)
        run_loop(desk->driver.loop);
    (void)fake_wait(&desk->driver);
    fake_close(&desk->driver);
    desk->roots = 0;
}

static void test_a_driver_that_breaks_the_protocol(void **state)
{
    struct desk *desk = *state;
    Hvdrun__Stage message = HVDRUN__STAGE__INIT;
    fake_open(&desk->driver);
    message.bytes = (ProtobufCBinaryData){1, (uint8_t *)"x"};
    send_stage(desk, &message);
    expect_breach(desk, "STAGE has a chunk that nobody has asked for");
    fake_open(&desk->driver);
    desk->roots = 1;
    send_list(desk, 10);
    expect_breach(desk, "STAGE has a list that is not the next one");
    fake_open(&desk->driver);
    send_list(desk, 10);
    hear_told(desk, 1);
    fill_chunk(desk, 0, &message);
    message.bytes.len--;
    send_stage(desk, &message);
    expect_breach(desk, "STAGE has a chunk of another size");
    fake_open(&desk->driver);
    send_list(desk, 10);
    hear_told(desk, 1);
    fill_chunk(desk, 0, &message);
    message.bytes.len = 0;
    send_stage(desk, &message);
    expect_breach(desk, "STAGE has a chunk of another size");
    fake_open(&desk->driver);
    link_send(desk->driver.link, FRAME_STAGE, 0, "\xff", 1);
    expect_breach(desk, "STAGE cannot be read");
}

/* Only while there is something to come: a user has little room for all his pipes. */
static void test_pipe(void **state)
{
    struct desk *desk = *state;
    int pipe = fake_open_pipes(&desk->driver), usual = fcntl(pipe, F_GETPIPE_SZ);
    bool may = fcntl(pipe, F_SETPIPE_SZ, WIDE) >= 0 && fcntl(pipe, F_SETPIPE_SZ, usual) >= 0;
    for (int root = 0; may && root < 2; root++) {
        assert_int_equal(fcntl(pipe, F_GETPIPE_SZ), usual);
        send_list(desk, 2 * STAGE_CHUNK);
        hear_told(desk, 2);
        assert_int_equal(fcntl(pipe, F_GETPIPE_SZ), WIDE);
        send_chunk(desk, 0);
        send_chunk(desk, 1);
        hear_taken(desk, 2);
        hear_over(desk);
        assert_int_equal(fcntl(pipe, F_GETPIPE_SZ), usual);
    }
    fake_quit(&desk->driver);
    if (!may) {
        print_message("this user may have no wide pipe: not tested\n");
        skip();
    }
}

/* Whatever is in it when the write fails. */
static void test_pipe_after_a_failure(void **state)
{
    struct desk *desk = *state;
    int pipe = fake_open_pipes(&desk->driver), usual = fcntl(pipe, F_GETPIPE_SZ);
    send_list(desk, 9 * STAGE_CHUNK);
    hear_told(desk, 9);
    send_chunk(desk, 1);
    for (int i = 0; i < 4; i++)
        send_chunk(desk, 2);
    Hvdrun__Staged *message = hear(desk, UINT64_MAX);
    assert_string_not_equal(message->problem, "");
    hvdrun__staged__free_unpacked(message, NULL);
    fake_settle(&desk->driver);
    send_chunk(desk, 3); /* what was in the pipe has gone */
    fake_settle(&desk->driver);
    assert_int_equal(fcntl(pipe, F_GETPIPE_SZ), usual);
    fake_quit(&desk->driver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_two_roots, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(test_bytes_that_are_not_last, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(test_a_write_that_fails, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(test_quit_in_the_middle, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(test_a_driver_that_breaks_the_protocol, open_folder,
                                        close_folder),
        cmocka_unit_test_setup_teardown(test_pipe, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(test_pipe_after_a_failure, open_folder, close_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
