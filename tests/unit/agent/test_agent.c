/* SPDX-License-Identifier: Apache-2.0 */
/* A whole agent through several epochs: workers that go on while others join, and restarts. */
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "agent/fake_driver.h"
#include "node/runtime_dir.h"
#include "unit.h"

/* Ends well at TERM; says something, and that it is there. */
#define STAYS_AND(says) "trap 'exit 0' TERM; " says " echo up; while :; do sleep 0.05; done"
#define STAYS STAYS_AND("")

static size_t descriptors_now(pid_t pid)
{
    char path[64];
    size_t count = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

/* Once the agent has nothing to do: it still removes folders after it has said that all is over. */
static size_t descriptors_of(pid_t pid)
{
    size_t count = descriptors_now(pid);
    for (int same = 0; same < 5; same++) {
        usleep(10 * 1000);
        size_t now = descriptors_now(pid);
        if (now != count)
            same = -1;
        count = now;
    }
    return count;
}

static long resident_kb(pid_t pid)
{
    AUTO_BUF struct buf text = BUF_INIT(65536);
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    assert_int_equal(fd_read_file(path, &text, NULL), 0);
    const char *line = strstr(buf_text(&text), "VmRSS:");
    assert_non_null(line);
    return strtol(line + 6, NULL, 10);
}

static bool exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

/* Waits for what other processes do; the time is no part of what is tested. */
static void wait_until_gone(const char *path)
{
    for (int i = 0; i < RUN_LIMIT_MS / 10 && exists(path); i++)
        usleep(10000);
    assert_false(exists(path));
}

/* What a worker has written after `key`, up to the end of the line; the caller's. */
static char *said(const struct fake_driver *driver, const char *key)
{
    const char *at = strstr(buf_text(&driver->output), key);
    if (at == NULL)
        fail_msg("no %s in %s", key, buf_text(&driver->output));
    at += strlen(key);
    return mem_strndup(at, strcspn(at, "\n"));
}

/* A hundred epochs, each all anew: nothing is left of any of them. */
static void test_restart(void **state)
{
    (void)state;
    enum { ROUNDS = 100, WARM = 20 };
    struct fake_driver driver;
    struct crew_plan plan = {
        .script = "echo \"$HVDRUN_EPOCH $RANK of $WORLD_SIZE, $TORCHELASTIC_RESTART_COUNT\"; "
                  "test $RANK = 0 || exec sleep 60",
        .seats = {{0, 0, 0, 0}, {1, 1, 1, 1}},
        .count = 2,
        .held_ports = true};
    size_t descriptors = 0;
    long resident = 0;
    fake_open(&driver);
    for (uint32_t epoch = 1; epoch <= ROUNDS; epoch++) {
        plan.restart_count = epoch - 1;
        buf_clear(&driver.output);
        fake_run(&driver, epoch, &plan);
        assert_int_equal(fake_exit(&driver, epoch, 0), 0);
        fake_expect(&driver, FRAME_FINISHED, epoch, 0);
        char line[64];
        snprintf(line, sizeof(line), "%u.1:%u 1 of 2, %u\n", epoch, epoch, epoch - 1);
        fake_read(&driver, line);
        fake_end(&driver, epoch, SIGTERM);
        assert_int_equal(fake_exit(&driver, epoch, 1), 128 + SIGTERM);
        fake_expect(&driver, FRAME_FINISHED, epoch, 1);
        if (epoch == WARM) {
            descriptors = descriptors_of(driver.agent);
            resident = resident_kb(driver.agent);
        }
    }
    assert_int_equal(descriptors_of(driver.agent), descriptors);
#ifndef __SANITIZE_ADDRESS__
    assert_in_range(resident_kb(driver.agent), 0, resident + 512);
#else
    (void)resident;
#endif
    fake_quit(&driver);
}

/* PMIx stays in the process, with one namespace after the other. */
static void test_restart_with_pmix(void **state)
{
    (void)state;
    enum { ROUNDS = 30, WARM = 10 };
    struct fake_driver driver;
    const struct crew_plan plan = {.script = "echo \"namespace $PMIX_NAMESPACE\"",
                                   .mpi = "pmix",
                                   .seats = {{0, 0, 0, 0}, {1, 1, 1, 1}},
                                   .count = 2};
    if (!exists(HVDRUN_MODULES "/hvdrun-pmix.so"))
        skip();
    size_t descriptors = 0;
    fake_open(&driver);
    for (uint32_t epoch = 1; epoch <= ROUNDS; epoch++) {
        char line[64];
        buf_clear(&driver.output);
        fake_run(&driver, epoch, &plan);
        snprintf(line, sizeof(line), "%u.1:namespace job@%u\n", epoch, epoch);
        fake_read(&driver, line);
        assert_int_equal(fake_exit(&driver, epoch, 0), 0);
        assert_int_equal(fake_exit(&driver, epoch, 1), 0);
        fake_end(&driver, epoch, SIGTERM);
        if (epoch == WARM)
            descriptors = descriptors_of(driver.agent);
    }
    assert_int_equal(descriptors_of(driver.agent), descriptors);
    fake_quit(&driver);
}

/* Workers of three epochs side by side; what is over goes. */
static void test_rejoin(void **state)
{
    (void)state;
    struct fake_driver driver;
    const struct crew_plan first = {.script = STAYS_AND("echo \"file=$HVDRUN_DEADLINE_FILE\";"),
                                    .seats = {{0, 0, 0, 0}, {1, 1, 1, 1}},
                                    .count = 2};
    /* Its rank is that of a worker that runs, which has another one by now: seats tell them apart.
     */
    const struct crew_plan second = {
        .script = STAYS_AND("echo \"file=$HVDRUN_DEADLINE_FILE\";"
                            "echo \"$RANK $LOCAL_RANK $HVDRUN_SLOT $LOCAL_WORLD_SIZE\";"),
        .seats = {{7, 0, 0, 2}},
        .count = 1,
        .size = 2};
    const struct crew_plan third = {
        .script = STAYS, .seats = {{1, 1, 1, 1}}, .count = 1, .size = 2};
    unit_clock_stop(0, INT64_C(1700000000000000000)); /* the agent's */
    fake_open(&driver);
    unit_clock_run();
    fake_run(&driver, 1, &first);
    fake_read(&driver, "1.0:file=");
    fake_read(&driver, "1.1:file=");
    fake_end_worker(&driver, 1, 1, SIGTERM, 10000);
    assert_int_equal(fake_exit(&driver, 1, 1), 0);
    fake_expect(&driver, FRAME_FINISHED, 1, 1);

    fake_run(&driver, 2, &second);
    fake_expect(&driver, FRAME_STARTED, 2, 7);
    fake_read(&driver, "0 0 2 2\n");
    char *old = said(&driver, "1.0:file=");
    char *new = said(&driver, "2.7:file=");
    assert_string_not_equal(old, new);
    char *old_folder = mem_strndup(old, strlen(old) - strlen("/deadline"));
    assert_true(exists(old_folder));
    assert_false(exists(old));

    Hvdrun__Deadline deadline = HVDRUN__DEADLINE__INIT;
    deadline.within_ms = 3600000;
    deadline.why = (char *)"spot\nnotice";
    fake_send(&driver, FRAME_DEADLINE, 2, &deadline.base);
    fake_settle(&driver);
    const char *const files[] = {old, new};
    for (size_t i = 0; i < 2; i++) {
        AUTO_BUF struct buf text = BUF_INIT(4096);
        assert_int_equal(fd_read_file(files[i], &text, NULL), 0);
        assert_string_equal(buf_text(&text), "1700003600.000 spot notice\n");
    }

    deadline.none = true; /* taken back */
    fake_send(&driver, FRAME_DEADLINE, 2, &deadline.base);
    fake_settle(&driver);
    assert_false(exists(old));
    assert_false(exists(new));
    deadline.none = false;
    fake_send(&driver, FRAME_DEADLINE, 2, &deadline.base);
    fake_settle(&driver);

    /* the last of the first epoch: seat 0 */
    fake_end_worker(&driver, 1, 0, SIGTERM, 10000);
    assert_int_equal(fake_exit(&driver, 1, 0), 0);
    fake_expect(&driver, FRAME_FINISHED, 1, 0);
    wait_until_gone(old_folder);
    fake_settle(&driver);
    assert_true(exists(new));

    fake_run(&driver, 3, &third);
    fake_read(&driver, "3.1:up");
    fake_end(&driver, 3, SIGTERM);
    assert_int_equal(fake_exit(&driver, 2, 7), 0);
    assert_int_equal(fake_exit(&driver, 3, 1), 0);
    free(old);
    free(new);
    free(old_folder);
    fake_quit(&driver);
}

/* The last worker of one epoch ends while the next one is prepared and not started. */
static void test_a_prepared_crew_keeps_its_folder(void **state)
{
    (void)state;
    struct fake_driver driver;
    const struct crew_plan plan = {
        .script = STAYS_AND("test -d \"${HVDRUN_DEADLINE_FILE%/*}\" && echo kept || echo gone;"),
        .seats = {{0, 0, 0, 0}},
        .count = 1};
    fake_open(&driver);
    fake_run(&driver, 1, &plan);
    fake_read(&driver, "1.0:kept\n");
    fake_prepare(&driver, 2, &plan);
    fake_end_worker(&driver, 1, 0, SIGTERM, 10000);
    assert_int_equal(fake_exit(&driver, 1, 0), 0);
    fake_expect(&driver, FRAME_FINISHED, 1, 0);
    fake_settle(&driver);
    fake_start(&driver, 2);
    fake_read(&driver, "2.0:kept\n");
    fake_end(&driver, 2, SIGTERM);
    assert_int_equal(fake_exit(&driver, 2, 0), 0);
    fake_quit(&driver);
}

/* The agent makes it while the driver reads HELLO: the first crew has no other one. */
static void test_the_first_folder_is_made_ahead(void **state)
{
    (void)state;
    const struct crew_plan plan = {
        .script = "echo in \"${HVDRUN_DEADLINE_FILE%/*}\"", .seats = {{0, 0, 0, 0}}, .count = 1};
    char *base = runtime_dir_base();
    for (int crews = 0; crews < 2; crews++) {
        struct fake_driver driver;
        fake_open(&driver);
        fake_settle(&driver);
        char *folder = mem_printf("%s/%d.0", base, (int)driver.agent);
        assert_true(exists(folder));
        if (crews > 0) {
            fake_run(&driver, 1, &plan);
            assert_int_equal(fake_exit(&driver, 1, 0), 0);
            char *used = said(&driver, "in ");
            assert_string_equal(used, folder);
            free(used);
            fake_end(&driver, 1, SIGTERM);
        }
        fake_quit(&driver);
        assert_false(exists(folder));
        free(folder);
    }
    free(base);
}

/* Somebody cleans /tmp while the agent waits for its first crew. */
static void test_a_first_folder_that_is_gone(void **state)
{
    (void)state;
    const struct crew_plan plan = {
        .script = "test -d \"${HVDRUN_DEADLINE_FILE%/*}\" && echo there || echo gone",
        .seats = {{0, 0, 0, 0}},
        .count = 1};
    struct fake_driver driver;
    char *base AUTO_FREE = runtime_dir_base();
    fake_open(&driver);
    fake_settle(&driver);
    char *folder AUTO_FREE = mem_printf("%s/%d.0", base, (int)driver.agent);
    assert_true(exists(folder));
    runtime_dir_remove(folder);
    fake_run(&driver, 1, &plan);
    fake_read(&driver, "1.0:there\n");
    assert_int_equal(fake_exit(&driver, 1, 0), 0);
    fake_end(&driver, 1, SIGTERM);
    fake_quit(&driver);
    assert_false(exists(folder));
}

/* A deadline that is known before the workers are. */
static void test_deadline_before_workers(void **state)
{
    (void)state;
    struct fake_driver driver;
    const struct crew_plan plan = {
        .script = "cat $HVDRUN_DEADLINE_FILE", .seats = {{0, 0, 0, 0}}, .count = 1};
    Hvdrun__Deadline deadline = HVDRUN__DEADLINE__INIT;
    deadline.within_ms = UINT64_MAX;
    deadline.why = (char *)"drained";
    fake_open(&driver);
    fake_send(&driver, FRAME_DEADLINE, 0, &deadline.base);
    fake_run(&driver, 1, &plan);
    fake_read(&driver, " drained\n");
    fake_end(&driver, 1, SIGTERM);
    fake_quit(&driver);
}

static void test_cancel(void **state)
{
    (void)state;
    struct fake_driver driver;
    const struct crew_plan plan = {.script = STAYS, .seats = {{0, 0, 0, 0}}, .count = 1};
    const struct crew_plan joins = {
        .script = STAYS, .seats = {{5, 1, 1, 1}}, .count = 1, .size = 2};
    Hvdrun__Start start = HVDRUN__START__INIT;
    start.master_addr = (char *)"127.0.0.1";
    fake_open(&driver);
    fake_run(&driver, 1, &plan);
    fake_read(&driver, "1.0:up");
    fake_prepare(&driver, 2, &joins);
    fake_expect(&driver, FRAME_READY, 2, NO_SEAT);
    fake_send(&driver, FRAME_CANCEL, 2, NULL);
    fake_send(&driver, FRAME_START, 2, &start.base);
    fake_send(&driver, FRAME_CANCEL, 1, NULL); /* never after START */
    fake_settle(&driver);
    assert_false(fake_has(&driver, FRAME_STARTED, 2, NO_SEAT));
    assert_false(fake_has(&driver, FRAME_EXITED, 1, NO_SEAT));
    /* without a CANCEL the newer one takes its place as well */
    fake_prepare(&driver, 3, &joins);
    fake_expect(&driver, FRAME_READY, 3, NO_SEAT);
    fake_run(&driver, 4, &joins);
    fake_prepare(&driver, 4, &joins); /* a second one, and an old one, are dropped */
    fake_prepare(&driver, 3, &joins);
    fake_send(&driver, FRAME_START, 3, &start.base);
    fake_read(&driver, "4.5:up");
    fake_settle(&driver);
    assert_false(fake_has(&driver, FRAME_READY, 4, NO_SEAT));
    assert_false(fake_has(&driver, FRAME_READY, 3, NO_SEAT));
    fake_end(&driver, 4, SIGTERM);
    assert_int_equal(fake_exit(&driver, 1, 0), 0);
    assert_int_equal(fake_exit(&driver, 4, 5), 0);
    fake_quit(&driver);
}

static void test_end_worker(void **state)
{
    (void)state;
    struct fake_driver driver;
    const struct crew_plan plan = {.script = "trap '' TERM; trap 'exit 5' USR1; echo up; "
                                             "while :; do sleep 0.05; done",
                                   .seats = {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}},
                                   .count = 3};
    fake_open(&driver);
    fake_run(&driver, 1, &plan);
    for (int i = 0; i < 3; i++) {
        char up[16];
        snprintf(up, sizeof(up), "1.%d:up", i);
        fake_read(&driver, up);
    }
    fake_end_worker(&driver, 2, 0, SIGKILL, 0); /* of an epoch that is not there */
    fake_end_worker(&driver, 1, 9, SIGKILL, 0);
    fake_settle(&driver);
    fake_end_worker(&driver, 1, 1, SIGUSR1, 60000);
    assert_int_equal(fake_exit(&driver, 1, 1), 5);
    fake_end_worker(&driver, 1, 2, SIGTERM, 0);
    assert_int_equal(fake_exit(&driver, 1, 2), 128 + SIGKILL);
    assert_false(fake_has(&driver, FRAME_EXITED, 1, 0));
    fake_end_worker(&driver, 1, 0, SIGTERM, 100);
    assert_int_equal(fake_exit(&driver, 1, 0), 128 + SIGKILL);
    for (uint32_t i = 0; i < 3; i++)
        fake_expect(&driver, FRAME_FINISHED, 1, i);
    fake_end_worker(&driver, 1, 0, SIGTERM, 100); /* once more is no harm */
    fake_end(&driver, 1, SIGTERM);
    fake_quit(&driver);
}

