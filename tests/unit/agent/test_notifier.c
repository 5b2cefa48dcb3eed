/* SPDX-License-Identifier: Apache-2.0 */
/* Against real TCP servers in the same loop, that behave well and badly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/notifier.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "loop_fixture.h"
#include "rendezvous/hex_fixture.h"

enum { REQUEST = HMAC_SIZE + 4 + 85, PEERS = 16, HEAD = HMAC_SIZE + 4 };

static const char key[] = "0123456789abcdef0123456789abcdef";
static const char ack[] = "\x80\x04\x8c\x22horovod.runner.common.util.network\x8c\x0b"
                          "AckResponse\x93)\x81.";

enum manner { RIGHT, SLOW, WRONG_DIGEST, CLOSES, RESETS, SILENT, CUT, NO_ACK };

struct fixture;

struct peer {
    struct fixture *f;
    int fd;
    struct loop_fd *watch;
    struct loop_timer *timer;
    uint8_t request[REQUEST];
    size_t got;
    uint8_t reply[HEAD + sizeof(ack)];
    size_t length, written;
};

struct fixture {
    struct loop *loop;
    struct notifier *notifier;
    int listener;
    struct loop_fd *listener_watch;
    int port;
    enum manner manners[PEERS]; /* of the connections in their order */
    struct peer peers[PEERS];
    int accepted, requests;
    int done, expected;
    uint32_t seats; /* sum */
    uint64_t timestamp;
    char problem[512]; /* of the last one */
    bool inside;       /* notifier_send() */
    bool destroy_in_done;
};

static void on_done(void *context, uint32_t seat, uint64_t timestamp, const char *problem)
{
    struct fixture *f = context;
    assert_false(f->inside);
    f->done++;
    f->seats += seat;
    f->timestamp = timestamp;
    snprintf(f->problem, sizeof(f->problem), "%s", problem == NULL ? "" : problem);
    if (f->destroy_in_done) {
        notifier_destroy(f->notifier);
        f->notifier = NULL;
    }
    if (f->done == f->expected)
        loop_stop(f->loop);
}

static void peer_close(struct peer *peer)
{
    loop_fd_destroy(peer->watch);
    peer->watch = NULL;
    loop_timer_destroy(peer->timer);
    peer->timer = NULL;
    fd_close(&peer->fd);
}

static void peer_send(void *context)
{
    struct peer *peer = context;
    enum manner manner = peer->f->manners[peer - peer->f->peers];
    size_t piece = manner == SLOW ? 1 : peer->length - peer->written;
    if (send(peer->fd, peer->reply + peer->written, piece, MSG_NOSIGNAL) < 0) {
        peer_close(peer);
        return;
    }
    peer->written += piece;
    if (peer->written < peer->length)
        loop_timer_set(peer->timer, 1);
    else
        peer_close(peer);
}

static void peer_answer(struct peer *peer, enum manner manner)
{
    struct linger reset = {.l_onoff = 1};
    uint8_t mac[HMAC_SIZE];
    int32_t length = sizeof(ack) - 1;
    memcpy(&length, peer->request + HMAC_SIZE, 4);
    assert_int_equal(length, REQUEST - HEAD);
    hmac_sha256(key, strlen(key), peer->request + HEAD, (size_t)length, mac);
    assert_memory_equal(mac, peer->request, HMAC_SIZE);
    assert_int_equal(peer->request[REQUEST - 4], 3); /* the result, as a plain integer */
    peer->f->requests++;
    length = sizeof(ack) - 1;
    memcpy(peer->reply + HEAD, ack, sizeof(ack));
    if (manner == NO_ACK)
        peer->reply[HEAD + 46] ^= 1; /* another class, with the right digest */
    hmac_sha256(key, strlen(key), peer->reply + HEAD, (size_t)length, peer->reply);
    peer->reply[0] ^= manner == WRONG_DIGEST ? 1 : 0;
    memcpy(peer->reply + HMAC_SIZE, &length, 4);
    peer->length = HEAD + (size_t)length - (manner == CUT ? 1 : 0);
    if (manner == RESETS)
        setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    if (manner == CLOSES || manner == RESETS)
        peer_close(peer);
    else if (manner != SILENT)
        loop_timer_set(peer->timer, 0);
}

static void peer_ready(void *context, int what)
{
    struct peer *peer = context;
    (void)what;
    ssize_t got = fd_read(peer->fd, peer->request + peer->got, REQUEST - peer->got);
    if (got <= 0) {
        peer_close(peer);
        return;
    }
    peer->got += (size_t)got;
    if (peer->got < REQUEST)
        return;
    loop_fd_watch(peer->watch, 0);
    peer_answer(peer, peer->f->manners[peer - peer->f->peers]);
}

