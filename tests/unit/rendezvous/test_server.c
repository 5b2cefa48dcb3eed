/* SPDX-License-Identifier: Apache-2.0 */
/* The server with raw clients, all in one loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "rendezvous/http.h"
#include "rendezvous/server.h"
#include "unit.h"

enum { PATIENCE_MS = 20000, TURN_MS = 2, NOBODY = 65534 };

struct fixture {
    struct loop *loop;
    struct loop_timer *turn;
    struct rendezvous_server *server;
    int requests, dropped, starved;
    uint64_t token, dropped_token;
    char path[64], body[64];
    size_t length;
    const char *at_once; /* answer inside the callback */
};

static const char *const method_names[] = {
#define METHOD_NAME(name, text) [name] = (text),
    RENDEZVOUS_METHOD_LIST(METHOD_NAME)
#undef METHOD_NAME
};

static void on_request(void *context, uint64_t token, const struct rendezvous_request *request)
{
    struct fixture *f = context;
    f->requests++;
    f->token = token;
    f->length = request->length;
    snprintf(f->path, sizeof(f->path), "%s %s/%s", method_names[request->method], request->scope,
             request->key);
    snprintf(f->body, sizeof(f->body), "%.*s", (int)(request->length < 60 ? request->length : 60),
             request->length > 0 ? (const char *)request->body : "");
    if (f->at_once != NULL)
        rendezvous_server_reply(f->server, token, 200, f->at_once, strlen(f->at_once));
}

static void on_dropped(void *context, uint64_t token)
{
    struct fixture *f = context;
    f->dropped++;
    f->dropped_token = token;
}

static void on_starved(void *context, int errnum)
{
    struct fixture *f = context;
    f->starved += errnum == EMFILE ? 1 : 100;
}

static const struct rendezvous_server_ops ops = {
    .request = on_request, .dropped = on_dropped, .starved = on_starved};

static void stop(void *context)
{
    loop_stop(context);
}

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    f->loop = loop_create(NULL);
    f->turn = loop_timer_create(f->loop, stop, f->loop);
    f->server = rendezvous_server_create(f->loop, &ops, f, NULL);
    assert_non_null(f->server);
    assert_in_range(rendezvous_server_port(f->server), 1, 65535);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    rendezvous_server_destroy(f->server);
    loop_timer_destroy(f->turn);
    loop_destroy(f->loop);
    free(f);
    return 0;
}

static void turn(struct fixture *f)
{
    loop_timer_set(f->turn, TURN_MS);
    loop_run(f->loop);
}