/* A grace does not pass while the job is suspended. */
static void test_end_worker_while_suspended(void **state)
{
    (void)state;
    struct fake_driver driver;
    const struct crew_plan plan = {.script = "trap '' TERM; echo up; while :; do sleep 0.05; done",
                                   .seats = {{0, 0, 0, 0}},
                                   .count = 1};
    fake_open(&driver);
    fake_run(&driver, 1, &plan);
    fake_read(&driver, "1.0:up");
    fake_send(&driver, FRAME_SUSPEND, 1, NULL);
    fake_expect(&driver, FRAME_SUSPENDED, 1, NO_SEAT);
    fake_end_worker(&driver, 1, 0, SIGTERM, 100);
    fake_settle(&driver);
    usleep(400000);
    fake_settle(&driver);
    assert_false(fake_has(&driver, FRAME_EXITED, 1, 0));
    fake_send(&driver, FRAME_RESUME, 1, NULL);
    assert_int_equal(fake_exit(&driver, 1, 0), 128 + SIGKILL);
    fake_end(&driver, 1, SIGTERM);
    fake_quit(&driver);
}

/* A worker that ends at once while its program saves its work, and one that leaves something that
 * does not end. */
static void test_end_worker_and_its_group(void **state)
{
    (void)state;
    struct fake_driver driver;
    const struct crew_plan plan = {
        .script =
            "trap 'exit 3' TERM;"
            "(trap 'sleep 0.6; echo saved; exit' TERM; echo up; while :; do sleep 0.05; done)&"
            "wait; wait",
        .seats = {{0, 0, 0, 0}},
        .count = 1};
    const struct crew_plan stubborn = {
        .script = "(trap '' TERM; echo \"pid=$(exec sh -c 'echo $PPID')\"; exec sleep 300)&"
                  "trap 'exit 3' TERM; echo up; wait; wait",
        .seats = {{1, 1, 1, 1}},
        .count = 1,
        .size = 2};
    fake_open(&driver);
    fake_run(&driver, 1, &plan);
    fake_read(&driver, "1.0:up");
    fake_end_worker(&driver, 1, 0, SIGTERM, 10000);
    assert_int_equal(fake_exit(&driver, 1, 0), 3);
    /* the drain limit is shorter: what it still writes is not heard, but it is left alone */
    fake_expect(&driver, FRAME_FINISHED, 1, 0);
    fake_run(&driver, 2, &stubborn);
    fake_read(&driver, "pid=");
    fake_read(&driver, "up");
    char *pid = said(&driver, "pid=");
    char *path = mem_printf("/proc/%s", pid);
    assert_true(exists(path));
    fake_end_worker(&driver, 2, 1, SIGTERM, 300);
    assert_int_equal(fake_exit(&driver, 2, 1), 3);
    wait_until_gone(path);
    free(path);
    free(pid);
    fake_end(&driver, 2, SIGTERM);
    fake_quit(&driver);
}

