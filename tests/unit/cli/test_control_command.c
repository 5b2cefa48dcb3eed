/* SPDX-License-Identifier: Apache-2.0 */
/* The commands against real control sockets, each served by a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/strv.h"
#include "cli/control.h"
#include "cli/control_client.h"
#include "driver/control/control.h"
#include "driver/control/folder.h"
#include "driver/control/record.h"
#include "node/runtime_dir.h"

struct fixture {
    char root[64];
    pid_t jobs[4];
    size_t count;
    char paths[4][256];
    struct buf out, errors; /* of the last command */
};

/* A job in a process of its own. */
struct server {
    const char *id;
    struct loop *loop;
};

static json_t *status(void *context, const struct control_asked *asked, struct error *err)
{
    const struct server *server = context;
    (void)asked, (void)err;
    const char *progress = strstr(server->id, "odd") != NULL ? "none" : NULL;
    return json_pack("{s:s, s:s, s:s*}", "job", server->id, "state", "running", "progress",
                     progress);
}

/* Ends the job after this turn. */
static json_t *stop(void *context, const struct control_asked *asked, struct error *err)
{
    const struct server *server = context;
    int64_t grace_ms;
    if (control_time(asked, "grace_s", &grace_ms, err) < 0)
        return NULL;
    if (asked->asker.command == NULL || strcmp(asked->asker.command, "stop") != 0 ||
        asked->asker.user == NULL)
        return control_accepted(error_set(err, "who asks?"));
    if (grace_ms == 1000)
        return control_accepted(error_set(err, "not with this grace"));
    loop_stop(server->loop);
    return control_accepted(0);
}

static json_t *send_signal(void *context, const struct control_asked *asked, struct error *err)
{
    const char *name = control_text(asked, "signal", err), *ranks = NULL;
    (void)context;
    if (name == NULL || control_ranks(asked, "ranks", &ranks, err) < 0)
        return NULL;
    return control_accepted(ranks == NULL ? 0 : error_set(err, "signal %s for %s", name, ranks));
}

static json_t *wait_for_end(void *context, const struct control_asked *asked, struct error *err)
{
    (void)context, (void)asked, (void)err;
    return NULL;
}

static json_t *drain(void *context, const struct control_asked *asked, struct error *err)
{
    const char *host = control_host(asked, "host", err);
    int64_t within_ms;
    (void)context;
    if (host == NULL || control_time(asked, "within_s", &within_ms, err) < 0)
        return NULL;
    return control_accepted(error_set(err, "no host '%s' (%lld ms)", host, (long long)within_ms));
}

static json_t *undrain(void *context, const struct control_asked *asked, struct error *err)
{
    (void)context;
    return control_accepted(control_host(asked, "host", err) == NULL ? -1 : 0);
}

static json_t *add(void *context, const struct control_asked *asked, struct error *err)
{
    const char *hosts = control_text(asked, "hosts", err);
    (void)context;
    bool two = hosts != NULL && strchr(hosts, ',') != NULL;
    return control_accepted(two ? 0 : error_set(err, "not two hosts"));
}

static const struct control_rule *find_rule(void *context, const char *name)
{
    static const struct control_rule rules[] = {{"status", status},
                                                {"stop", stop},
                                                {"signal", send_signal},
                                                {"wait", wait_for_end},
                                                {"drain", drain},
                                                {"undrain", undrain},
                                                {"add", add},
                                                {NULL}};
    (void)context;
    return control_rule_of(rules, name);
}

static json_t *facts_of(const char *id, bool ended)
{
    json_t *facts = json_pack("{s:s, s:s, s:i, s:f}", "job", id, "command", "./train --fast",
                              "size", 2, "started", (double)clock_wall_ns() / 1e9);
    if (ended)
        json_object_update_new(facts,
                               json_pack("{s:f, s:i, s:s, s:[{s:i, s:s, s:s}]}", "ended",
                                         (double)clock_wall_ns() / 1e9, "status", 3, "failure",
                                         "hvdrun: rank 1 exited with code 3\n", "lines", "rank", 1,
                                         "stream", "stderr", "text", "cannot read \x1b[2J"));
    return facts;
}