/* `buffer` bytes for what comes in; 0: the kernel's choice. */
static int client_open_with(struct fixture *f, int buffer)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)rendezvous_server_port(f->server))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (buffer > 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static int client_open(struct fixture *f)
{
    return client_open_with(f, 0);
}

static void client_send(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void wait_for(struct fixture *f, const int *counter, int value)
{
    int64_t end = unit_limit_ms(PATIENCE_MS);
    while (*counter < value && !unit_is_over(end))
        turn(f);
    assert_int_equal(*counter, value);
}

/* Everything up to the end of the connection, which must come without a reset. */
static void client_read_all(struct fixture *f, int fd, struct buf *out)
{
    int64_t end = unit_limit_ms(PATIENCE_MS);
    while (!unit_is_over(end)) {
        char chunk[65536];
        ssize_t got = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT);
        if (got == 0)
            return;
        if (got > 0)
            assert_int_equal(buf_append(out, chunk, (size_t)got), 0);
        else if (errno == EAGAIN)
            turn(f);
        else
            fail_msg("%s", strerror(errno));
    }
    fail_msg("the connection stays open");
}

static void assert_reads(struct fixture *f, int fd, const char *status, const char *body)
{
    AUTO_BUF struct buf got = BUF_INIT(1 << 20);
    client_read_all(f, fd, &got);
    char want[256];
    snprintf(want, sizeof(want),
             "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", status,
             strlen(body), body);
    assert_string_equal(buf_text(&got), want);
    close(fd);
}

static bool is_closed(int fd)
{
    char byte;
    ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
}

#define GET "GET /global/3 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n"

static void test_answer_later(void **state)
{
    struct fixture *f = *state;
    int fd = client_open(f);
    client_send(fd, GET);
    wait_for(f, &f->requests, 1);
    assert_string_equal(f->path, "GET global/3");
    for (int i = 0; i < 5; i++)
        turn(f);
    assert_false(is_closed(fd));
    rendezvous_server_reply(f->server, f->token, 200, "blob", 4);
    rendezvous_server_reply(f->server, f->token, 404, NULL, 0); /* answered: ignored */
    assert_reads(f, fd, "200 OK", "blob");
    assert_int_equal(f->dropped, 0);
    assert_int_equal(rendezvous_server_counts(f->server)->answered, 1);
}

static void test_answer_at_once(void **state)
{
    struct fixture *f = *state;
    f->at_once = "x";
    for (int i = 1; i <= 40; i++) {
        int fd = client_open(f);
        client_send(fd, "PUT /global/3 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
        wait_for(f, &f->requests, i);
        assert_string_equal(f->path, "PUT global/3");
        assert_string_equal(f->body, "abc");
        assert_reads(f, fd, "200 OK", "x");
    }
}

static void test_byte_by_byte(void **state)
{
    struct fixture *f = *state;
    f->at_once = "";
    int fd = client_open(f);
    const char *text = "DELETE /global/3 HTTP/1.1\r\nContent-Length: 2\r\n\r\nok";
    for (size_t i = 0; text[i] != '\0'; i++) {
        assert_int_equal(f->requests, 0);
        assert_int_equal(send(fd, text + i, 1, MSG_NOSIGNAL), 1);
        turn(f);
    }
    wait_for(f, &f->requests, 1);
    assert_reads(f, fd, "200 OK", "");
}

/* Accepted sockets inherit the listener's send buffer, which would take a whole answer at once. */
static void shrink_send_buffer(struct fixture *f)
{
    int found = 0, small = 4096;
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_in address = {0};
        socklen_t length = sizeof(address);
        if (getsockname(fd, (struct sockaddr *)&address, &length) == 0 &&
            address.sin_family == AF_INET &&
            ntohs(address.sin_port) == rendezvous_server_port(f->server) &&
            setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)) == 0)
            found++;
    }
    assert_int_equal(found, 1);
}