static void listener_ready(void *context, int what)
{
    struct fixture *f = context;
    (void)what;
    assert_true(f->accepted < PEERS);
    struct peer *peer = &f->peers[f->accepted++];
    peer->f = f;
    peer->fd = accept(f->listener, NULL, NULL);
    assert_true(peer->fd >= 0);
    peer->timer = loop_timer_create(f->loop, peer_send, peer);
    peer->watch = loop_fd_create(f->loop, peer->fd, peer_ready, peer);
    loop_fd_watch(peer->watch, LOOP_READ);
}

static void bind_at(struct fixture *f, const char *address)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t length = sizeof(at);
    inet_pton(AF_INET, address, &at.sin_addr);
    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(getsockname(f->listener, (struct sockaddr *)&at, &length), 0);
    f->port = ntohs(at.sin_port);
}

static void listen_at(struct fixture *f, const char *address)
{
    bind_at(f, address);
    assert_int_equal(listen(f->listener, PEERS), 0);
    f->listener_watch = loop_fd_create(f->loop, f->listener, listener_ready, f);
    loop_fd_watch(f->listener_watch, LOOP_READ);
}

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    f->loop = loop_create(NULL);
    f->notifier = notifier_create(f->loop, on_done, f);
    f->listener = -1;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    notifier_destroy(f->notifier);
    for (int i = 0; i < f->accepted; i++)
        peer_close(&f->peers[i]);
    loop_fd_destroy(f->listener_watch);
    fd_close(&f->listener);
    loop_destroy(f->loop);
    free(f);
    return 0;
}

/* What a worker puts, with one address on each interface. */
static char *registration_of(const char *const *addresses, int port)
{
    AUTO_BUF struct buf bytes = BUF_INIT(4096);
    buf_puts(&bytes, "\x80\x04}(");
    for (int i = 0; addresses[i] != NULL; i++) {
        buf_printf(&bytes, "\x8c%ceth%d]\x8c%c%s", 4, i, (int)strlen(addresses[i]), addresses[i]);
        buf_putc(&bytes, 'M');
        buf_putc(&bytes, (char)(port & 255));
        buf_putc(&bytes, (char)(port >> 8));
        buf_puts(&bytes, "\x86"
                         "a");
    }
    buf_printf(&bytes, "uC%c%s\x86.", (int)strlen(key), key);
    return to_base64((const uint8_t *)buf_text(&bytes), bytes.length);
}

static void send_to(struct fixture *f, uint32_t seat, uint64_t timestamp,
                    const char *const *addresses)
{
    char *registration AUTO_FREE = registration_of(addresses, f->port);
    f->inside = true;
    notifier_send(f->notifier, seat, timestamp, 3, (uint8_t *)registration, strlen(registration));
    f->inside = false;
    f->expected++;
}

static const char *const here[] = {"127.0.0.1", NULL};

static void test_right(void **state)
{
    struct fixture *f = *state;
    listen_at(f, "0.0.0.0");
    send_to(f, 7, 1795217027, here);
    run_loop(f->loop);
    assert_string_equal(f->problem, "");
    assert_int_equal(f->seats, 7);
    assert_int_equal(f->timestamp, 1795217027);
    assert_int_equal(f->accepted, 1);
}

static void test_byte_by_byte(void **state)
{
    struct fixture *f = *state;
    listen_at(f, "0.0.0.0");
    f->manners[0] = SLOW;
    send_to(f, 7, 1, here);
    run_loop(f->loop);
    assert_string_equal(f->problem, "");
    assert_int_equal(f->accepted, 1);
}

/* Each way to fail costs a try; the third one is the last. */
static void test_third_try(void **state)
{
    struct fixture *f = *state;
    static const enum manner ways[] = {WRONG_DIGEST, CLOSES, RESETS, CUT, NO_ACK};
    listen_at(f, "0.0.0.0");
    notifier_set_limits(f->notifier, 5000, 5000, 1);
    for (int i = 0; i < 5; i++) {
        f->manners[3 * i] = ways[i];
        f->manners[3 * i + 1] = ways[(i + 1) % 5];
        send_to(f, 1, 100 + (uint64_t)i, here);
        run_loop(f->loop);
        assert_string_equal(f->problem, "");
        assert_int_equal(f->accepted, 3 * (i + 1));
    }
    assert_int_equal(f->done, 5);
}