/* Input goes to the seat in its own epoch; what is stale goes to nobody. */
static void test_input(void **state)
{
    (void)state;
    struct fake_driver driver;
    const struct crew_plan first = {.script = "echo up; read a; echo \"got $a\"; exec sleep 60",
                                    .seats = {{4, 0, 0, 0}, {2, 1, 1, 1}},
                                    .count = 2,
                                    .stdin_pipes = true};
    uint8_t frame[FRAME_DATA_PREFIX + 8];
    struct frame_data data = {.seat = 2};
    fake_open(&driver);
    fake_run(&driver, 1, &first);
    fake_read(&driver, "1.2:up");
    frame_data_put(&data, frame);
    memcpy(frame + FRAME_DATA_PREFIX, "stale\n", 6);
    link_send(driver.link, FRAME_STDIN, 2, frame, FRAME_DATA_PREFIX + 6);
    memcpy(frame + FRAME_DATA_PREFIX, "fresh\n", 6);
    link_send(driver.link, FRAME_STDIN, 1, frame, FRAME_DATA_PREFIX + 6);
    fake_read(&driver, "1.2:got fresh\n");
    fake_end(&driver, 1, SIGTERM);
    fake_quit(&driver);
}

/* An agent without workers is there, ends when asked, as often as asked, and can still begin. */
static void test_spare(void **state)
{
    (void)state;
    struct fake_driver driver;
    const struct crew_plan plan = {.script = "exit 4", .seats = {{0, 0, 0, 0}}, .count = 1};
    fake_open(&driver);
    fake_settle(&driver);
    while (driver.beats < 1) /* one a second */
        run_turns(driver.loop, 1);
    fake_send(&driver, FRAME_EPOCH, 5, NULL);
    fake_end(&driver, 6, SIGTERM);
    fake_end(&driver, 7, SIGTERM);
    Hvdrun__End end = HVDRUN__END__INIT;
    end.signal = SIGKILL;
    fake_send(&driver, FRAME_END, 7, &end.base); /* of the job, behind that of the epoch */
    fake_settle(&driver);
    fake_expect(&driver, FRAME_ENDED, 7, NO_SEAT);
    fake_run(&driver, 8, &plan);
    assert_int_equal(fake_exit(&driver, 8, 0), 4);
    fake_expect(&driver, FRAME_FINISHED, 8, 0);
    fake_end(&driver, 8, SIGTERM);
    fake_quit(&driver);
}