static void test_longest_body_and_slow_reader(void **state)
{
    struct fixture *f = *state;
    shrink_send_buffer(f);
    char *body = mem_alloc(RENDEZVOUS_BODY_MAX), head[100];
    for (size_t i = 0; i < RENDEZVOUS_BODY_MAX; i++)
        body[i] = (char)(i * 7 + i / 251);
    int fd = client_open_with(f, 65536);
    snprintf(head, sizeof(head), "PUT /s/0 HTTP/1.1\r\nContent-Length: %d\r\n\r\n",
             RENDEZVOUS_BODY_MAX);
    client_send(fd, head);
    for (size_t sent = 0; sent < RENDEZVOUS_BODY_MAX;) {
        ssize_t n = send(fd, body + sent, RENDEZVOUS_BODY_MAX - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        turn(f);
    }
    wait_for(f, &f->requests, 1);
    assert_int_equal(f->length, RENDEZVOUS_BODY_MAX);
    rendezvous_server_reply(f->server, f->token, 200, body, RENDEZVOUS_BODY_MAX);
    AUTO_BUF struct buf got = BUF_INIT(1 << 21);
    client_read_all(f, fd, &got);
    char want[HTTP_HEAD_MAX];
    size_t length = http_response_head(want, 200, RENDEZVOUS_BODY_MAX);
    assert_int_equal(got.length, length + RENDEZVOUS_BODY_MAX);
    assert_memory_equal(buf_text(&got), want, length);
    assert_memory_equal(buf_text(&got) + length, body, RENDEZVOUS_BODY_MAX);
    close(fd);
    free(body);
}

static void test_malformed(void **state)
{
    struct fixture *f = *state;
    int fd = client_open(f);
    client_send(fd, "hello\r\n");
    shutdown(fd, SHUT_WR);
    assert_reads(f, fd, "400 Bad Request", "");
    assert_int_equal(f->requests, 0);
    assert_int_equal(rendezvous_server_counts(f->server)->malformed, 1);
}

/* The refusal is readable although the client goes on sending a body that nobody wants. */
static void test_refusal_survives_unread_bytes(void **state)
{
    struct fixture *f = *state;
    int fd = client_open(f);
    char *body = mem_alloc(300000);
    client_send(fd, "PUT /s/0 HTTP/1.1\r\nContent-Length: 300000000\r\n\r\n");
    for (int i = 0; i < 8; i++) {
        send(fd, body, 300000, MSG_DONTWAIT | MSG_NOSIGNAL);
        turn(f);
    }
    shutdown(fd, SHUT_WR);
    assert_reads(f, fd, "413 Content Too Large", "");
    free(body);
}

static void test_dropped_client(void **state)
{
    struct fixture *f = *state;
    int first = client_open(f);
    client_send(first, GET);
    wait_for(f, &f->requests, 1);
    uint64_t token = f->token;
    close(first);
    wait_for(f, &f->dropped, 1);
    assert_true(f->dropped_token == token);
    /* the next connection takes its place, but not its answers */
    int second = client_open(f);
    client_send(second, GET);
    wait_for(f, &f->requests, 2);
    assert_true(f->token != token);
    rendezvous_server_reply(f->server, token, 200, "late", 4);
    rendezvous_server_reply(f->server, 999999, 200, "never", 5);
    rendezvous_server_reply(f->server, f->token, 404, NULL, 0);
    assert_reads(f, second, "404 Not Found", "");
    /* one that goes in the middle of its request was never handed out */
    int third = client_open(f);
    client_send(third, "GET /global");
    turn(f);
    close(third);
    for (int i = 0; i < 5; i++)
        turn(f);
    assert_int_equal(f->dropped, 1);
    assert_int_equal(f->requests, 2);
}

static void test_idle_client_is_closed(void **state)
{
    struct fixture *f = *state;
    rendezvous_server_limit(f->server, 100, 0);
    int waiting = client_open(f);
    client_send(waiting, GET);
    wait_for(f, &f->requests, 1);
    int silent = client_open(f), half = client_open(f);
    client_send(half, "GET /global");
    AUTO_BUF struct buf nothing = BUF_INIT(100);
    client_read_all(f, silent, &nothing);
    client_read_all(f, half, &nothing);
    assert_int_equal(nothing.length, 0);
    assert_int_equal(rendezvous_server_counts(f->server)->late, 2);
    assert_false(is_closed(waiting)); /* an answer may take as long as it likes */
    rendezvous_server_reply(f->server, f->token, 200, "x", 1);
    assert_reads(f, waiting, "200 OK", "x");
    close(silent);
    close(half);
}

/* A byte now and then is no reason to stay, neither of a request nor of an answer. */
static void test_a_dripping_client_is_closed(void **state)
{
    struct fixture *f = *state;
    rendezvous_server_limit(f->server, 200, 0);
    int fd = client_open(f);
    client_send(fd, "GET /global/0 HTTP/1.1\r\nX: ");
    int64_t end = unit_limit_ms(PATIENCE_MS);
    while (rendezvous_server_counts(f->server)->late == 0 && !unit_is_over(end)) {
        send(fd, "x", 1, MSG_NOSIGNAL);
        turn(f);
    }
    assert_int_equal(rendezvous_server_counts(f->server)->late, 1);
    close(fd);

    char *body = mem_alloc(RENDEZVOUS_BODY_MAX), some[4096];
    shrink_send_buffer(f);
    fd = client_open_with(f, 4096);
    client_send(fd, GET);
    wait_for(f, &f->requests, 1);
    rendezvous_server_reply(f->server, f->token, 200, body, RENDEZVOUS_BODY_MAX);
    while (rendezvous_server_counts(f->server)->late == 1 && !unit_is_over(end)) {
        assert_true(recv(fd, some, 512, MSG_DONTWAIT) != 0);
        turn(f);
    }
    assert_int_equal(rendezvous_server_counts(f->server)->late, 2);
    free(body);
    close(fd);
}

/* Who has been sending the longest makes room; who waits for an answer never does. */
static void test_the_slowest_makes_room(void **state)
{
    struct fixture *f = *state;
    enum { SLOW = 3 };
    int slow[SLOW];
    rendezvous_server_limit(f->server, 0, SLOW + 1);
    int waiting = client_open(f);
    client_send(waiting, GET);
    wait_for(f, &f->requests, 1);
    uint64_t token = f->token;
    for (int i = 0; i < SLOW; i++) {
        slow[i] = client_open(f);
        client_send(slow[i], "PUT /global");
        turn(f);
    }
    for (int i = 0; i < SLOW - 1; i++) {
        int fd = client_open(f);
        f->at_once = "x";
        client_send(fd, GET);
        assert_reads(f, fd, "200 OK", "x");
        assert_true(is_closed(slow[0]));
        assert_false(is_closed(slow[SLOW - 1]));
        client_send(slow[SLOW - 1], "/"); /* one more: all places are taken again */
        int again = client_open(f);
        client_send(again, "PUT /global");
        turn(f);
    }
    assert_in_range(rendezvous_server_counts(f->server)->pushed_out, 1, SLOW);
    assert_false(is_closed(waiting));
    rendezvous_server_reply(f->server, token, 200, "y", 1);
    assert_reads(f, waiting, "200 OK", "y");
}

/* Bodies that never end are not kept beyond a limit, however many there are. */
static void test_bound_on_bytes(void **state)
{
    struct fixture *f = *state;
    enum { CLIENTS = 96, SENT = 1000 * 1000 };
    int fds[CLIENTS];
    char *piece = mem_alloc(SENT);
    memset(piece, 'x', SENT);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client_open(f);
        client_send(fds[i], "PUT /global/0 HTTP/1.1\r\nContent-Length: 1040000\r\n\r\n");
        for (size_t sent = 0; sent < SENT;) {
            ssize_t n = send(fds[i], piece + sent, SENT - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (n < 0 && errno != EAGAIN)
                break;
            sent += n > 0 ? (size_t)n : 0;
            turn(f);
        }
    }
    assert_in_range(rendezvous_server_counts(f->server)->pushed_out, 96 - 66, CLIENTS);
    f->at_once = "x";
    int fd = client_open(f);
    client_send(fd, GET);
    assert_reads(f, fd, "200 OK", "x");
    for (int i = 0; i < CLIENTS; i++)
        close(fds[i]);
    free(piece);
}

static void test_bound_on_connections(void **state)
{
    struct fixture *f = *state;
    enum { CLIENTS = 6 };
    int fds[CLIENTS];
    rendezvous_server_limit(f->server, 0, 2);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client_open(f);
        client_send(fds[i], GET);
    }
    wait_for(f, &f->requests, 2);
    for (int i = 0; i < 5; i++)
        turn(f);
    assert_int_equal(f->requests, 2);
    f->at_once = "x"; /* the others are served as soon as one of the two goes */
    rendezvous_server_reply(f->server, f->token, 200, "x", 1);
    wait_for(f, &f->requests, CLIENTS);
    assert_int_equal(rendezvous_server_counts(f->server)->accepted, CLIENTS);
    for (int i = 0; i < CLIENTS; i++)
        close(fds[i]);
}