static void serve(const char *id, int late_ms, int answer_fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct error err = ERROR_INIT;
    struct server server = {id, loop_create(&err)};
    int folder = job_folder_open(&err);
    json_t *facts = facts_of(id, false), *end = facts_of(id, true);
    struct job_record *record = job_record_create(folder, id, facts, &err);
    if (late_ms > 0)
        dprintf(answer_fd, "/");
    poll(NULL, 0, late_ms);
    struct control_answers answers = {id, find_rule, &server};
    struct control *control = control_create(server.loop, folder, &answers, &err);
    if (late_ms == 0)
        dprintf(answer_fd, "%s", control == NULL ? err.text : control_path(control));
    close(answer_fd);
    if (control != NULL)
        loop_run(server.loop);
    job_record_finish(record, end, &err);
    job_record_destroy(record);
    control_finish(control, end);
    control_destroy(control);
    _exit(0);
}

/* `late_ms`: it has a record so long before it has a socket. */
static void start_late_job(struct fixture *f, const char *id, int late_ms)
{
    int ends[2];
    char *path = f->paths[f->count];
    assert_int_equal(fd_pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0)
        serve(id, late_ms, ends[1]);
    fd_close(&ends[1]);
    f->jobs[f->count++] = pid;
    assert_true(read(ends[0], path, sizeof(f->paths[0]) - 1) > 0);
    fd_close(&ends[0]);
    if (path[0] != '/')
        fail_msg("%s", path);
}

static void start_job(struct fixture *f, const char *id)
{
    start_late_job(f, id, 0);
}

static void end_jobs(struct fixture *f)
{
    for (; f->count > 0; f->count--) {
        kill(f->jobs[f->count - 1], SIGKILL);
        assert_int_equal(waitpid(f->jobs[f->count - 1], NULL, 0), f->jobs[f->count - 1]);
    }
}

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    snprintf(f->root, sizeof(f->root), "/tmp/hvd-command-XXXXXX");
    assert_non_null(mkdtemp(f->root));
    assert_int_equal(setenv("TMPDIR", f->root, 1), 0);
    buf_init(&f->out, 1 << 20);
    buf_init(&f->errors, 1 << 20);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    end_jobs(f);
    runtime_dir_remove(f->root);
    unsetenv("TMPDIR");
    buf_destroy(&f->out);
    buf_destroy(&f->errors);
    free(f);
    return 0;
}

static void catch_begin(int fd, int *saved, FILE **file)
{
    *file = tmpfile();
    assert_non_null(*file);
    *saved = dup(fd);
    dup2(fileno(*file), fd);
}

static void catch_end(int fd, int saved, FILE *file, struct buf *text)
{
    char bytes[4096];
    dup2(saved, fd);
    close(saved);
    rewind(file);
    buf_clear(text);
    for (size_t got = fread(bytes, 1, sizeof(bytes), file); got > 0;
         got = fread(bytes, 1, sizeof(bytes), file))
        buf_append(text, bytes, got);
    fclose(file);
}

static int command(struct fixture *f, const char *line)
{
    struct strv argv AUTO_STRV = STRV_INIT;
    FILE *files[2];
    int saved[2];
    strv_add(&argv, "hvdrun");
    for (const char *at = line; *at != '\0';) {
        size_t length = strcspn(at, " ");
        strv_add_n(&argv, at, length);
        at += length + (at[length] == ' ');
    }
    fflush(stdout);
    fflush(stderr);
    for (int i = 0; i < 2; i++)
        catch_begin(i + 1, &saved[i], &files[i]);
    int result = control_command((int)argv.count, argv.items);
    fflush(stderr);
    catch_end(1, saved[0], files[0], &f->out);
    catch_end(2, saved[1], files[1], &f->errors);
    return result;
}

static void succeed(struct fixture *f, const char *line, const char *out)
{
    int result = command(f, line);
    if (result != 0)
        fail_msg("'%s': %d, %s", line, result, buf_text(&f->errors));
    assert_string_equal(buf_text(&f->out), out);
    assert_string_equal(buf_text(&f->errors), "");
}

