/* SPDX-License-Identifier: Apache-2.0 */
/* Real workers: shell scripts, reaped as an agent does. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/agent_fixture.h"
#include "agent/ending.h"
#include "agent/worker.h"
#include "base/fd.h"
#include "base/status.h"
#include "io/reaper.h"

static bool closes_are_checked; /* only this noun's, although the whole program closes here */

/* In place of the C library's: every descriptor must be closed once. A second close would hit
 * whatever another thread (PMIx has one) has opened under that number meanwhile. */
int close(int fd)
{
    long result = syscall(SYS_close, fd);
    if (closes_are_checked && result < 0 && errno == EBADF)
        abort();
    return (int)result;
}

struct fixture {
    struct bench bench;
    struct loop_signals *signals;
    struct reaper *reaper;
    struct worker_shared shared;
    struct worker worker;
    enum worker_state changes[4];
    int change_count;
    int orphans; /* ended processes that were not the worker */
    sigset_t mask;
    char *argv[4];
    char *envp[2];
    struct child_spec spec;
};

static void on_changed(void *context, struct worker *worker)
{
    struct fixture *f = context;
    assert_ptr_equal(worker, &f->worker);
    assert_true(f->change_count < 4);
    f->changes[f->change_count++] = worker->state;
}

static void on_reaped(void *context, const struct reaper_exit *exit)
{
    struct fixture *f = context;
    if (exit->pid == f->worker.pid && f->worker.state == WORKER_RUNNING)
        worker_exited(&f->worker, exit, false, false);
    else
        f->orphans++;
}

static void on_sigchld(void *context, int signal, int sender)
{
    (void)signal, (void)sender;
    struct fixture *f = context;
    reaper_collect(f->reaper);
}

static void on_frame(struct bench *bench, uint8_t type)
{
    if (type == FRAME_FINISHED)
        loop_stop(bench->loop);
}

static int setup(void **state)
{
    static struct fixture f;
    static const int signals[] = {SIGCHLD, 0};
    f = (struct fixture){.argv = {"sh", "-c", NULL, NULL}};
    bench_open(&f.bench);
    f.bench.frame = on_frame;
    f.signals = loop_signals_create(f.bench.loop, signals, on_sigchld, &f, NULL);
    f.reaper = reaper_create(on_reaped, &f);
    sigemptyset(&f.mask);
    f.shared = (struct worker_shared){.loop = f.bench.loop,
                                      .post = &f.bench.post,
                                      .pool = &f.bench.pool,
                                      .null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC),
                                      .drain_ms = RUN_LIMIT_MS * 2,
                                      .changed = on_changed,
                                      .context = &f};
    f.spec = (struct child_spec){
        .path = "/bin/sh", .argv = f.argv, .envp = f.envp, .keep_fd = -1, .mask = &f.mask};
    worker_init(&f.worker, &f.shared, HEARD_RANK, HEARD_RANK + 100);
    *state = &f;
    return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* No test leaves a process behind that does not end by itself: the alarm would end this one. */
static int teardown(void **state)
{
    struct fixture *f = *state;
    worker_destroy(&f->worker);
    fd_close(&f->shared.null_fd);
    reaper_destroy(f->reaper);
    loop_signals_destroy(f->signals);
    bench_close(&f->bench);
    alarm(RUN_LIMIT_MS / 1000);
    while (wait(NULL) > 0) {
    }
    alarm(0);
    return 0;
}

static int start(struct fixture *f, enum worker_stdin kind)
{
    struct worker_spawn spawn = {.worker = &f->worker, .spec = f->spec, .stdin_kind = kind};
    worker_spawn_run(&spawn);
    return worker_spawn_end(&spawn);
}

static void spawn(struct fixture *f, char *script, enum worker_stdin kind)
{
    f->argv[2] = script;
    assert_string_equal(worker_state_name(f->worker.state), "not started");
    assert_int_equal(start(f, kind), 0);
    assert_true(f->worker.pid > 0);
    assert_int_equal(f->worker.state, WORKER_RUNNING);
}