static void test_terminate(void **state)
{
    (void)state;
    struct fake_driver driver;
    fake_open(&driver);
    fake_settle(&driver);
    assert_int_equal(kill(driver.agent, SIGTERM), 0);
    struct note note = fake_take(&driver, FRAME_TERMINATE, 0, NO_SEAT);
    Hvdrun__Terminate *message = hvdrun__terminate__unpack(NULL, note.length, note.body);
    assert_non_null(message);
    assert_false(message->has_deadline);
    assert_string_equal(message->why, "");
    hvdrun__terminate__free_unpacked(message, NULL);
    free(note.body);
    fake_quit(&driver);
}

/* Asks the rendezvous of the node, as a worker does; whoever has this user may. */
static int ask(const char *port, const char *key)
{
    char request[128];
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtol(port, NULL, 10)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int length = snprintf(request, sizeof(request), "GET /scope/%s HTTP/1.1\r\n\r\n", key);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(fd_write_all(fd, request, (size_t)length), 0);
    return fd;
}

/* The driver hears a question in the epoch that the rendezvous has. */
static void expect_question(struct fake_driver *driver, const char *port, const char *key,
                            uint32_t epoch)
{
    int fd = ask(port, key);
    struct note note = fake_take(driver, FRAME_KV_REQUEST, epoch, NO_SEAT);
    Hvdrun__KvRequest *message = hvdrun__kv_request__unpack(NULL, note.length, note.body);
    assert_string_equal(message->key, key);
    Hvdrun__KvReply reply = HVDRUN__KV_REPLY__INIT;
    reply.token = message->token;
    reply.status = 404;
    fake_send(driver, FRAME_KV_REPLY, epoch, &reply.base);
    hvdrun__kv_request__free_unpacked(message, NULL);
    free(note.body);
    char answer[16] = "";
    fake_settle(driver);
    assert_true(fd_read(fd, answer, sizeof(answer) - 1) >= 12);
    assert_memory_equal(answer, "HTTP/1.1 404", 12);
    fd_close(&fd);
}