static void fail_with(struct fixture *f, const char *line, int code, const char *part)
{
    assert_int_equal(command(f, line), code);
    assert_string_equal(buf_text(&f->out), "");
    if (strncmp(buf_text(&f->errors), "hvdrun: ", 8) != 0 ||
        strstr(buf_text(&f->errors), part) == NULL)
        fail_msg("'%s': \"%s\" lacks '%s'", line, buf_text(&f->errors), part);
}

static void test_one_job(void **state)
{
    struct fixture *f = *state;
    start_job(f, "hvdrun-a-1");
    succeed(f, "status", "hvdrun-a-1: running\n");
    succeed(f, "status hvdrun-a-1", "hvdrun-a-1: running\n");
    succeed(f, "status --json", "{\n  \"job\": \"hvdrun-a-1\",\n  \"state\": \"running\"\n}\n");
    succeed(f, "undrain c", "the job may use c again\n");
    succeed(f, "add d:4,e", "the job may use d:4,e\n");
    fail_with(f, "add d:4", 1, "not two hosts");
    fail_with(f, "drain c", 1, "hvdrun: no host 'c' (-1 ms)");
    fail_with(f, "drain c --within 1.5", 1, "(1500 ms)");
    fail_with(f, "drain", STATUS_USAGE, "expected: hvdrun drain HOST");
    fail_with(f, "status nosuch", 1, "found no job 'nosuch' of this user");
    succeed(f, "signal hvdrun-a-1 USR1", "sent USR1\n");
    succeed(f, "signal hvdrun-a-1 USR1 --json", "{\n  \"ok\": true\n}\n");
    fail_with(f, "signal hvdrun-a-1 TERM --ranks 0,2", 1, "signal TERM for 0,2");
    fail_with(f, "stop hvdrun-a-1 --grace 1", 1, "not with this grace");
    assert_int_equal(command(f, "./status"), -1);
    assert_int_equal(command(f, "-- status"), -1);
    assert_int_equal(command(f, "drain --help"), 0);
    assert_non_null(strstr(buf_text(&f->out), "Usage: hvdrun drain [OPTIONS] HOST\n"));
}

static void test_a_job_that_has_just_started(void **state)
{
    struct fixture *f = *state;
    start_late_job(f, "hvdrun-a-1", 200);
    succeed(f, "status", "hvdrun-a-1: running\n");
    start_late_job(f, "hvdrun-a-2", 200);
    succeed(f, "undrain c --job hvdrun-a-2", "the job may use c again\n");
}

static void test_no_job(void **state)
{
    struct fixture *f = *state;
    fail_with(f, "status", 1, "found no running job of this user in ");
    start_job(f, "hvdrun-a-1");
    end_jobs(f);
    fail_with(f, "status", 1,
              "found no running job of this user"); /* a socket, but nobody behind it */
}

/* A part of the output of a command that succeeds. */
static void show(struct fixture *f, const char *line, const char *part)
{
    int result = command(f, line);
    if (result != 0 || strstr(buf_text(&f->out), part) == NULL)
        fail_msg("'%s': %d, \"%s\" lacks '%s'; %s", line, result, buf_text(&f->out), part,
                 buf_text(&f->errors));
}

static void test_end(void **state)
{
    struct fixture *f = *state;
    start_job(f, "hvdrun-a-17");
    start_job(f, "hvdrun-a-18");
    succeed(f, "stop 17 --grace 3", "hvdrun-a-17 ended with status 3\n");
    show(f, "status hvdrun-a-17", "hvdrun-a-17: ended with status 3, ");
    show(f, "status hvdrun-a-17",
         " s\ncommand: ./train --fast\nranks: 2\n"
         "hvdrun: rank 1 exited with code 3\nlast lines:\n"
         "    [1]<stderr>:cannot read ?[2J\n");
    show(f, "status --json hvdrun-a-17", "\"state\": \"ended\"");
    assert_int_equal(command(f, "wait hvdrun-a-17"), 3);
    assert_string_equal(buf_text(&f->out), "hvdrun-a-17 ended with status 3\n");
    fail_with(f, "stop 17", 1,
              "job hvdrun-a-17 does not run any more; 'hvdrun status hvdrun-a-17' shows");
    fail_with(f, "wait hvdrun-b", 125, "found no job 'hvdrun-b'");
    show(f, "ps", "hvdrun-a-18");
    assert_null(strstr(buf_text(&f->out), "hvdrun-a-17"));
    show(f, "ps -a", "hvdrun-a-17  ended, status 3");
    show(f, "ps --all --json", "\"state\": \"ended, status 3\"");
    succeed(f, "stop 18", "hvdrun-a-18 ended with status 3\n");
    fail_with(f, "status", 1, "'hvdrun ps -a' lists the jobs that have ended");
    fail_with(
        f, "status hvdrun-a", 1,
        "'hvdrun-a' matches 2 jobs: hvdrun-a-17 (./train --fast), hvdrun-a-18 (./train --fast)");
}

