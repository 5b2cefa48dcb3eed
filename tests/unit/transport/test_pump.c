/* SPDX-License-Identifier: Apache-2.0 */
/* The pump over a session that is made of a few variables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "transport/ssh/inside_test.h"

#define LONG_MS 200 /* less than the pump waits for an exit status that does not come */

struct fixture {
    struct loop *loop;
    struct pump *pump;
    struct loop_timer *limit;
    int ends[2], ssh[2];
    const char *output; /* what the host says; then its end */
    int after_end;      /* calls of advance() since then */
    int told_after;     /* so many let the exit status be known */
    bool output_ended, late;
    char why[256];
};

/* The one session there is: the module's functions have no context but this. */
static struct fixture *session_fixture(const struct ssh_session *session)
{
    return (struct fixture *)(uintptr_t)session;
}

static enum ssh_state fake_advance(struct ssh_session *session)
{
    struct fixture *f = session_fixture(session);
    f->after_end += f->output_ended;
    return SSH_STATE_OPEN;
}

static int fake_wants(const struct ssh_session *session)
{
    (void)session;
    return SSH_WANT_READ;
}

static const char *fake_problem(const struct ssh_session *session)
{
    (void)session;
    return "broken";
}

static ssize_t fake_read(struct ssh_session *session, enum ssh_channel channel, void *bytes,
                         size_t room)
{
    struct fixture *f = session_fixture(session);
    if (channel == SSH_CHANNEL_ERR)
        return f->output_ended ? 0 : (errno = EAGAIN, -1);
    size_t length = strlen(f->output);
    assert_true(length <= room);
    memcpy(bytes, f->output, length);
    f->output = "";
    f->output_ended = length == 0;
    return (ssize_t)length;
}

static ssize_t fake_write(struct ssh_session *session, const void *bytes, size_t length)
{
    (void)session;
    (void)bytes;
    return (ssize_t)length;
}

static int fake_send_eof(struct ssh_session *session)
{
    (void)session;
    return 0;
}

static int fake_exit_status(const struct ssh_session *session)
{
    const struct fixture *f = session_fixture(session);
    return f->after_end >= f->told_after ? 3 : -1;
}

static void ended(void *context, const char *why)
{
    struct fixture *f = context;
    snprintf(f->why, sizeof(f->why), "%s", why);
    loop_stop(f->loop);
}

static void limit_passed(void *context)
{
    struct fixture *f = context;
    f->late = true;
}

/* Runs a session whose exit status is known after so many advance() after the output's end. */
static void run(struct fixture *f, int told_after)
{
    static const struct ssh_module module = {.version = SSH_MODULE_VERSION,
                                             .advance = fake_advance,
                                             .wants = fake_wants,
                                             .problem = fake_problem,
                                             .read = fake_read,
                                             .write = fake_write,
                                             .send_eof = fake_send_eof,
                                             .exit_status = fake_exit_status};
    static const struct pump_events events = {.ended = ended};
    struct error err = ERROR_INIT;
    *f = (struct fixture){.output = "last bytes", .told_after = told_after};
    f->loop = loop_create(&err);
    assert_non_null(f->loop);
    assert_int_equal(fd_socketpair(f->ends), 0);
    assert_int_equal(fd_socketpair(f->ssh), 0); /* nothing ever comes on it */
    f->limit = loop_timer_create(f->loop, limit_passed, f);
    f->pump = pump_create(f->loop, &module, (struct ssh_session *)(void *)f, f->ssh[0], f->ends[0],
                          &events, f);
    loop_timer_set(f->limit, LONG_MS);
    loop_run(f->loop);
    pump_destroy(f->pump);
    loop_timer_destroy(f->limit);
    loop_destroy(f->loop);
    char bytes[32];
    assert_int_equal(read(f->ends[1], bytes, sizeof(bytes)), 10);
    assert_int_equal(read(f->ends[1], bytes, sizeof(bytes)), 0);
    close(f->ends[1]);
    close(f->ssh[0]);
    close(f->ssh[1]);
}

/* The status came in one piece with the end of the output: nothing more makes the socket ready. */
static void test_status_with_the_last_bytes(void **state)
{
    (void)state;
    struct fixture f;
    run(&f, 1);
    assert_string_equal(f.why, "the agent's ssh session ended with exit status 3");
    assert_false(f.late);
}

static void test_status_that_never_comes(void **state)
{
    (void)state;
    struct fixture f;
    run(&f, 1000);
    assert_string_equal(f.why, "the agent's ssh session ended");
    assert_true(f.late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status_with_the_last_bytes),
        cmocka_unit_test(test_status_that_never_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
