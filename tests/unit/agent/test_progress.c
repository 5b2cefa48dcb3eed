/* SPDX-License-Identifier: Apache-2.0 */
/* What workers report about their progress, by file and by HTTP, and what the driver hears of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/agent_fixture.h"
#include "agent/crew_config.h"
#include "agent/progress.h"
#include "agent/room_test.h"
#include "node/runtime_dir.h"
#include "rendezvous/http.h"

#define EPOCH 3

static bool no_randomness;

ssize_t getrandom(void *bytes, size_t length, unsigned flags)
{
    if (!no_randomness)
        return (ssize_t)syscall(SYS_getrandom, bytes, length, flags);
    errno = EAGAIN;
    return -1;
}

struct fixture {
    struct bench bench;
    struct progress_desk *desk;
    struct crew_config config;
    struct crew_progress *files;
    char folder[64];
    int wanted; /* PROGRESS frames; then the loop stops */
};

static void frame(struct bench *bench, uint8_t type)
{
    struct fixture *f = bench->context;
    if (type == FRAME_PROGRESS && --f->wanted == 0)
        loop_stop(bench->loop);
}

static bool has_seat(void *context, uint32_t epoch, uint32_t seat)
{
    (void)context;
    return epoch == EPOCH && seat == 7;
}

static int setup(void **state)
{
    static const uint32_t seats[] = {7, 2};
    struct fixture *f = mem_alloc(sizeof(*f));
    bench_open(&f->bench);
    f->bench.frame = frame;
    f->bench.context = f;
    f->desk = progress_desk_create(f->bench.loop, &f->bench.post, has_seat, f);
    snprintf(f->folder, sizeof(f->folder), "/tmp/hvdrun-unit-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    f->config =
        (struct crew_config){.loop = f->bench.loop, .progress_desk = f->desk, .epoch = EPOCH};
    f->files = crew_progress_create(&f->config, f->folder, seats, 2);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    crew_progress_destroy(f->files);
    progress_desk_destroy(f->desk);
    bench_close(&f->bench);
    runtime_dir_remove(f->folder);
    free(f);
    return 0;
}

static void write_file(const struct fixture *f, const char *name, const char *text)
{
    char *path AUTO_FREE = mem_printf("%s/%s", f->folder, name);
    int fd AUTO_FD = fd_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void rename_over(const struct fixture *f, const char *from, const char *to)
{
    char *old AUTO_FREE = mem_printf("%s/%s", f->folder, from);
    char *path AUTO_FREE = mem_printf("%s/%s", f->folder, to);
    assert_int_equal(rename(old, path), 0);
}

static void run_for_frames(struct fixture *f, int frames)
{
    f->wanted = frames;
    run_loop(f->bench.loop);
}

/* Runs the loop until the driver has heard this about the seat. */
static const Hvdrun__RankProgress *heard(struct fixture *f, uint32_t seat, double percent)
{
    for (int i = 0; i < 50; i++) {
        const Hvdrun__Progress *message = f->bench.heard.progress;
        for (size_t at = 0; message != NULL && at < message->n_workers; at++) {
            const Hvdrun__RankProgress *rank = message->workers[at];
            if (rank->seat == seat && rank->percent >= percent && rank->percent <= percent)
                return rank;
        }
        run_for_frames(f, 1);
    }
    fail_msg("the driver did not hear %g %% of seat %" PRIu32, percent, seat);
    return NULL;
}

static void stop(void *context)
{
    loop_stop(context);
}

/* As long as the files need for more than one look. */
static void look_twice(struct fixture *f)
{
    struct loop_timer *timer = loop_timer_create(f->bench.loop, stop, f->bench.loop);
    loop_timer_set(timer, 2200);
    run_loop(f->bench.loop);
    loop_timer_destroy(timer);
}

static void test_files(void **state)
{
    struct fixture *f = *state;
    write_file(f, "progress.7", "12.5 60 of seat seven\n");
    const Hvdrun__RankProgress *rank = heard(f, 7, 12.5);
    assert_int_equal(rank->epoch, EPOCH);
    assert_true(rank->eta_s >= 60 && rank->eta_s <= 60);
    assert_string_equal(rank->text, "of seat seven");
    write_file(f, "progress.2", "1\n");
    heard(f, 2, 1);
    write_file(f, "draft", "2\n");
    rename_over(f, "draft", "progress.2");
    heard(f, 2, 2);
    write_file(f, "progress.2", "3\n"); /* the same size, at once */
    heard(f, 2, 3);
    write_file(f, "progress.2", "50 without a newline");
    assert_string_equal(heard(f, 2, 50)->text, "without a newline");
    look_twice(f);
    int before = (int)f->bench.heard.types.length;
    look_twice(f);
    assert_int_equal(f->bench.heard.types.length, before); /* what has not changed is not sent */
}

/* None of this is a report, and the report after it arrives. */
static void test_strange_files(void **state)
{
    struct fixture *f = *state;
    char *fifo AUTO_FREE = mem_printf("%s/progress.2", f->folder);
    write_file(f, "progress.1", "1\n"); /* nobody's */
    write_file(f, "progress.", "1\n");
    write_file(f, "progress.99999999999999999999", "1\n");
    write_file(f, "progress.7x", "1\n");
    write_file(f, "progress.token", "1\n");
    assert_int_equal(symlink("/etc/hostname", fifo), 0);
    write_file(f, "progress.7", "rubbish\n");
    look_twice(f);
    assert_int_equal(unlink(fifo), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    int both AUTO_FD = fd_open(fifo, O_RDWR | O_CLOEXEC, 0);
    assert_int_equal(fd_write_all(both, "3\n", 2), 0);
    write_file(f, "progress.7", "");
    look_twice(f);
    assert_null(f->bench.heard.progress);
    write_file(f, "progress.7", "8\n");
    heard(f, 7, 8);
}

/* What a worker wrote last is not lost, however soon it ends. */
static void test_at_the_end(void **state)
{
    struct fixture *f = *state;
    write_file(f, "progress.2", "1\n");
    heard(f, 2, 1);
    write_file(f, "progress.2", "100 done");
    write_file(f, "progress.7", "3\n");
    crew_progress_ended(f->files, 2);
    run_turns(f->bench.loop, 20);
    assert_true(f->bench.heard.progress->workers[0]->percent > 99); /* it did not wait */
    heard(f, 2, 100);
    heard(f, 7, 3); /* the other one was not forgotten */
}

/* A flood of reports is a few frames, and the last report is among them. */
static void test_a_flood(void **state)
{
    struct fixture *f = *state;
    struct progress progress = PROGRESS_INIT;
    f->wanted = -1;
    for (int i = 0; i < 10000; i++) {
        progress_set_percent(&progress, i / 100.0, NULL);
        progress_desk_take(f->desk, EPOCH, (uint32_t)i % 200, i, &progress);
    }
    run_turns(f->bench.loop, 20);
    assert_int_equal(f->bench.heard.progress->n_workers, 1); /* the first, at once */
    int before = (int)f->bench.heard.types.length;
    const Hvdrun__RankProgress *rank = heard(f, 199, 99.99);
    assert_int_equal(rank->when_ns, 9999);
    assert_in_range((int)f->bench.heard.types.length - before, 1, 4); /* 64 reports in each */
}

/* The status endpoint */

static int post(struct fixture *f, const char *key, const char *authorization, const char *body)
{
    struct rendezvous_request request = {.method = RENDEZVOUS_POST,
                                         .scope = STATUS_SCOPE,
                                         .key = key,
                                         .body = body,
                                         .length = body == NULL ? 0 : strlen(body),
                                         .authorization = authorization};
    char *answer AUTO_FREE = NULL;
    int status = progress_desk_post(f->desk, &request, &answer);
    assert_non_null(answer);
    if (status == HTTP_OK)
        assert_string_equal(answer, body);
    else
        assert_non_null(strstr(answer, "\"status\":\"Failure\""));
    return status;
}

/* Soon after the start of the machine: the next crew may have a token. */
static void test_no_randomness_yet(void **state)
{
    struct fixture *f = *state;
    no_randomness = true;
    struct progress_desk *desk = progress_desk_create(f->bench.loop, &f->bench.post, has_seat, f);
    assert_null(progress_desk_write_token(desk, f->folder));
    no_randomness = false;
    char *path AUTO_FREE = progress_desk_write_token(desk, f->folder);
    AUTO_BUF struct buf token = BUF_INIT(100);
    assert_non_null(path);
    assert_int_equal(fd_read_file(path, &token, NULL), 0);
    assert_int_equal(token.length, 32);
    progress_desk_destroy(desk);
}

static void test_endpoint(void **state)
{
    struct fixture *f = *state;
    char *path AUTO_FREE = progress_desk_write_token(f->desk, f->folder);
    assert_non_null(path);
    assert_null(progress_desk_write_token(f->desk, f->folder)); /* never over another file */
    AUTO_BUF struct buf token = BUF_INIT(100);
    struct stat info;
    assert_int_equal(fd_read_file(path, &token, NULL), 0);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    char *right AUTO_FREE = mem_printf("Bearer %s", buf_text(&token));
    char *wrong AUTO_FREE = mem_strdup(right);
    wrong[strlen(wrong) - 1] ^= 1;
    char *longer AUTO_FREE = mem_printf("%s0", right);
    static const char body[] = "{\"trainerStatus\": {\"progressPercentage\": 19, "
                               "\"estimatedRemainingSeconds\": 20, \"metrics\": "
                               "[{\"name\": \"loss\", \"value\": \"0.91\"}]}}";
    assert_int_equal(post(f, "3.7", right, body), 200);
    assert_int_equal(post(f, "3.7", wrong, body), 403);
    assert_int_equal(post(f, "3.7", longer, body), 403);
    assert_int_equal(post(f, "3.7", "Bearer ", body), 403);
    assert_int_equal(post(f, "3.7", NULL, body), 403);
    assert_int_equal(post(f, "3.7", right, "{"), 422);
    assert_int_equal(post(f, "3.7", right, NULL), 422);
    static const char *const keys[] = {"3.8",
                                       "4.7",
                                       "3",
                                       "3.",
                                       ".7",
                                       "3.7.1",
                                       "-3.7",
                                       "x",
                                       "33333333333333333333.7",
                                       "3.77777777777777777777"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        assert_int_equal(post(f, keys[i], right, body), 404);
    const Hvdrun__RankProgress *rank = heard(f, 7, 19);
    assert_int_equal(rank->n_names, 1);
    assert_string_equal(rank->names[0], "loss");
    assert_string_equal(rank->values[0], "0.91");
}

static void test_bodies(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "", "{", "[]", "{}", "{\"trainerStatus\": 5}", "null", "{\"trainerStatus\": {}} x"};
    struct progress progress AUTO_PROGRESS = PROGRESS_INIT;
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(progress_json_parse(wrong[i], strlen(wrong[i]), &progress, &err), -1);
    static const char odd[] = "{\"trainerStatus\": {\"progressPercentage\": 500, "
                              "\"estimatedRemainingSeconds\": \"soon\", \"metrics\": [7, {}, "
                              "{\"name\": 1, \"value\": 2}, {\"name\": \"n\", \"value\": 2.5}, "
                              "{\"name\": \"x\", \"value\": \"inf\"}, "
                              "{\"name\": \"a b\", \"value\": \"1\"}]}}";
    assert_int_equal(progress_json_parse(odd, strlen(odd), &progress, &err), 0);
    assert_true(progress.percent < 0 && progress.eta_s < 0);
    assert_int_equal(progress.metric_count, 2);
    assert_string_equal(progress_metric(&progress, "n"), "2.5");
    assert_string_equal(progress_metric(&progress, "x"), "inf");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strange_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_at_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_flood, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_randomness_yet, setup, teardown),
        cmocka_unit_test_setup_teardown(test_endpoint, setup, teardown),
        cmocka_unit_test(test_bodies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