/* Both ends were told, once each and in this order, and behind all output. */
static void finished(const struct fixture *f)
{
    const struct heard *heard = &f->bench.heard;
    assert_int_equal(heard->exited_count, 1);
    assert_int_equal(heard->finished_count, 1);
    assert_int_equal(buf_text(&heard->types)[heard->types.length - 1], FRAME_FINISHED);
    assert_int_equal(f->change_count, 2);
    assert_int_equal(f->changes[0], WORKER_EXITED);
    assert_int_equal(f->changes[1], WORKER_FINISHED);
    assert_true(heard->in_order);
}

static void run(struct fixture *f, char *script, enum worker_stdin kind)
{
    spawn(f, script, kind);
    run_loop(f->bench.loop);
    finished(f);
    run_turns(f->bench.loop, 5);
    finished(f);
}

static void test_output_and_code(void **state)
{
    struct fixture *f = *state;
    run(f, "echo out; echo err >&2; read x || echo no input; exit 3", WORKER_STDIN_NULL);
    const struct heard *heard = &f->bench.heard;
    assert_string_equal(buf_text(&heard->streams[1]), "out\nno input\n");
    assert_string_equal(buf_text(&heard->streams[2]), "err\n");
    assert_int_equal(heard->ends[1], 1);
    assert_int_equal(heard->ends[2], 1);
    assert_false(heard->exited->signaled);
    assert_int_equal(heard->exited->code, 3);
    assert_false(heard->exited->exec_failed);
    assert_false(heard->cut);
    assert_true(f->worker.bad);
    assert_true(heard->exited->when_ns >= (uint64_t)f->worker.started_ns);
    assert_true(heard->exited->max_rss_kb > 0);
}

static void test_clean_end(void **state)
{
    struct fixture *f = *state;
    run(f, ":", WORKER_STDIN_NULL);
    assert_int_equal(f->bench.heard.exited->code, 0);
    assert_false(f->worker.bad);
    assert_string_equal(worker_state_name(f->worker.state), "finished");
}

static void test_signal(void **state)
{
    struct fixture *f = *state;
    run(f, "kill -KILL $$", WORKER_STDIN_NULL);
    assert_true(f->bench.heard.exited->signaled);
    assert_int_equal(f->bench.heard.exited->code, SIGKILL);
    assert_true(f->worker.bad);
}

/* Its streams end before it does: FINISHED comes with EXITED, and not before. */
static void test_streams_end_first(void **state)
{
    struct fixture *f = *state;
    spawn(f, "exec >&- 2>&-; read x; exit 4", WORKER_STDIN_PIPE);
    while (f->bench.heard.ends[1] + f->bench.heard.ends[2] < 2)
        run_turns(f->bench.loop, 5);
    run_turns(f->bench.loop, 5);
    assert_int_equal(f->bench.heard.finished_count, 0);
    input_bytes(f->worker.input, (const uint8_t *)"\n", 1);
    run_loop(f->bench.loop);
    finished(f);
    assert_int_equal(f->bench.heard.exited->code, 4);
    assert_null(f->worker.drain);
}

static void test_input(void **state)
{
    struct fixture *f = *state;
    spawn(f, "cat; echo end", WORKER_STDIN_PIPE);
    input_bytes(f->worker.input, (const uint8_t *)"one\ntwo\n", 8);
    input_bytes(f->worker.input, NULL, 0);
    run_loop(f->bench.loop);
    finished(f);
    assert_string_equal(buf_text(&f->bench.heard.streams[1]), "one\ntwo\nend\n");
    assert_null(f->worker.input); /* nobody is there any more */
}

static void test_merged_streams(void **state)
{
    struct fixture *f = *state;
    f->shared.merge_stderr = true;
    run(f, "echo a; echo b >&2; echo c", WORKER_STDIN_NULL);
    assert_string_equal(buf_text(&f->bench.heard.streams[1]), "a\nb\nc\n");
    assert_int_equal(f->bench.heard.ends[1], 1);
    assert_int_equal(f->bench.heard.ends[2], 0);
}

static void not_executed(struct fixture *f, int status, const char *text)
{
    run_loop(f->bench.loop);
    finished(f);
    const Hvdrun__Exited *exited = f->bench.heard.exited;
    assert_true(exited->exec_failed);
    assert_int_equal(exited->status, status);
    assert_int_equal(exited->code, status);
    assert_non_null(strstr(exited->text, text));
    assert_int_equal(f->bench.heard.ends[1] + f->bench.heard.ends[2], 0);
    assert_true(f->worker.bad);
    assert_int_equal(f->worker.pid, 0);
}