/* Killed, as SIGKILL kills a driver: nobody says how the job ended. */
static void test_lost(void **state)
{
    struct fixture *f = *state;
    start_job(f, "hvdrun-a-17");
    end_jobs(f);
    show(f, "ps -a", "hvdrun-a-17  lost");
    show(f, "status 17", "hvdrun-a-17: lost: its hvdrun is gone");
    show(f, "status 17 --json", "\"state\": \"lost\"");
    fail_with(f, "wait 17", 125, "job hvdrun-a-17 is lost");
    succeed(f, "ps", "job  state  ranks  hosts  age  last output  command\n");
    succeed(f, "ps --json", "[]\n");
}

/* While it waits for the end, the job is killed. */
static void test_lost_while_waiting(void **state)
{
    struct fixture *f = *state;
    start_job(f, "hvdrun-a-17");
    pid_t killer = fork();
    if (killer == 0) {
        poll(NULL, 0, 200);
        kill(f->jobs[0], SIGKILL);
        _exit(0);
    }
    fail_with(f, "wait", 125, "job hvdrun-a-17 is lost");
    assert_int_equal(waitpid(killer, NULL, 0), killer);
}

/* Between the look at the jobs and the question. */
static void test_lost_before_it_is_asked(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    start_job(f, "hvdrun-a-1");
    end_jobs(f);
    struct job_list list;
    job_list_read(&list);
    assert_int_equal(control_client_dial_in(&list, "hvdrun-a-1", 0, &err), -1);
    job_list_destroy(&list);
    assert_string_equal(err.text, "job hvdrun-a-1 is lost: its hvdrun is gone and did not write "
                                  "how the job ended");
}

static int failure; /* the errno of the next connect(); 0: none */

int connect(int fd, const struct sockaddr *to, socklen_t length)
{
    errno = failure;
    failure = 0;
    return errno != 0 ? -1 : (int)syscall(SYS_connect, fd, to, length);
}

static void test_no_connection(void **state)
{
    struct fixture *f = *state;
    start_job(f, "hvdrun-a-1");
    failure = EINTR;
    succeed(f, "status", "hvdrun-a-1: running\n");
    failure = ENOMEM;
    fail_with(f, "status", 1, "cannot connect to job hvdrun-a-1: Cannot allocate memory");
}

static void test_short_jobs(void **state)
{
    struct fixture *f = *state;
    int folder AUTO_FD = job_folder_open(NULL);
    for (int i = 0; i < 2; i++) {
        char *id AUTO_FREE = mem_printf("hvdrun-a-%d", 20 + i);
        json_t *facts = facts_of(id, true);
        assert_int_equal(job_journal_add(folder, facts, NULL), 0);
        json_decref(facts);
    }
    show(f, "ps -a", "hvdrun-a-20  ended, status 3");
    show(f, "status 21", "hvdrun-a-21: ended with status 3");
    assert_int_equal(command(f, "wait 20"), 3);
}