static void test_epoch_of_the_rendezvous(void **state)
{
    (void)state;
    struct fake_driver driver;
    const struct crew_plan plan = {.script =
                                       STAYS_AND("echo \"port=$HOROVOD_GLOO_RENDEZVOUS_PORT\";"),
                                   .seats = {{0, 0, 0, 0}},
                                   .count = 1};
    const struct crew_plan joins = {
        .script = plan.script, .seats = {{1, 1, 1, 1}}, .count = 1, .size = 2};
    fake_open(&driver);
    fake_run(&driver, 1, &plan);
    fake_read(&driver, "1.0:port=");
    char *port = said(&driver, "1.0:port=");
    expect_question(&driver, port, "a", 1);
    fake_prepare(&driver, 2, &joins);
    fake_settle(&driver);
    expect_question(&driver, port, "b", 1); /* not yet */
    fake_send(&driver, FRAME_EPOCH, 2, NULL);
    fake_settle(&driver);
    expect_question(&driver, port, "c", 2);
    fake_start(&driver, 2);
    fake_read(&driver, "2.1:port=");
    char *same = said(&driver, "2.1:port=");
    assert_string_equal(same, port);
    fake_end(&driver, 2, SIGTERM);
    fake_run(&driver, 3, &plan);
    fake_settle(&driver);
    expect_question(&driver, port, "d", 3); /* all anew: PREPARE says it */
    fake_end(&driver, 3, SIGTERM);
    free(port);
    free(same);
    fake_quit(&driver);
}