static void test_not_found(void **state)
{
    struct fixture *f = *state;
    f->spec.path = "/nonexistent/program";
    assert_int_equal(start(f, WORKER_STDIN_PIPE), -1);
    not_executed(f, STATUS_NOT_FOUND, "/nonexistent/program");
}

static void test_no_working_directory(void **state)
{
    struct fixture *f = *state;
    f->argv[2] = ":";
    f->spec.wdir = "/nonexistent/folder";
    f->shared.merge_stderr = true;
    assert_int_equal(start(f, WORKER_STDIN_NULL), -1);
    not_executed(f, STATUS_LAUNCHER, "/nonexistent/folder");
}

static void test_fail(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    error_set(&err, "no MPI server");
    worker_fail(&f->worker, &err);
    not_executed(f, STATUS_LAUNCHER, "no MPI server");
}

static void end_of_group(struct fixture *f)
{
    kill(-f->worker.pid, SIGKILL); /* what the worker has left behind */
    while (f->orphans == 0)
        run_turns(f->bench.loop, 5);
}

/* EXITED at once; FINISHED when the drain limit has cut what a grandchild holds, and it says so. */
/* Its end was asked for before it was tried, and there is nothing to be waited for. */
static void test_an_end_for_one_that_cannot_start(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    worker_begin_end(&f->worker, false, SIGTERM, RUN_LIMIT_MS * 2);
    assert_false(worker_end_is_over(f->worker.end));
    error_status(&err, STATUS_LAUNCHER, "no PMI connection");
    worker_fail(&f->worker, &err);
    assert_true(worker_end_is_over(f->worker.end));
    worker_begin_end(&f->worker, false, SIGTERM, RUN_LIMIT_MS * 2);
    assert_true(worker_end_is_over(f->worker.end));
}

static void has_started(void *context, pid_t pid, const struct error *err)
{
    struct worker *worker = context;
    assert_int_equal(worker_spawned(worker, pid, err), 0);
    worker_signal_pending(worker);
}

/* A spawner that keeps what it takes. */
struct taker {
    struct child_spec spec; /* its descriptors are copies */
    void (*done)(void *context, pid_t pid, const struct error *err);
    void *context; /* NULL: it was cancelled */
};

static bool taker_spawn(void *own, const struct child_spec *spec,
                        void (*done)(void *context, pid_t pid, const struct error *err),
                        void *context)
{
    struct taker *taker = own;
    *taker = (struct taker){*spec, done, context};
    for (int i = 0; i < 3; i++)
        taker->spec.fds[i] = fcntl(spec->fds[i], F_DUPFD_CLOEXEC, 3);
    return true;
}

static void taker_close(struct taker *taker)
{
    for (int i = 0; i < 3; i++)
        fd_close(&taker->spec.fds[i]);
}

static void taker_cancel(void *own, const void *context)
{
    struct taker *taker = own;
    assert_ptr_equal(taker->context, context);
    taker->context = NULL;
}

static void offer(struct fixture *f, struct taker *taker, const struct spawner *spawner)
{
    assert_false(worker_end_early(&f->worker, spawner, SIGTERM));
    assert_true(worker_offer(&f->worker, &f->spec, WORKER_STDIN_PIPE, spawner, has_started));
    assert_int_equal(f->worker.state, WORKER_STARTING);
    assert_ptr_equal(taker->context, &f->worker);
}

static void test_the_end_of_one_that_starts(void **state)
{
    struct fixture *f = *state;
    struct taker taker;
    const struct spawner spawner = {&taker, taker_spawn, taker_cancel};
    f->argv[2] = "exit 0";
    offer(f, &taker, &spawner);
    assert_true(worker_end_early(&f->worker, &spawner, SIGTERM));
    assert_null(taker.context);
    run_loop(f->bench.loop);
    finished(f);
    assert_true(f->bench.heard.exited->signaled);
    assert_int_equal(f->bench.heard.exited->code, SIGTERM);
    assert_false(worker_end_early(&f->worker, &spawner, SIGTERM));
    worker_begin_end(&f->worker, false, SIGTERM, RUN_LIMIT_MS * 2);
    assert_true(worker_end_is_over(f->worker.end));
    taker_close(&taker);
}

