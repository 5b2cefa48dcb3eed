/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server over real sockets: what is asked, and what a client may do wrong. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "io/http_server.h"
#include "loop_fixture.h"
#include "unit.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\nAccept: some/type\r\n\r\n"

struct fixture {
    char folder[64];
    struct loop *loop;
    struct http_server *server;
    struct listen_address address;
    struct http_request *held; /* that of /later */
    char asked[256];           /* "PATH QUERY ACCEPT HOST" of the last one */
    int socket;                /* likewise */
    int count;
};

static void asked(void *context, struct http_request *request, const struct http_question *question)
{
    struct fixture *f = context;
    snprintf(f->asked, sizeof(f->asked), "%s %s %s %s", question->path,
             question->query == NULL ? "-" : question->query, question->accept, question->host);
    f->count++;
    f->socket = http_request_socket(request);
    if (strcmp(question->path, "/own") == 0)
        http_request_header(request, "Content-Security-Policy", "default-src 'self'");
    if (strcmp(question->path, "/later") == 0)
        f->held = request;
    else
        http_request_answer(request, 200, "text/plain", "hello\n", 6);
}

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){.folder = "/tmp/hvdrun-unit-http-XXXXXX", .loop = loop_create(NULL)};
    signal(SIGPIPE, SIG_IGN); /* as the driver does */
    assert_non_null(mkdtemp(f.folder));
    char *path AUTO_FREE = mem_printf("%s/s", f.folder);
    assert_int_equal(listen_address_parse(path, &f.address, NULL), 0);
    f.server = http_server_create(f.loop, &f.address, asked, &f, NULL);
    assert_non_null(f.server);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    http_server_destroy(f->server);
    run_turns(f->loop, 3);
    loop_destroy(f->loop);
    rmdir(f->folder);
    return 0;
}

static int dial(const struct fixture *f)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(connect(fd, &f->address.at.any, f->address.length), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(fd_send_all(fd, text, strlen(text)), 0);
}

/* All that comes until the server closes; the caller's. */
static char *read_all(struct fixture *f, int fd)
{
    struct buf out = BUF_INIT(1 << 20);
    for (int turns = 0; turns < RUN_LIMIT_MS / 4; turns++) {
        char bytes[4096];
        ssize_t got = fd_read(fd, bytes, sizeof(bytes));
        if (got == 0 || (got < 0 && errno != EAGAIN))
            return buf_take(&out);
        if (got > 0)
            buf_append(&out, bytes, (size_t)got);
        run_turns(f->loop, 1);
        unit_pause();
    }
    fail_msg("the server does not close");
    return NULL;
}

static void expect(struct fixture *f, int fd, const char *begin, const char *part)
{
    char *text AUTO_FREE = read_all(f, fd);
    if (strncmp(text, begin, strlen(begin)) != 0 || strstr(text, part) == NULL)
        fail_msg("got '%s'", text);
}

static void test_get(void **state)
{
    struct fixture *f = *state;
    int fd AUTO_FD = dial(f);
    say(fd, GET("/metrics?a=b"));
    expect(f, fd, "HTTP/1.1 200 ", "\r\n\r\nhello\n");
    assert_string_equal(f->asked, "/metrics a=b some/type x");
    assert_true(f->socket >= 0);
}

/* A browser loads nothing for an answer that does not say so. */
static void test_policy(void **state)
{
    struct fixture *f = *state;
    int fd AUTO_FD = dial(f), other AUTO_FD = dial(f);
    say(fd, GET("/now"));
    expect(f, fd, "HTTP/1.1 200 ",
           "\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n");
    say(other, GET("/own"));
    expect(f, other, "HTTP/1.1 200 ", "Content-Security-Policy: default-src 'self'\r\n");
}

/* The loop runs no more, and the client gets its answer all the same. */
static void test_flush(void **state)
{
    struct fixture *f = *state;
    char bytes[4096] = "";
    int fd AUTO_FD = dial(f);
    say(fd, GET("/later"));
    run_until(f->loop, f->held != NULL);
    http_request_answer(f->held, 200, "text/plain", "the end\n", 8);
    http_server_flush(f->server);
    http_server_destroy(f->server);
    f->server = NULL;
    assert_true(fd_read(fd, bytes, sizeof(bytes) - 1) > 0);
    assert_non_null(strstr(bytes, "\r\n\r\nthe end\n"));
}

static void test_later(void **state)
{
    struct fixture *f = *state;
    int fd AUTO_FD = dial(f), other AUTO_FD = dial(f);
    say(fd, GET("/later"));
    say(other, GET("/now"));
    expect(f, other, "HTTP/1.1 200 ", "hello");
    assert_non_null(f->held);
    http_request_answer(f->held, 404, "text/plain", "no\n", 3);
    expect(f, fd, "HTTP/1.1 404 ", "no\n");
}

