/* SPDX-License-Identifier: Apache-2.0 */
/* The commands against real control sockets, each served by a process of its own. */
#include <fcntl.h>
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
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/strv.h"
#include "cli/control_command.h"
#include "driver/control/control.h"
#include "node/runtime_dir.h"

struct fixture {
    char root[64];
    pid_t jobs[4];
    size_t count;
    char paths[4][256];
    struct buf out, errors; /* of the last command */
};

static json_t *status(void *context)
{
    return json_pack("{s:s, s:s}", "job", (const char *)context, "state", "running");
}

static int drain(void *context, const char *host, bool has_deadline, int64_t within_ms,
                 struct error *err)
{
    (void)context;
    return error_set(err, "no host '%s' (%d, %lld ms)", host, has_deadline, (long long)within_ms);
}

static int undrain(void *context, const char *host, struct error *err)
{
    (void)context, (void)host, (void)err;
    return 0;
}

static int add(void *context, const struct host_list *hosts, struct error *err)
{
    (void)context;
    return hosts->count == 2 ? 0 : error_set(err, "not two hosts");
}

static const struct control_ops ops = {status, drain, undrain, add};

static void serve(const char *id, int answer_fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct error err = ERROR_INIT;
    struct loop *loop = loop_create(&err);
    struct control *control = control_create(loop, id, &ops, (void *)(uintptr_t)id, &err);
    dprintf(answer_fd, "%s", control == NULL ? err.text : control_path(control));
    close(answer_fd);
    if (control != NULL)
        loop_run(loop);
    _exit(1);
}

static void start_job(struct fixture *f, const char *id)
{
    int ends[2];
    char *path = f->paths[f->count];
    assert_int_equal(fd_pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0)
        serve(id, ends[1]);
    fd_close(&ends[1]);
    f->jobs[f->count++] = pid;
    assert_true(read(ends[0], path, sizeof(f->paths[0]) - 1) > 0);
    fd_close(&ends[0]);
    if (path[0] != '/')
        fail_msg("%s", path);
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
    runtime_dir_sweep();
    assert_int_equal(rmdir(f->root), 0);
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
    fail_with(f, "drain c", 1, "hvdrun: no host 'c' (0, 0 ms)");
    fail_with(f, "drain c --within 1.5", 1, "(1, 1500 ms)");
    fail_with(f, "drain", STATUS_USAGE, "expected: hvdrun drain HOST");
    fail_with(f, "status hvdrun-a-2", 1, "found no elastic job 'hvdrun-a-2' of this user");
    assert_int_equal(command(f, "./status"), -1);
    assert_int_equal(command(f, "-- status"), -1);
    assert_int_equal(command(f, "drain --help"), 0);
    assert_non_null(strstr(buf_text(&f->out), "hvdrun add HOSTS"));
}

static void test_no_job(void **state)
{
    struct fixture *f = *state;
    fail_with(f, "status", 1, "found no elastic job of this user in ");
    start_job(f, "hvdrun-a-1");
    end_jobs(f);
    fail_with(f, "status", 1,
              "found no elastic job of this user"); /* a socket, but nobody behind it */
}

static void test_several_jobs(void **state)
{
    struct fixture *f = *state;
    start_job(f, "hvdrun-a-1");
    start_job(f, "hvdrun-a-2");
    fail_with(f, "status", 1, "2 jobs run here; name one of them: hvdrun-a-");
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
    fail_with(f, "status", 1, "found no elastic job of this user");
    assert_int_equal(chmod(base, 0700), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(base, 65534, 65534), 0);
        fail_with(f, "status", 1, "found no elastic job of this user");
        assert_int_equal(chown(base, 0, 0), 0);
    }
    char *other AUTO_FREE = mem_printf("%s/other", base);
    assert_int_equal(mkdir(other, 0755), 0);
    assert_int_equal(chmod(other, 0777), 0);
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

/* Suspended: it is there, and says nothing. */
static void test_silent_job(void **state)
{
    struct fixture *f = *state;
    start_job(f, "hvdrun-a-1");
    kill(f->jobs[0], SIGSTOP);
    fail_with(f, "status", 1, "is it suspended?");
    kill(f->jobs[0], SIGCONT);
    succeed(f, "status", "hvdrun-a-1: running\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_job, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_job, setup, teardown),
        cmocka_unit_test_setup_teardown(test_several_jobs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_foreign_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strange_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_silent_job, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