static void test_signals_for_one_that_starts(void **state)
{
    struct fixture *f = *state;
    struct taker taker;
    const struct spawner spawner = {&taker, taker_spawn, taker_cancel};
    f->argv[2] = "while :; do sleep 1; done";
    offer(f, &taker, &spawner);
    worker_signal(&f->worker, 0); /* no signals */
    worker_signal(&f->worker, -1000);
    worker_signal(&f->worker, SIGUSR1);
    assert_int_equal(f->change_count, 0);
    taker.done(taker.context, child_spawn(&taker.spec, NULL, NULL), NULL);
    taker_close(&taker);
    run_loop(f->bench.loop);
    finished(f);
    assert_true(f->bench.heard.exited->signaled);
    assert_int_equal(f->bench.heard.exited->code, SIGUSR1);
}

/* It is stopped as soon as it runs, unless it may go on by then. */
static void test_a_stop_for_one_that_starts(void **state)
{
    struct fixture *f = *state;
    struct taker taker;
    const struct spawner spawner = {&taker, taker_spawn, taker_cancel};
    f->argv[2] = "exit 3";
    offer(f, &taker, &spawner);
    worker_signal(&f->worker, SIGSTOP);
    worker_signal(&f->worker, SIGCONT);
    worker_signal(&f->worker, SIGSTOP);
    assert_int_equal(sigismember(&f->worker.pending, SIGSTOP), 1);
    assert_int_equal(sigismember(&f->worker.pending, SIGCONT), 0);
    worker_signal(&f->worker, SIGCONT);
    assert_int_equal(sigismember(&f->worker.pending, SIGSTOP), 0);
    worker_signal(&f->worker, SIGSTOP);
    int hold[2];
    assert_int_equal(fd_pipe(hold), 0);
    char *script AUTO_FREE = mem_printf("read x </proc/%d/fd/%d; exit 3", (int)getpid(), hold[0]);
    f->argv[2] = script;
    pid_t pid = child_spawn(&taker.spec, NULL, NULL);
    taker.done(taker.context, pid, NULL);
    taker_close(&taker);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT), 0);
    assert_int_equal(info.si_status, SIGSTOP);
    assert_int_equal(fd_write_all(hold[1], "\n", 1), 0);
    worker_signal(&f->worker, SIGCONT);
    run_loop(f->bench.loop);
    finished(f);
    assert_int_equal(f->bench.heard.exited->code, 3);
    fd_close(&hold[0]);
    fd_close(&hold[1]);
}

static void test_a_grandchild_holds_the_output(void **state)
{
    struct fixture *f = *state;
    f->shared.drain_ms = 50;
    run(f, "echo last words; sleep 1000 & exit 2", WORKER_STDIN_NULL);
    assert_string_equal(buf_text(&f->bench.heard.streams[1]), "last words\n");
    assert_int_equal(f->bench.heard.exited->code, 2);
    assert_true(f->bench.heard.cut);
    end_of_group(f);
    finished(f);
}

static void test_a_grandchild_that_writes_for_ever(void **state)
{
    struct fixture *f = *state;
    f->shared.drain_ms = 50;
    run(f, "(while :; do echo y; done) & exit 2", WORKER_STDIN_NULL);
    assert_true(f->bench.heard.cut);
    assert_int_equal(f->bench.heard.exited->code, 2);
    assert_int_equal(f->bench.heard.ends[1], 1);
    end_of_group(f);
    finished(f);
}

/* The grandchild ends in time: no cut, and its words are part of the output. */
static void test_a_grandchild_that_ends_in_time(void **state)
{
    struct fixture *f = *state;
    int hold[2];
    assert_int_equal(fd_pipe(hold), 0);
    char *script AUTO_FREE =
        mem_printf("(read x </proc/%d/fd/%d; echo late) & exit 0", (int)getpid(), hold[0]);
    spawn(f, script, WORKER_STDIN_NULL);
    while (f->bench.heard.exited_count == 0)
        run_turns(f->bench.loop, 5);
    assert_int_equal(f->bench.heard.finished_count, 0);
    assert_int_equal(f->worker.state, WORKER_EXITED);
    assert_true(loop_timer_is_set(f->worker.drain));
    assert_int_equal(fd_write_all(hold[1], "\n", 1), 0);
    run_loop(f->bench.loop);
    finished(f);
    assert_false(f->bench.heard.cut);
    assert_string_equal(buf_text(&f->bench.heard.streams[1]), "late\n");
    fd_close(&hold[0]);
    fd_close(&hold[1]);
    while (f->orphans == 0)
        run_turns(f->bench.loop, 5);
}