static void test_notify(void **state)
{
    (void)state;
    struct fake_driver driver;
    Hvdrun__Notify notify = HVDRUN__NOTIFY__INIT;
    notify.seat = 3;
    notify.timestamp = 77;
    notify.result = 2;
    notify.registration.data = (uint8_t *)"rubbish";
    notify.registration.len = 7;
    fake_open(&driver);
    fake_send(&driver, FRAME_NOTIFY, 0, &notify.base);
    struct note note = fake_take(&driver, FRAME_NOTIFIED, 0, NO_SEAT);
    Hvdrun__Notified *message = hvdrun__notified__unpack(NULL, note.length, note.body);
    assert_int_equal(message->seat, 3);
    assert_int_equal(message->timestamp, 77);
    assert_string_not_equal(message->problem, "");
    hvdrun__notified__free_unpacked(message, NULL);
    free(note.body);
    fake_quit(&driver);
}

/* The probe's notice reaches the driver, and the workers at once. */
static void test_preemption(void **state)
{
    (void)state;
    struct fake_driver driver;
    char *words[] = {(char *)"/bin/sh", (char *)"-c", (char *)"echo 90 taken away"};
    const struct crew_plan plan = {
        .script = "cat $HVDRUN_DEADLINE_FILE", .seats = {{0, 0, 0, 0}}, .count = 1};
    fake_open_probe(&driver, words, 3);
    struct note note = fake_take(&driver, FRAME_TERMINATE, 0, NO_SEAT);
    Hvdrun__Terminate *message = hvdrun__terminate__unpack(NULL, note.length, note.body);
    assert_true(message->has_deadline);
    assert_in_range(message->within_ms, 1, 90000);
    assert_string_equal(message->why, "taken away");
    hvdrun__terminate__free_unpacked(message, NULL);
    free(note.body);
    fake_run(&driver, 1, &plan);
    fake_read(&driver, " taken away\n");
    fake_end(&driver, 1, SIGTERM);
    fake_expect(&driver, FRAME_TERMINATE, 1, NO_SEAT); /* asked again, after the end */
    fake_quit(&driver);
}