static void test_other_user_is_refused(void **state)
{
    struct fixture *f = *state;
    if (geteuid() != 0)
        skip();
    rendezvous_server_limit(f->server, 0, 1);
    int ours = client_open(f);
    client_send(ours, "GET /global");
    turn(f);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        int fd = setuid(NOBODY) == 0 ? client_open(f) : -1;
        ssize_t sent = send(fd, GET, strlen(GET), MSG_NOSIGNAL);
        _exit(sent > 0 && recv(fd, &byte, 1, 0) <= 0 ? 0 : 1);
    }
    int status;
    while (waitpid(child, &status, WNOHANG) == 0)
        turn(f);
    assert_int_equal(status, 0);
    assert_int_equal(f->requests, 0);
    assert_int_equal(rendezvous_server_counts(f->server)->refused, 1);
    assert_false(is_closed(ours)); /* a stranger pushes nobody out */
    close(ours);
}

/* A client that goes, or stops reading, in the middle of its answer. */
static void test_answer_that_nobody_reads(void **state)
{
    struct fixture *f = *state;
    char *body = mem_alloc(RENDEZVOUS_BODY_MAX);
    shrink_send_buffer(f);
    rendezvous_server_limit(f->server, 100, 0);
    int gone = client_open_with(f, 65536), stuck = client_open_with(f, 65536);
    client_send(gone, GET);
    wait_for(f, &f->requests, 1);
    rendezvous_server_reply(f->server, f->token, 200, body, RENDEZVOUS_BODY_MAX);
    close(gone);
    client_send(stuck, GET);
    wait_for(f, &f->requests, 2);
    rendezvous_server_reply(f->server, f->token, 200, body, RENDEZVOUS_BODY_MAX);
    int64_t end = unit_limit_ms(PATIENCE_MS);
    while (rendezvous_server_counts(f->server)->late == 0 && !unit_is_over(end))
        turn(f);
    assert_int_equal(rendezvous_server_counts(f->server)->late, 1);
    assert_int_equal(f->dropped, 0); /* both were answered */
    close(stuck);
    free(body);
}