/* The driver is slow, nobody holds anything: late is not cut, and nothing is lost. */
static void test_drain_limit_without_credit(void **state)
{
    struct fixture *f = *state;
    f->bench.pool.granted = 0;
    f->shared.drain_ms = 0;
    spawn(f, "echo patience", WORKER_STDIN_NULL);
    while (f->bench.heard.exited_count == 0 || loop_timer_is_set(f->worker.drain))
        run_turns(f->bench.loop, 5);
    run_turns(f->bench.loop, 5);
    assert_int_equal(f->bench.heard.finished_count, 0);
    f->bench.pool.granted = 1000;
    stream_pool_resume(&f->bench.pool);
    run_loop(f->bench.loop);
    finished(f);
    assert_string_equal(buf_text(&f->bench.heard.streams[1]), "patience\n");
    assert_false(f->bench.heard.cut);
}

static void test_cut_before_the_exit_does_nothing(void **state)
{
    struct fixture *f = *state;
    spawn(f, "read x; echo still here", WORKER_STDIN_PIPE);
    worker_cut(&f->worker);
    run_turns(f->bench.loop, 5);
    assert_int_equal(f->bench.heard.ends[1], 0);
    input_bytes(f->worker.input, (const uint8_t *)"\n", 1);
    run_loop(f->bench.loop);
    finished(f);
    assert_string_equal(buf_text(&f->bench.heard.streams[1]), "still here\n");
}

/* The signal reaches the whole group, and after the exit nobody. */
static void test_signals(void **state)
{
    struct fixture *f = *state;
    spawn(f,
          "trap 'wait; echo parent; exit 0' USR1; sh -c 'trap \"echo child; exit 0\" USR1; echo "
          "up; while :; do read x || :; done' & "
          "while :; do read x || :; done",
          WORKER_STDIN_NULL);
    while (f->bench.heard.streams[1].length < 3)
        run_turns(f->bench.loop, 5);
    worker_signal(&f->worker, SIGUSR1);
    run_loop(f->bench.loop);
    finished(f);
    assert_string_equal(buf_text(&f->bench.heard.streams[1]), "up\nchild\nparent\n");
    worker_signal(&f->worker, SIGKILL); /* its pid may be somebody else's by now */
}

static void test_error_file(void **state)
{
    struct fixture *f = *state;
    char path[] = "/tmp/test_worker.XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(fd_write_all(fd, "my own account\n", 15), 0);
    fd_close(&fd);
    f->worker.error_file = mem_strdup(path);
    run(f, "exit 1", WORKER_STDIN_NULL);
    unlink(path);
    assert_string_equal(f->bench.heard.exited->text, "my own account\n");
}

static void test_error_file_of_a_success(void **state)
{
    struct fixture *f = *state;
    f->worker.error_file = mem_strdup("/proc/self/status");
    run(f, "exit 0", WORKER_STDIN_NULL);
    assert_string_equal(f->bench.heard.exited->text, "");
}

static void test_missing_error_file(void **state)
{
    struct fixture *f = *state;
    f->worker.error_file = mem_strdup("/nonexistent/error.json");
    run(f, "exit 1", WORKER_STDIN_NULL);
    assert_string_equal(f->bench.heard.exited->text, "");
}

static void test_terminal(void **state)
{
    struct fixture *f = *state;
    f->shared.rows = 33;
    f->shared.columns = 99;
    spawn(f,
          "trap 'stty size; exit 5' WINCH; stty size; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && "
          ": </dev/tty && echo all; while :; do read x; done",
          WORKER_STDIN_TERMINAL);
    while (strstr(buf_text(&f->bench.heard.streams[1]), "all\r\n") == NULL)
        run_turns(f->bench.loop, 5);
    worker_resize(&f->worker, 20, 50);
    run_loop(f->bench.loop);
    finished(f);
    assert_string_equal(buf_text(&f->bench.heard.streams[1]), "33 99\r\nall\r\n20 50\r\n");
    assert_int_equal(f->bench.heard.exited->code, 5);
    assert_int_equal(f->bench.heard.ends[2], 0); /* one stream */
}