static void test_several_jobs(void **state)
{
    struct fixture *f = *state;
    start_job(f, "hvdrun-a-1");
    start_job(f, "hvdrun-a-2");
    fail_with(f, "status", 1,
              "2 jobs run here; name one of them: hvdrun-a-1 (./train --fast), hvdrun-a-2 (./train "
              "--fast)");
    fail_with(
        f, "status hvdrun-a", 1,
        "'hvdrun-a' matches 2 jobs: hvdrun-a-1 (./train --fast), hvdrun-a-2 (./train --fast)");
    succeed(f, "status 2", "hvdrun-a-2: running\n");
    succeed(f, "status hvdrun-a-2", "hvdrun-a-2: running\n");
    succeed(f, "undrain c --job hvdrun-a-1", "the job may use c again\n");
    char *line AUTO_FREE = mem_printf("status %s", f->paths[0]);
    succeed(f, line, "hvdrun-a-1: running\n");
    setenv("TMPDIR", "/nonexistent", 1);
    succeed(f, line, "hvdrun-a-1: running\n");
    fail_with(f, "status", 1, "/nonexistent");
    fail_with(f, "status /nonexistent/x.control", 1, "/nonexistent/x.control: No such file");
    setenv("TMPDIR", f->root, 1);
}

/* A folder that somebody else could have made is no place to look in. */
static void test_foreign_folder(void **state)
{
    struct fixture *f = *state;
    start_job(f, "hvdrun-a-1");
    char *base AUTO_FREE = runtime_dir_base();
    assert_int_equal(chmod(base, 0755), 0);
    fail_with(f, "status", 1, "found no running job of this user");
    assert_int_equal(chmod(base, 0700), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(base, 65534, 65534), 0);
        fail_with(f, "status", 1, "found no running job of this user");
        assert_int_equal(chown(base, 0, 0), 0);
    }
    char *folder AUTO_FREE = job_folder_path();
    assert_int_equal(chmod(folder, 0777), 0);
    fail_with(f, "status", 1, "found no running job of this user");
    assert_int_equal(chmod(folder, 0700), 0);
    succeed(f, "status", "hvdrun-a-1: running\n");
}

/* Something listens, takes the request and says what no hvdrun would say. */
static void test_strange_answers(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *says, *error;
    } cases[] = {{"", "without an answer"},
                 {"[1]\n", "cannot read the job's answer"},
                 {"garbage\n", "cannot read the job's answer"},
                 {"{\"error\":\"not today\"}\n", "not today"},
                 {"{\"error\":\"\"}\n", "cannot read the job's answer"},
                 {"{\"error\":\"\\u001b[2J\\u009b2J\"}\n", "hvdrun: ?[2J??2J"},
                 {"{\"half\":", "without an answer"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/strange%zu", f->root, i);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(fd, 1), 0);
        pid_t pid = fork();
        if (pid == 0) {
            char bytes[4096];
            int peer = accept(fd, NULL, NULL);
            ssize_t got = read(peer, bytes, sizeof(bytes));
            _exit(got <= 0 || fd_write_all(peer, cases[i].says, strlen(cases[i].says)) < 0);
        }
        char *line AUTO_FREE = mem_printf("status %s", address.sun_path);
        fail_with(f, line, 1, cases[i].error);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        fd_close(&fd);
        unlink(address.sun_path);
    }
}

/* What should be an object or a text is not. */
static void test_odd_facts(void **state)
{
    struct fixture *f = *state;
    start_job(f, "hvdrun-odd-1");
    show(f, "ps", "\nhvdrun-odd-1  running  0      0      -    -            -         ?\n");
}

/* Suspended: it is there, and says nothing. */
static void test_silent_job(void **state)
{
    struct fixture *f = *state;
    start_job(f, "hvdrun-a-1");
    kill(f->jobs[0], SIGSTOP);
    fail_with(f, "status", 1, "is it suspended?");
    show(f, "ps", "hvdrun-a-1  no answer  2 ");
    kill(f->jobs[0], SIGCONT);
    succeed(f, "status", "hvdrun-a-1: running\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_job, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_job_that_has_just_started, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_job, setup, teardown),
        cmocka_unit_test_setup_teardown(test_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_while_waiting, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_before_it_is_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_connection, setup, teardown),
        cmocka_unit_test_setup_teardown(test_short_jobs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_several_jobs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_foreign_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strange_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_odd_facts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_silent_job, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
