/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket over a real socket: what is asked, who asks, and what a client may do wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "driver/control/control.h"
#include "driver/control/folder.h"
#include "driver/control/record.h"
#include "driver/control/request.h"
#include "driver/tell/json_text.h"
#include "loop_fixture.h"
#include "node/runtime_dir.h"
#include "unit.h"

#define NOBODY 65534

struct fixture {
    char root[64];
    struct loop *loop;
    struct control *control;
    int folder;
    size_t status_size; /* of a text in it */
    bool refuses;
    char asker[64];              /* who asked it */
    char did[256];               /* what the job was told last */
    struct control_later *later; /* the last that asked for stacks; NULL: answered */
};

static json_t *status(void *context, const struct control_asked *asked, struct error *err)
{
    (void)err;
    struct fixture *f = context;
    char *text AUTO_FREE = mem_alloc(f->status_size + 1);
    memset(text, 'x', f->status_size);
    json_t *answer = json_pack("{s:s, s:s}", "job", "test", "text", text);
    if (json_is_true(json_object_get(asked->request, "sign")))
        control_sign(asked, answer);
    return answer;
}

static json_t *drain(void *context, const struct control_asked *asked, struct error *err)
{
    struct fixture *f = context;
    int64_t within_ms;
    const char *host = control_host(asked, "host", err);
    if (host == NULL || control_time(asked, "within_s", &within_ms, err) < 0)
        return NULL;
    if (f->refuses)
        return control_accepted(error_set(err, "no host is called '%s'", host));
    snprintf(f->did, sizeof(f->did), "drain %s %lld", host, (long long)within_ms);
    return control_accepted(0);
}

static json_t *stop(void *context, const struct control_asked *asked, struct error *err)
{
    struct fixture *f = context;
    (void)err;
    snprintf(f->did, sizeof(f->did), "stop");
    snprintf(f->asker, sizeof(f->asker), "%s by %s",
             asked->asker.command != NULL ? asked->asker.command : "?",
             asked->asker.user != NULL ? asked->asker.user : "?");
    return control_accepted(0);
}

static json_t *stacks(void *context, const struct control_asked *asked, struct error *err)
{
    struct fixture *f = context;
    const char *ranks;
    if (control_ranks(asked, "ranks", &ranks, err) < 0)
        return NULL;
    if (f->refuses)
        return control_accepted(error_set(err, "no rank runs"));
    snprintf(f->did, sizeof(f->did), "stacks %s", ranks == NULL ? "all" : ranks);
    control_later_take(asked->later);
    f->later = asked->later;
    loop_stop(f->loop);
    return NULL;
}

static json_t *wait_for_end(void *context, const struct control_asked *asked, struct error *err)
{
    (void)context, (void)asked, (void)err;
    return NULL;
}

static const struct control_rule *find_rule(void *context, const char *name)
{
    static const struct control_rule rules[] = {{"status", status},     {"drain", drain},
                                                {"stop", stop},         {"stacks", stacks},
                                                {"wait", wait_for_end}, {NULL}};
    (void)context;
    return control_rule_of(rules, name);
}

static struct control *create(struct fixture *f, int folder, const char *job, struct error *err)
{
    char *name AUTO_FREE = mem_strdup(job); /* the control has its own */
    struct control_answers answers = {name, find_rule, f};
    return control_create(f->loop, folder, &answers, err);
}

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    struct error err = ERROR_INIT;
    snprintf(f->root, sizeof(f->root), "/tmp/hvd-control-XXXXXX");
    assert_non_null(mkdtemp(f->root));
    assert_int_equal(setenv("TMPDIR", f->root, 1), 0);
    mode_t before = umask(0); /* the socket is closed to others all the same */
    f->loop = loop_create(NULL);
    f->folder = job_folder_open(&err);
    f->control = create(f, f->folder, "hvdrun-node1-17", &err);
    umask(before);
    if (f->control == NULL)
        fail_msg("%s", err.text);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char *folder AUTO_FREE = job_folder_path();
    char *base AUTO_FREE = runtime_dir_base();
    control_destroy(f->control);
    loop_destroy(f->loop);
    fd_close(&f->folder);
    assert_int_equal(rmdir(folder), 0); /* nothing is left in them */
    assert_int_equal(rmdir(base), 0);
    assert_int_equal(rmdir(f->root), 0);
    unsetenv("TMPDIR");
    free(f);
    return 0;
}