static void test_terminal_for_stdout(void **state)
{
    struct fixture *f = *state;
    f->worker.output = WORKER_STDOUT_TERMINAL;
    run(f,
        "[ -t 0 ] || [ -t 2 ] || echo only stdout; stty size <&1; echo err >&2; printf 'a\\tb'; "
        "exit 5",
        WORKER_STDIN_PIPE);
    assert_string_equal(buf_text(&f->bench.heard.streams[1]), "only stdout\n24 80\na\tb");
    assert_string_equal(buf_text(&f->bench.heard.streams[2]), "err\n");
    assert_int_equal(f->bench.heard.exited->code, 5);
    assert_false(f->bench.heard.cut);
}

static void test_terminal_for_both_outputs(void **state)
{
    struct fixture *f = *state;
    f->worker.output = WORKER_STDOUT_EITHER;
    f->shared.merge_stderr = true;
    f->shared.rows = 33;
    f->shared.columns = 99;
    run(f, "stty size <&2; echo err >&2", WORKER_STDIN_NULL);
    assert_string_equal(buf_text(&f->bench.heard.streams[1]), "33 99\nerr\n");
    assert_int_equal(f->bench.heard.ends[2], 0); /* one stream */
}

static void test_a_grandchild_holds_the_terminal(void **state)
{
    struct fixture *f = *state;
    f->worker.output = WORKER_STDOUT_TERMINAL;
    f->shared.drain_ms = 50;
    run(f, "sleep 1000 2>/dev/null & seq 1 3000; exit 2", WORKER_STDIN_NULL);
    assert_non_null(strstr(buf_text(&f->bench.heard.streams[1]), "\n3000\n"));
    assert_int_equal(f->bench.heard.exited->code, 2);
    assert_true(f->bench.heard.cut);
    end_of_group(f);
    finished(f);
}

static void test_destroyed_while_it_runs(void **state)
{
    struct fixture *f = *state;
    spawn(f, "echo x; read x", WORKER_STDIN_PIPE);
    pid_t pid = f->worker.pid;
    worker_destroy(&f->worker);
    worker_destroy(&f->worker);
    kill(-pid, SIGKILL);
    int status;
    while (f->orphans == 0)
        run_turns(f->bench.loop, 5);
    assert_int_equal(waitpid(pid, &status, WNOHANG), -1);
    assert_true(TAILQ_EMPTY(&f->bench.pool.streams));
    assert_int_equal(f->bench.heard.exited_count, 0);
}

/* The driver has gone: the worker's life goes on to its end. */
static void test_without_a_driver(void **state)
{
    struct fixture *f = *state;
    struct link *link = f->bench.post.link;
    f->bench.post.link = NULL;
    spawn(f, "i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done", WORKER_STDIN_NULL);
    while (f->worker.state != WORKER_FINISHED)
        run_turns(f->bench.loop, 5);
    f->bench.post.link = link;
    assert_int_equal(f->change_count, 2);
    assert_false(f->worker.bad);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    closes_are_checked = true;
    const struct CMUnitTest tests[] = {
        TEST(test_output_and_code),
        TEST(test_clean_end),
        TEST(test_signal),
        TEST(test_streams_end_first),
        TEST(test_input),
        TEST(test_merged_streams),
        TEST(test_not_found),
        TEST(test_no_working_directory),
        TEST(test_fail),
        TEST(test_an_end_for_one_that_cannot_start),
        TEST(test_the_end_of_one_that_starts),
        TEST(test_signals_for_one_that_starts),
        TEST(test_a_stop_for_one_that_starts),
        TEST(test_a_grandchild_holds_the_output),
        TEST(test_a_grandchild_that_writes_for_ever),
        TEST(test_a_grandchild_that_ends_in_time),
        TEST(test_drain_limit_without_credit),
        TEST(test_cut_before_the_exit_does_nothing),
        TEST(test_signals),
        TEST(test_error_file),
        TEST(test_error_file_of_a_success),
        TEST(test_missing_error_file),
        TEST(test_terminal),
        TEST(test_terminal_for_stdout),
        TEST(test_terminal_for_both_outputs),
        TEST(test_a_grandchild_holds_the_terminal),
        TEST(test_destroyed_while_it_runs),
        TEST(test_without_a_driver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