static void expect_failure(struct fixture *f, enum manner manner, const char *problem)
{
    f->manners[0] = f->manners[1] = f->manners[2] = manner;
    listen_at(f, "0.0.0.0");
    notifier_set_limits(f->notifier, 5000, manner == SILENT ? 30 : 5000, 1);
    send_to(f, 1, 1, here);
    run_loop(f->loop);
    if (strstr(f->problem, problem) == NULL)
        fail_msg("%s", f->problem);
    assert_non_null(strstr(f->problem, "127.0.0.1:"));
    assert_int_equal(f->accepted, NOTIFIER_TRIES);
    assert_int_equal(f->done, 1);
}

static void test_wrong_digest(void **state)
{
    expect_failure(*state, WRONG_DIGEST, "wrong digest");
}

static void test_closes(void **state)
{
    expect_failure(*state, CLOSES, "without an answer");
}

static void test_resets(void **state)
{
    expect_failure(*state, RESETS, "reset by peer");
}

static void test_cut(void **state)
{
    expect_failure(*state, CUT, "without an answer");
}

static void test_no_acknowledgement(void **state)
{
    expect_failure(*state, NO_ACK, "not an acknowledgement");
}

static void test_silent(void **state)
{
    expect_failure(*state, SILENT, "within the time limit");
}

static void test_refuses(void **state)
{
    struct fixture *f = *state;
    bind_at(f, "127.0.0.1"); /* but does not listen */
    notifier_set_limits(f->notifier, 5000, 5000, 1);
    send_to(f, 1, 1, here);
    run_loop(f->loop);
    assert_non_null(strstr(f->problem, "Connection refused"));
}

/* Loopback first, then what was registered. */
static void test_other_address(void **state)
{
    struct fixture *f = *state;
    static const char *const addresses[] = {"127.0.0.1", "127.0.0.3", "127.0.0.2", NULL};
    notifier_set_limits(f->notifier, 5000, 5000, 1);
    listen_at(f, "127.0.0.2");
    send_to(f, 1, 1, addresses);
    run_loop(f->loop);
    assert_string_equal(f->problem, "");
    assert_int_equal(f->accepted, 1);
}

static void test_unreadable(void **state)
{
    struct fixture *f = *state;
    f->inside = true;
    notifier_send(f->notifier, 9, 5, 3, (const uint8_t *)"gAV9Lg==", 8);
    notifier_send(f->notifier, 1, 5, 3, NULL, 0);
    f->inside = false;
    f->expected = 2;
    run_loop(f->loop);
    assert_non_null(strstr(f->problem, "registration cannot be read"));
    assert_int_equal(f->seats, 10);
}

static void test_several_at_once(void **state)
{
    struct fixture *f = *state;
    listen_at(f, "0.0.0.0");
    for (int i = 0; i < PEERS; i++) {
        f->manners[i] = i % 2 == 0 ? SLOW : RIGHT;
        send_to(f, 1u << i, 1, here);
    }
    run_loop(f->loop);
    assert_int_equal(f->seats, (1u << PEERS) - 1); /* each once */
    assert_int_equal(f->requests, PEERS);
}

/* The worker is slow, and gets the first one later than it would have got the second. */
static void test_another_for_the_same_worker(void **state)
{
    struct fixture *f = *state;
    listen_at(f, "0.0.0.0");
    f->manners[0] = SLOW;
    send_to(f, 1, 1, here);
    send_to(f, 1, 2, here);
    f->expected = 1;
    run_loop(f->loop);
    run_turns(f->loop, 20);
    assert_int_equal(f->timestamp, 1);
    assert_int_equal(f->accepted, 1);
    send_to(f, 1, 3, here); /* its turn again */
    run_loop(f->loop);
    assert_int_equal(f->timestamp, 3);
}

static void test_destroy(void **state)
{
    struct fixture *f = *state;
    listen_at(f, "0.0.0.0");
    f->destroy_in_done = true;
    f->manners[1] = f->manners[2] = SILENT;
    send_to(f, 1, 1, here);
    send_to(f, 2, 1, here);
    send_to(f, 4, 1, here);
    f->expected = 1;
    run_loop(f->loop);
    run_turns(f->loop, 20);
    assert_int_equal(f->done, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_right, setup, teardown),
        cmocka_unit_test_setup_teardown(test_byte_by_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(test_third_try, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_digest, setup, teardown),
        cmocka_unit_test_setup_teardown(test_closes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_resets, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_acknowledgement, setup, teardown),
        cmocka_unit_test_setup_teardown(test_silent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_address, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unreadable, setup, teardown),
        cmocka_unit_test_setup_teardown(test_several_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_for_the_same_worker, setup, teardown),
        cmocka_unit_test_setup_teardown(test_destroy, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