static int dial(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        fd_close(&fd);
    return fd;
}

static int must_dial(struct fixture *f)
{
    int fd = dial(control_path(f->control));
    assert_true(fd >= 0);
    return fd;
}

struct reading {
    struct loop *loop;
    int fd;
    bool at_end;
    size_t lines; /* wanted; 0: to the end */
    struct buf got;
};

static void readable(void *context, int what)
{
    struct reading *reading = context;
    char bytes[65536];
    (void)what;
    ssize_t got = fd_read(reading->fd, bytes, sizeof(bytes));
    if (got > 0)
        assert_int_equal(buf_append(&reading->got, bytes, (size_t)got), 0);
    reading->at_end = got <= 0;
    size_t lines = 0;
    const char *text = buf_text(&reading->got);
    for (size_t i = 0; i < reading->got.length; i++)
        lines += text[i] == '\n';
    if (reading->at_end || (reading->lines > 0 && lines >= reading->lines))
        loop_stop(reading->loop);
}

/* So many lines, or (0) all until the end of the stream; the caller frees. */
static char *read_lines(struct fixture *f, int fd, size_t lines)
{
    struct reading reading = {
        .loop = f->loop, .fd = fd, .lines = lines, .got = BUF_INIT((size_t)1 << 26)};
    struct loop_fd *watch = loop_fd_create(f->loop, fd, readable, &reading);
    loop_fd_watch(watch, LOOP_READ);
    run_loop(f->loop);
    loop_fd_destroy(watch);
    assert_int_equal(reading.at_end, lines == 0);
    return buf_take(&reading.got);
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void expect_answer(struct fixture *f, int fd, const char *request, const char *answer)
{
    say(fd, request);
    char *got AUTO_FREE = read_lines(f, fd, 1);
    if (strcmp(got, answer) != 0)
        fail_msg("'%s' to '%s'", got, request);
}

static void expect_error(struct fixture *f, int fd, const char *request, const char *part)
{
    say(fd, request);
    char *got AUTO_FREE = read_lines(f, fd, 1);
    if (strncmp(got, "{\"error\":\"", 10) != 0 || strstr(got, part) == NULL)
        fail_msg("'%s' to '%s'", got, request);
}

static void test_requests(void **state)
{
    struct fixture *f = *state;
    int fd = must_dial(f);
    expect_answer(f, fd, "{\"do\":\"status\"}\n", "{\"job\":\"test\",\"text\":\"\"}\n");
    expect_answer(f, fd, "{\"do\":\"status\",\"sign\":true}\n",
                  "{\"job\":\"hvdrun-node1-17\",\"text\":\"\",\"protocol\":1}\n");
    expect_answer(f, fd, "{\"do\":\"drain\",\"host\":\"c\",\"within_s\":60}\n", "{\"ok\":true}\n");
    assert_string_equal(f->did, "drain c 60000");
    expect_answer(f, fd, "{\"do\":\"drain\",\"host\":\"c\",\"within_s\":0.25}\n",
                  "{\"ok\":true}\n");
    assert_string_equal(f->did, "drain c 250");
    expect_answer(f, fd, "\n {\"do\":\"drain\",\"host\":\"c\",\"within_s\":0}\n",
                  "{\"ok\":true}\n");
    assert_string_equal(f->did, "drain c 0");
    expect_answer(f, fd, "{\"do\":\"drain\",\"host\":\"c\",\"within_s\":null}\n",
                  "{\"ok\":true}\n");
    assert_string_equal(f->did, "drain c -1");
    expect_answer(f, fd, "{\"do\":\"drain\",\"host\":\"fe80::1\",\"new\":[]}\r\n",
                  "{\"ok\":true}\n");
    assert_string_equal(f->did, "drain fe80::1 -1");
    expect_answer(f, fd, "{\"do\":\"stop\",\"protocol\":1}\n", "{\"ok\":true}\n");
    assert_string_equal(f->did, "stop");
    fd_close(&fd);
}

/* Tables end, and may be missing. */
static void test_rules(void **state)
{
    (void)state;
    static const struct control_rule rules[] = {{"stop", stop}, {"stacks", stacks}, {NULL}};
    assert_ptr_equal(control_rule_of(rules, "stop"), &rules[0]);
    assert_ptr_equal(control_rule_of(rules, "stacks"), &rules[1]);
    assert_null(control_rule_of(rules, "sto"));
    assert_null(control_rule_of(&rules[2], "stop"));
    assert_null(control_rule_of(NULL, "stop"));
}

static void expect_asker(struct fixture *f, const char *line, bool by_root, const char *asker)
{
    struct control_answers answers = {"hvdrun-node1-17", find_rule, f};
    json_t *answer = control_request_answer(&answers, line, strlen(line), by_root, NULL);
    assert_true(json_is_true(json_object_get(answer, "ok")));
    assert_string_equal(f->asker, asker);
    json_decref(answer);
}

/* The kernel says who is root, and a name may not hold what could pass for something else. */
static void test_who_asks(void **state)
{
    struct fixture *f = *state;
    const char *line = "{\"do\":\"stop\",\"command\":\"attach\",\"user\":\"alice\"}";
    expect_asker(f, line, false, "attach by alice");
    expect_asker(f, line, true, "attach by root");
    expect_asker(f, "{\"do\":\"stop\",\"user\":\"root\"}", false, "? by ?");
    expect_asker(f, "{\"do\":\"stop\",\"command\":\"a' b\",\"user\":\"\\u001b[2J\"}", false,
                 "? by ?");
    expect_asker(f, "{\"do\":\"stop\",\"command\":7,\"user\":null}", true, "? by root");
}

static void test_refusals(void **state)
{
    struct fixture *f = *state;
    int fd = must_dial(f);
    f->refuses = true;
    expect_error(f, fd, "{\"do\":\"drain\",\"host\":\"c\"}\n", "no host is called 'c'");
    f->refuses = false;
    expect_error(f, fd, "{\"do\":\"drain\"}\n", "host");
    expect_error(f, fd, "{\"do\":\"drain\",\"host\":\"-c\"}\n", "not the name of a host");
    expect_error(f, fd, "{\"do\":\"drain\",\"host\":[\"c\"]}\n", "not a string");
    expect_error(f, fd, "{\"do\":\"drain\",\"host\":\"c\",\"within_s\":-1}\n", "within_s");
    expect_error(f, fd, "{\"do\":\"drain\",\"host\":\"c\",\"within_s\":\"1m\"}\n", "within_s");
    expect_error(f, fd, "{\"do\":\"drain\",\"host\":\"c\",\"within_s\":1e300}\n", "within_s");
    expect_error(f, fd, "{\"do\":\"status\",\"protocol\":2}\n", "older version of hvdrun");
    expect_error(f, fd, "{\"do\":\"reboot\"}\n", "does not know that");
    expect_error(f, fd, "{}\n", "do");
    expect_error(f, fd, "{\"do\":\"status\",\"do\":\"status\"}\n", "duplicate");
    expect_error(f, fd, "[1]\n", "one JSON object");
    expect_error(f, fd, "status\n", "one JSON object");
    expect_error(f, fd, "\x01\xff\xfe garbage \n", "one JSON object");
    expect_error(f, fd, "GET / HTTP/1.1\n", "one JSON object");
    assert_string_equal(f->did, "");
    expect_answer(f, fd, "{\"do\":\"status\"}\n", "{\"job\":\"test\",\"text\":\"\"}\n");
    fd_close(&fd);
}

static void expect_asker_text(const char *command, const char *user, const char *wanted)
{
    char *text AUTO_FREE = control_asker_text(&(struct control_asker){command, user});
    assert_string_equal(text, wanted);
}

static void test_text_about_who_asks(void **state)
{
    (void)state;
    char now[DAY_TIME_SIZE], wanted[128];
    unit_clock_stop(0, 1700000000000000000);
    day_time_text(1700000000000000000, now);
    snprintf(wanted, sizeof(wanted), "'hvdrun stop' (user alice, %s)", now);
    expect_asker_text("stop", "alice", wanted);
    snprintf(wanted, sizeof(wanted), "a request to the control socket (%s)", now);
    expect_asker_text(NULL, NULL, wanted);
    unit_clock_run();
}

static int ask_stacks(struct fixture *f, const char *request)
{
    int fd = must_dial(f);
    say(fd, request);
    run_loop(f->loop); /* until stacks() */
    return fd;
}

/* The next request waits for the answer, also of a client that has closed its half. */
static void test_an_answer_that_comes_later(void **state)
{
    struct fixture *f = *state;
    int fd = ask_stacks(f, "{\"do\":\"stacks\",\"ranks\":\"0-3\"}\n{\"do\":\"status\"}\n");
    assert_string_equal(f->did, "stacks 0-3");
    shutdown(fd, SHUT_WR);
    run_turns(f->loop, 10);
    control_later_answer(f->later, json_pack("{s:s}", "text", "tree"));
    char *got AUTO_FREE = read_lines(f, fd, 0);
    assert_string_equal(got, "{\"text\":\"tree\"}\n{\"job\":\"test\",\"text\":\"\"}\n");
    fd_close(&fd);
    fd = must_dial(f);
    expect_error(f, fd, "{\"do\":\"stacks\",\"ranks\":3}\n", "not a string");
    f->refuses = true;
    expect_error(f, fd, "{\"do\":\"stacks\"}\n", "no rank runs");
    fd_close(&fd);
}

/* A part that answers all who wait gets no new request meanwhile. The answer does not need the
 * loop, which runs no more when a job closes. */
static void test_the_next_request_is_for_another_turn(void **state)
{
    struct fixture *f = *state;
    char bytes[64] = "";
    int fd = ask_stacks(f, "{\"do\":\"stacks\",\"ranks\":\"1\"}\n"
                           "{\"do\":\"stacks\",\"ranks\":\"2\"}\n");
    control_later_answer(f->later, json_pack("{s:s}", "text", "tree"));
    assert_string_equal(f->did, "stacks 1");
    assert_true(recv(fd, bytes, sizeof(bytes) - 1, MSG_DONTWAIT) > 0);
    assert_string_equal(bytes, "{\"text\":\"tree\"}\n");
    run_loop(f->loop);
    assert_string_equal(f->did, "stacks 2");
    control_later_answer(f->later, json_pack("{s:s}", "text", "leaf"));
    char *got AUTO_FREE = read_lines(f, fd, 1);
    assert_string_equal(got, "{\"text\":\"leaf\"}\n");
    fd_close(&fd);
}

/* The connection ends first: by the client, or with the job. */
static void test_an_answer_that_nobody_takes(void **state)
{
    struct fixture *f = *state;
    int fd = ask_stacks(f, "{\"do\":\"stacks\"}\n");
    assert_string_equal(f->did, "stacks all");
    struct control_later *first = f->later;
    fd_close(&fd);
    run_turns(f->loop, 10);
    control_later_answer(first, json_pack("{s:s}", "text", "tree"));
    run_turns(f->loop, 10);
    fd = ask_stacks(f, "{\"do\":\"stacks\",\"ranks\":\"1\"}\n");
    assert_string_equal(f->did, "stacks 1");
    control_destroy(f->control);
    f->control = NULL;
    control_later_answer(f->later, json_pack("{s:s}", "error", "the job has ended"));
    fd_close(&fd);
}

/* The client gets the answer, and then talks to somebody else; the control does not know it. */
static void test_a_connection_that_is_taken_over(void **state)
{
    struct fixture *f = *state;
    char bytes[8];
    int fd = ask_stacks(f, "{\"do\":\"stacks\"}\n");
    int taken = control_later_take_over(f->later, json_pack("{s:s}", "text", "tree"));
    assert_true(taken >= 0);
    char *got AUTO_FREE = read_lines(f, fd, 1);
    assert_string_equal(got, "{\"text\":\"tree\"}\n");
    say(fd, "hello");
    run_turns(f->loop, 10);
    assert_int_equal(read(taken, bytes, sizeof(bytes)), 5);
    control_destroy(f->control);
    f->control = NULL;
    assert_int_equal(write(taken, "there", 5), 5);
    assert_int_equal(read(fd, bytes, sizeof(bytes)), 5);
    fd_close(&fd);
    fd_close(&taken);
}

/* The client, or the job, has gone before. */
static void test_a_connection_that_nobody_can_take_over(void **state)
{
    struct fixture *f = *state;
    int fd = ask_stacks(f, "{\"do\":\"stacks\"}\n");
    fd_close(&fd);
    assert_int_equal(control_later_take_over(f->later, json_pack("{s:s}", "text", "tree")), -1);
    fd = ask_stacks(f, "{\"do\":\"stacks\"}\n");
    control_destroy(f->control);
    f->control = NULL;
    assert_int_equal(control_later_take_over(f->later, json_pack("{s:s}", "text", "tree")), -1);
    fd_close(&fd);
}

static void test_place(void **state)
{
    struct fixture *f = *state;
    struct stat info;
    const char *path = control_path(f->control);
    char *base AUTO_FREE = runtime_dir_base();
    assert_memory_equal(path, base, strlen(base));
    assert_non_null(strstr(path, "/hvdrun-node1-17.control"));
    assert_int_equal(stat(path, &info), 0);
    assert_true(S_ISSOCK(info.st_mode));
    assert_int_equal(info.st_mode & 0777, 0600);
    char *folder AUTO_FREE = mem_strndup(path, (size_t)(strrchr(path, '/') - path));
    assert_int_equal(stat(folder, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
}

/* Several in one go, the last without a line's end; all are answered, in turn. */
static void test_many_requests_at_once(void **state)
{
    struct fixture *f = *state;
    int fd = must_dial(f);
    f->status_size = 300000; /* more than a socket's buffer: each waits for the client */
    say(fd, "{\"do\":\"status\"}\n{\"do\":\"drain\",\"host\":\"a\"}\n\n{\"do\":\"status\"}\n"
            "{\"do\":\"drain\",\"host\":\"b\"}");
    shutdown(fd, SHUT_WR);
    char *got AUTO_FREE = read_lines(f, fd, 0);
    const char *expected_end = "x\"}\n{\"ok\":true}\n";
    assert_true(strlen(got) > 600000);
    assert_string_equal(got + strlen(got) - strlen(expected_end), expected_end);
    assert_string_equal(f->did, "drain b -1");
    fd_close(&fd);
}

static void test_slow_client(void **state)
{
    struct fixture *f = *state;
    int slow = must_dial(f), other = must_dial(f);
    const char *request = "{\"do\":\"status\"}\n";
    for (const char *at = request; *at != '\0'; at++) {
        char byte[2] = {*at, '\0'};
        say(slow, byte);
        run_turns(f->loop, 2);
        if (at == request + 5)
            expect_answer(f, other, request, "{\"job\":\"test\",\"text\":\"\"}\n");
    }
    char *got AUTO_FREE = read_lines(f, slow, 1);
    assert_string_equal(got, "{\"job\":\"test\",\"text\":\"\"}\n");
    fd_close(&slow);
    fd_close(&other);
}

/* Does nothing: it is shown the door. */
static void test_idle_client(void **state)
{
    struct fixture *f = *state;
    int silent = must_dial(f), half = must_dial(f);
    say(half, "{\"do\":");
    char *got AUTO_FREE = read_lines(f, silent, 0);
    assert_string_equal(got, "");
    char *same AUTO_FREE = read_lines(f, half, 0);
    assert_string_equal(same, "");
    fd_close(&silent);
    fd_close(&half);
}

static void test_huge_line(void **state)
{
    struct fixture *f = *state;
    int fd = must_dial(f);
    char *line AUTO_FREE = mem_alloc(CONTROL_LINE_MAX * 2 + 1);
    memset(line, ' ', CONTROL_LINE_MAX * 2);
    for (size_t sent = 0; sent < CONTROL_LINE_MAX * 2;) {
        ssize_t put = send(fd, line + sent, CONTROL_LINE_MAX * 2 - sent, MSG_NOSIGNAL);
        if (put <= 0)
            break; /* it has had enough */
        sent += (size_t)put;
        run_turns(f->loop, 2);
    }
    char *got AUTO_FREE = read_lines(f, fd, 1);
    assert_string_equal(got, "{\"error\":\"the request has more than 65536 bytes\"}\n");
    fd_close(&fd);
    fd = must_dial(f);
    memcpy(line, "{\"do\":\"status\"", 14);
    line[CONTROL_LINE_MAX - 1] = '}';
    line[CONTROL_LINE_MAX] = '\0';
    say(fd, line);
    expect_answer(f, fd, "\n", "{\"job\":\"test\",\"text\":\"\"}\n");
    fd_close(&fd);
}

/* More than are served at once: the others come when these go. */
static void test_many_clients(void **state)
{
    struct fixture *f = *state;
    int fds[CONTROL_PEERS_MAX + 4];
    const size_t total = sizeof(fds) / sizeof(fds[0]);
    for (size_t i = 0; i < total; i++) {
        fds[i] = must_dial(f);
        say(fds[i], "{\"do\":\"status\"}\n");
    }
    run_turns(f->loop, 100);
    for (size_t i = 0; i < total; i++) {
        char *got AUTO_FREE = read_lines(f, fds[i], 1);
        assert_string_equal(got, "{\"job\":\"test\",\"text\":\"\"}\n");
        fd_close(&fds[i]);
    }
}

/* Gone before the answer, or in the middle of it. */
static void test_client_leaves(void **state)
{
    struct fixture *f = *state;
    f->status_size = 1000000;
    for (int i = 0; i < CONTROL_PEERS_MAX * 3; i++) {
        int fd = must_dial(f);
        if (i % 3 > 0)
            say(fd, "{\"do\":\"status\"}\n");
        if (i % 3 > 1)
            run_turns(f->loop, 3);
        fd_close(&fd);
        run_turns(f->loop, 3);
    }
    f->status_size = 0;
    int fd = must_dial(f);
    expect_answer(f, fd, "{\"do\":\"status\"}\n", "{\"job\":\"test\",\"text\":\"\"}\n");
    fd_close(&fd);
}

/* Somebody else, whom the folder's and the socket's mode let through by mistake. */
static void test_foreign_user(void **state)
{
    struct fixture *f = *state;
    if (geteuid() != 0)
        skip();
    const char *path = control_path(f->control);
    char *base AUTO_FREE = runtime_dir_base();
    char *folder AUTO_FREE = mem_strndup(path, (size_t)(strrchr(path, '/') - path));
    assert_int_equal(chmod(f->root, 0755) + chmod(base, 0755) + chmod(folder, 0755), 0);
    assert_int_equal(chmod(path, 0666), 0);
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char bytes[256];
        int fd = setuid(NOBODY) == 0 ? socket(AF_UNIX, SOCK_STREAM, 0) : -1;
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        bool through = connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
        send(fd, "{\"do\":\"status\"}\n", 16, MSG_NOSIGNAL);
        ssize_t got = read(fd, bytes, sizeof(bytes));
        dprintf(ends[1], "%s", !through ? "refused" : got > 0 ? "answered" : "closed");
        _exit(0);
    }
    fd_close(&ends[1]);
    char *got AUTO_FREE = read_lines(f, ends[0], 0);
    assert_string_equal(got, "closed");
    fd_close(&ends[0]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(chmod(base, 0700), 0);
}

static void test_long_path(void **state)
{
    struct fixture *f = *state;
    char long_name[201];
    memset(long_name, 'd', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    char *place AUTO_FREE = mem_printf("%s/%s", f->root, long_name);
    assert_int_equal(mkdir(place, 0700), 0);
    setenv("TMPDIR", place, 1);
    struct error err = ERROR_INIT;
    int folder = job_folder_open(&err);
    struct control *control = create(f, folder, "hvdrun-node1-18", &err);
    if (control == NULL)
        fail_msg("%s", err.text);
    struct stat info;
    assert_int_equal(stat(control_path(control), &info), 0);
    assert_true(S_ISSOCK(info.st_mode));
    control_destroy(control);
    fd_close(&folder);
    runtime_dir_remove(place);
    setenv("TMPDIR", f->root, 1);
    assert_int_equal(access(place, F_OK), -1);
}

static void test_refused_places(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    assert_null(create(f, f->folder, "../x", &err));
    assert_non_null(strstr(err.text, "../x"));
    char *base AUTO_FREE = runtime_dir_base();
    assert_int_equal(chmod(base, 0755), 0);
    assert_int_equal(job_folder_open(&err), -1);
    assert_non_null(strstr(err.text, "not a folder of this user alone"));
    assert_int_equal(job_folder_find_in(f->root), -1);
    assert_int_equal(chmod(base, 0700), 0);
    char *folder AUTO_FREE = job_folder_path();
    assert_int_equal(chmod(folder, 0750), 0);
    assert_int_equal(job_folder_open(&err), -1);
    assert_non_null(strstr(err.text, "not a folder of this user alone"));
    assert_int_equal(job_folder_find_in(f->root), -1);
    assert_int_equal(chmod(folder, 0700), 0);
}

/* In place of libc's: a socket has no name that clients know yet. */
int listen(int fd, int backlog)
{
    struct sockaddr_un address = {.sun_family = AF_UNSPEC};
    socklen_t length = sizeof(address);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    if (address.sun_family == AF_UNIX)
        assert_null(strstr(address.sun_path, JOB_CONTROL_SUFFIX));
    return (int)syscall(SYS_listen, fd, backlog);
}

/* A client that sees the socket can connect to it. setup() has done the work. */
static void test_no_name_before_it_listens(void **state)
{
    struct fixture *f = *state;
    int fd = must_dial(f);
    fd_close(&fd);
}

/* A driver that was killed leaves its socket; the next one that starts removes it. */
static void leave(struct fixture *f, const char *name)
{
    struct sockaddr_un address;
    char *folder AUTO_FREE = job_folder_path();
    int dead AUTO_FD = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(control_address(f->folder, folder, name, &address), 0);
    assert_int_equal(bind(dead, (const struct sockaddr *)&address, sizeof(address)), 0);
}

static bool is_there(const struct fixture *f, const char *name)
{
    return faccessat(f->folder, name, F_OK, 0) == 0;
}

static void test_left_by_the_dead(void **state)
{
    struct fixture *f = *state;
    leave(f, "hvdrun-node1-18.control");
    leave(f, "hvdrun-node1-18.new");
    struct control *next = create(f, f->folder, "hvdrun-node1-18", NULL);
    assert_non_null(next); /* it has the same pid */
    assert_false(is_there(f, "hvdrun-node1-18.new"));
    control_destroy(next);
    leave(f, "hvdrun-node1-17.new"); /* of a job that begins */
    leave(f, "hvdrun-node1-18.control");
    leave(f, "hvdrun-node1-18.new");
    json_t *facts = json_object();
    struct job_record *live = job_record_create(f->folder, "hvdrun-node1-17", facts, NULL);
    json_decref(facts);
    job_folder_tidy(f->folder, 0);
    assert_false(is_there(f, "hvdrun-node1-18.control"));
    assert_false(is_there(f, "hvdrun-node1-18.new"));
    assert_true(is_there(f, "hvdrun-node1-17.new"));
    int fd = must_dial(f); /* the live one is still there */
    fd_close(&fd);
    job_record_destroy(live);
    job_folder_tidy(f->folder, 0);
    assert_false(is_there(f, "hvdrun-node1-17.new"));
    assert_false(is_there(f, "hvdrun-node1-17.control"));
    unlinkat(f->folder, "hvdrun-node1-17.json", 0);
}

/* Clients that wait for the end do not keep others out, and get their answer. */
static void test_waiting(void **state)
{
    struct fixture *f = *state;
    int fds[CONTROL_WAITING_MAX], more = -1;
    json_t *end = json_pack("{s:i}", "status", 3);
    for (int i = 0; i < CONTROL_WAITING_MAX; i++) {
        fds[i] = must_dial(f);
        say(fds[i], "{\"do\":\"wait\"}\n");
        run_turns(f->loop, 3);
    }
    more = must_dial(f);
    expect_error(f, more, "{\"do\":\"wait\"}\n", "too many clients wait");
    expect_answer(f, more, "{\"do\":\"status\"}\n", "{\"job\":\"test\",\"text\":\"\"}\n");
    fd_close(&fds[0]); /* goes away: there is room for another one */
    say(fds[1], "x");  /* speaks out of turn */
    char *closed AUTO_FREE = read_lines(f, fds[1], 0);
    assert_string_equal(closed, "");
    fd_close(&fds[1]);
    say(more, "{\"do\":\"wait\"}\n");
    run_turns(f->loop, 5);
    control_finish(f->control, end);
    char *last AUTO_FREE = read_lines(f, more, 1);
    assert_string_equal(last, "{\"status\":3}\n");
    for (int i = 2; i < CONTROL_WAITING_MAX; i++) {
        char *got AUTO_FREE = read_lines(f, fds[i], 1);
        assert_string_equal(got, "{\"status\":3}\n");
        fd_close(&fds[i]);
    }
    fd_close(&more);
    json_decref(end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_requests, setup, teardown),
        cmocka_unit_test(test_rules),
        cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_who_asks, setup, teardown),
        cmocka_unit_test(test_text_about_who_asks),
        cmocka_unit_test_setup_teardown(test_an_answer_that_comes_later, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_next_request_is_for_another_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_answer_that_nobody_takes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_connection_that_is_taken_over, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_connection_that_nobody_can_take_over, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_requests_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slow_client, setup, teardown),
        cmocka_unit_test_setup_teardown(test_idle_client, setup, teardown),
        cmocka_unit_test_setup_teardown(test_huge_line, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_clients, setup, teardown),
        cmocka_unit_test_setup_teardown(test_client_leaves, setup, teardown),
        cmocka_unit_test_setup_teardown(test_foreign_user, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_path, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused_places, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_name_before_it_listens, setup, teardown),
        cmocka_unit_test_setup_teardown(test_left_by_the_dead, setup, teardown),
        cmocka_unit_test_setup_teardown(test_waiting, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