/* Without a free descriptor a client waits in the kernel's queue until there is one. Its owner
 * learns of it, once. */
static void test_out_of_descriptors(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, none;
    int fd = client_open(f), free_fd = dup(0);
    client_send(fd, GET);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)free_fd;
    close(free_fd);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (int i = 0; i < 5; i++)
        turn(f);
    assert_int_equal(f->requests, 0);
    assert_int_equal(f->starved, 0);
    wait_for(f, &f->starved, 1);
    for (int64_t end = unit_limit_ms(300); !unit_is_over(end);)
        turn(f);
    assert_int_equal(f->starved, 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    wait_for(f, &f->requests, 1);
    rendezvous_server_reply(f->server, f->token, 200, "x", 1);
    assert_reads(f, fd, "200 OK", "x");
}

static void test_destroy_with_clients(void **state)
{
    struct fixture *f = *state;
    int waiting = client_open(f), half = client_open(f);
    client_send(waiting, GET);
    client_send(half, "GET");
    wait_for(f, &f->requests, 1);
    turn(f);
    rendezvous_server_destroy(f->server);
    f->server = NULL;
    assert_true(is_closed(waiting));
    assert_true(is_closed(half));
    assert_int_equal(f->dropped, 0);
    close(waiting);
    close(half);
}

/* A client that waits in the kernel's queue is served as soon as the bound is higher. */
static void test_a_higher_bound_counts_at_once(void **state)
{
    struct fixture *f = *state;
    int fds[2];
    rendezvous_server_limit(f->server, 0, 1);
    for (int i = 0; i < 2; i++) {
        fds[i] = client_open(f);
        client_send(fds[i], GET);
    }
    wait_for(f, &f->requests, 1);
    for (int i = 0; i < 5; i++)
        turn(f);
    assert_int_equal(f->requests, 1);
    rendezvous_server_limit(f->server, 0, 2);
    wait_for(f, &f->requests, 2);
    close(fds[0]);
    close(fds[1]);
}

static void test_the_port_is_given_back(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)rendezvous_server_port(f->server))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    rendezvous_server_destroy(f->server);
    f->server = NULL;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), -1);
    assert_int_equal(errno, ECONNREFUSED);
    close(fd);
}

/* The same for one that has sent all of it before anybody looked: its end must not be a reset. */
static void test_refusal_of_what_was_sent_already(void **state)
{
    struct fixture *f = *state;
    int fd = client_open(f);
    char *body = mem_alloc(300000);
    client_send(fd, "PUT /s/0 HTTP/1.1\r\nContent-Length: 300000000\r\n\r\n");
    assert_true(send(fd, body, 300000, MSG_DONTWAIT | MSG_NOSIGNAL) > 100000);
    for (int i = 0; i < 5; i++)
        turn(f);
    AUTO_BUF struct buf got = BUF_INIT(1000);
    char text[1000];
    ssize_t length = recv(fd, text, sizeof(text), MSG_DONTWAIT);
    assert_true(length > 0);
    buf_append(&got, text, (size_t)length);
    assert_non_null(strstr(buf_text(&got), "HTTP/1.1 413 Content Too Large\r\n"));
    assert_int_equal(recv(fd, text, sizeof(text), MSG_DONTWAIT), 0);
    shutdown(fd, SHUT_WR);
    close(fd);
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answer_later, setup, teardown),
        cmocka_unit_test_setup_teardown(test_answer_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_byte_by_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(test_longest_body_and_slow_reader, setup, teardown),
        cmocka_unit_test_setup_teardown(test_malformed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusal_survives_unread_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dropped_client, setup, teardown),
        cmocka_unit_test_setup_teardown(test_idle_client_is_closed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_dripping_client_is_closed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_slowest_makes_room, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bound_on_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bound_on_connections, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_user_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_answer_that_nobody_reads, setup, teardown),
        cmocka_unit_test_setup_teardown(test_out_of_descriptors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_destroy_with_clients, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_higher_bound_counts_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_port_is_given_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusal_of_what_was_sent_already, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