/* The end of an epoch ends a probe too, and that is nothing to be warned of. */
static void test_end_while_probe_runs(void **state)
{
    (void)state;
    struct fake_driver driver;
    char *words[] = {(char *)"/bin/sleep", (char *)"300"};
    const struct crew_plan plan = {.script = STAYS, .seats = {{0, 0, 0, 0}}, .count = 1};
    fake_open_probe(&driver, words, 2);
    for (uint32_t epoch = 1; epoch <= 3; epoch++) {
        buf_clear(&driver.output);
        fake_run(&driver, epoch, &plan);
        fake_read(&driver, "up");
        fake_end(&driver, epoch, SIGTERM);
        assert_int_equal(fake_exit(&driver, epoch, 0), 0);
    }
    fake_settle(&driver);
    for (uint32_t epoch = 0; epoch <= 3; epoch++)
        assert_false(fake_has(&driver, FRAME_LOG, epoch, NO_SEAT));
    fake_quit(&driver);
}

/* Without its driver an agent ends the workers of all epochs, and then itself. */
static void test_driver_lost(void **state)
{
    (void)state;
    struct fake_driver driver;
    const struct crew_plan first = {.script = "trap '' TERM; echo up; while :; do sleep 0.05; done",
                                    .seats = {{0, 0, 0, 0}},
                                    .count = 1};
    const struct crew_plan second = {.script = STAYS_AND("echo \"file=$HVDRUN_DEADLINE_FILE\";"),
                                     .seats = {{1, 1, 1, 1}},
                                     .count = 1,
                                     .size = 2};
    fake_open(&driver);
    fake_run(&driver, 1, &first);
    fake_read(&driver, "1.0:up");
    fake_run(&driver, 2, &second);
    fake_read(&driver, "2.1:file=");
    char *file = said(&driver, "2.1:file=");
    char *folder = mem_strndup(file, strlen(file) - strlen("/deadline"));
    assert_true(exists(folder));
    fake_close(&driver);
    assert_int_equal(fake_wait(&driver), 0);
    assert_false(exists(folder));
    free(file);
    free(folder);
}