/* The server goes while somebody waits: nothing of it is left, and nothing crashes. */
static void test_end_with_open_requests(void **state)
{
    struct fixture *f = *state;
    int fd AUTO_FD = dial(f), idle AUTO_FD = dial(f);
    say(fd, GET("/later"));
    run_until(f->loop, f->held != NULL);
    http_server_destroy(f->server);
    f->server = NULL;
    expect(f, fd, "", "");
    assert_int_equal(access(f->address.at.local.sun_path, F_OK), -1);
}

/* A client that has gone: the answer goes nowhere. */
static void test_gone_client(void **state)
{
    struct fixture *f = *state;
    int fd = dial(f);
    say(fd, GET("/later"));
    run_until(f->loop, f->held != NULL);
    fd_close(&fd);
    run_turns(f->loop, 5);
    http_request_answer(f->held, 200, "text/plain", "late\n", 5);
    run_turns(f->loop, 5);
    fd = dial(f);
    say(fd, GET("/x"));
    expect(f, fd, "HTTP/1.1 200 ", "hello");
    fd_close(&fd);
}

static void test_head(void **state)
{
    struct fixture *f = *state;
    int fd AUTO_FD = dial(f);
    say(fd, "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    char *text AUTO_FREE = read_all(f, fd);
    assert_non_null(strstr(text, "HTTP/1.1 200 "));
    assert_non_null(strstr(text, "\r\nContent-Length: 6\r\n"));
    assert_null(strstr(text, "hello"));
    assert_int_equal(f->count, 1);
}

static void test_other_methods(void **state)
{
    struct fixture *f = *state;
    static const char *const methods[] = {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"};
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        int fd AUTO_FD = dial(f);
        char *request AUTO_FREE =
            mem_printf("%s /x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", methods[i]);
        say(fd, request);
        expect(f, fd, "HTTP/1.1 405 ", "\r\nAllow: GET, HEAD\r\n");
    }
    assert_int_equal(f->count, 0);
}

static void test_nonsense(void **state)
{
    struct fixture *f = *state;
    static const char *const requests[] = {"\r\n\r\nrubbish\r\n\r\n", "GET\r\n\r\n",
                                           "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
                                           "DELETE / HTTP/1.1\r\n\r\n", "GET / HTTP/9.9\r\n\r\n"};
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        int fd AUTO_FD = dial(f);
        say(fd, requests[i]);
        shutdown(fd, SHUT_WR);
        char *text AUTO_FREE = read_all(f, fd);
        assert_null(strstr(text, "200 "));
    }
    int fd AUTO_FD = dial(f);
    char *header AUTO_FREE = mem_alloc(HTTP_SERVER_HEADERS_MAX + 2);
    memset(header, 'x', HTTP_SERVER_HEADERS_MAX + 1);
    say(fd, "GET / HTTP/1.1\r\nA: ");
    say(fd, header);
    shutdown(fd, SHUT_WR);
    char *text AUTO_FREE = read_all(f, fd);
    assert_null(strstr(text, "200 "));
    assert_int_equal(f->count, 0);
}

/* The next ones wait, and get their turn. */
static void test_many(void **state)
{
    struct fixture *f = *state;
    enum { MANY = HTTP_CONNECTIONS_MAX + 10 };
    int fds[MANY];
    for (int i = 0; i < MANY; i++)
        fds[i] = dial(f);
    run_turns(f->loop, 50);
    say(fds[MANY - 1], GET("/last"));
    run_turns(f->loop, 50);
    assert_int_equal(f->count, 0); /* it is not accepted yet */
    for (int i = 0; i < MANY - 1; i++)
        fd_close(&fds[i]);
    expect(f, fds[MANY - 1], "HTTP/1.1 200 ", "hello");
    fd_close(&fds[MANY - 1]);
}

static void test_sockets(void **state)
{
    struct fixture *f = *state;
    struct stat info;
    struct error err = ERROR_INIT;
    const char *path = f->address.at.local.sun_path;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_null(http_server_create(f->loop, &f->address, asked, f, &err)); /* it is served */
    assert_non_null(strstr(err.text, "cannot listen on unix:"));
    assert_int_equal(access(path, F_OK), 0);
    http_server_destroy(f->server);
    f->server = NULL;
    int fd AUTO_FD =
        socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); /* left by one that was killed */
    assert_int_equal(bind(fd, &f->address.at.any, f->address.length), 0);
    f->server = http_server_create(f->loop, &f->address, asked, f, &err);
    assert_non_null(f->server);
    struct listen_address any;
    assert_int_equal(listen_address_parse("0", &any, NULL), 0);
    struct http_server *other = http_server_create(f->loop, &any, asked, f, &err);
    assert_non_null(other);
    assert_int_equal(strncmp(http_server_url(other), "http://127.0.0.1:", 17), 0);
    assert_true(strtol(http_server_url(other) + 17, NULL, 10) > 0);
    http_server_destroy(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_get, setup, teardown),
        cmocka_unit_test_setup_teardown(test_policy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_later, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flush, setup, teardown),
        cmocka_unit_test_setup_teardown(test_end_with_open_requests, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gone_client, setup, teardown),
        cmocka_unit_test_setup_teardown(test_head, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_methods, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nonsense, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sockets, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