/* A driver that was stopped reads afterwards why its agent has gone. */
static void test_farewell(void **state)
{
    (void)state;
    struct fake_driver driver;
    fake_open_as(&driver, NULL, 0, 400);
    driver.silent = true;
    struct note note = fake_take(&driver, FRAME_FAREWELL, 0, NO_SEAT);
    Hvdrun__Farewell *farewell = hvdrun__farewell__unpack(NULL, note.length, note.body);
    assert_true(farewell->silence_ms >= 400);
    hvdrun__farewell__free_unpacked(farewell, NULL);
    free(note.body);
    while (!driver.closed)
        run_loop(driver.loop);
    assert_int_equal(fake_wait(&driver), 0);
    fake_close(&driver);
}

/* The agent says which frame it was, ends its workers, and then itself. */
static void test_a_frame_that_only_agents_send(void **state)
{
    (void)state;
    static const enum frame_type types[] = {FRAME_ENDED, FRAME_KV_REQUEST, FRAME_OUTPUT_SHOW};
    const struct crew_plan plan = {.script = STAYS, .seats = {{0, 0, 0, 0}}, .count = 1};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct fake_driver driver;
        fake_open(&driver);
        fake_run(&driver, 1, &plan);
        fake_read(&driver, "up");
        fake_send(&driver, types[i], 1, NULL);
        struct note note = fake_take(&driver, FRAME_LOG, 1, NO_SEAT);
        Hvdrun__Log *log = hvdrun__log__unpack(NULL, note.length, note.body);
        char *text AUTO_FREE = mem_printf("the driver broke the protocol: %s is not for an agent",
                                          frame_name((uint8_t)types[i]));
        assert_non_null(strstr(log->text, text));
        hvdrun__log__free_unpacked(log, NULL);
        free(note.body);
        while (!driver.closed)
            run_loop(driver.loop);
        assert_int_equal(fake_wait(&driver), 0);
        fake_close(&driver);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_restart_with_pmix),
        cmocka_unit_test(test_rejoin),
        cmocka_unit_test(test_a_prepared_crew_keeps_its_folder),
        cmocka_unit_test(test_the_first_folder_is_made_ahead),
        cmocka_unit_test(test_a_first_folder_that_is_gone),
        cmocka_unit_test(test_deadline_before_workers),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_end_worker),
        cmocka_unit_test(test_end_worker_while_suspended),
        cmocka_unit_test(test_end_worker_and_its_group),
        cmocka_unit_test(test_input),
        cmocka_unit_test(test_spare),
        cmocka_unit_test(test_terminate),
        cmocka_unit_test(test_epoch_of_the_rendezvous),
        cmocka_unit_test(test_notify),
        cmocka_unit_test(test_preemption),
        cmocka_unit_test(test_end_while_probe_runs),
        cmocka_unit_test(test_driver_lost),
        cmocka_unit_test(test_farewell),
        cmocka_unit_test(test_a_frame_that_only_agents_send),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
