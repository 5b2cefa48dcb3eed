/* SPDX-License-Identifier: Apache-2.0 */
/* The TLS module, and its sessions as plain streams; both ends in one process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/tls_fixture.h"
#include "io/tls_stream.h"
#include "loop_fixture.h"

#define KEY 0x17
#define NAME "hvdrun:job-1:node1"

/* Handshakes */

struct pair {
    struct tls_party *server_party, *client_party;
    struct tls_end server, client;
};

static void pair_open(struct pair *pair, uint8_t client_key, const char *identity,
                      uint64_t rekey_bytes)
{
    int ends[2];
    assert_int_equal(fd_socketpair(ends), 0);
    pair->server_party = tls_fixture_party(true, KEY, NULL, rekey_bytes);
    pair->client_party = tls_fixture_party(false, client_key, identity, rekey_bytes);
    pair->server = tls_fixture_end(pair->server_party, ends[0]);
    pair->client = tls_fixture_end(pair->client_party, ends[1]);
    tls_fixture_shake(&pair->client, &pair->server);
}

static void pair_close_parties(struct pair *pair)
{
    tls_fixture_module()->party_destroy(pair->server_party);
    tls_fixture_module()->party_destroy(pair->client_party);
}

static void pair_close(struct pair *pair)
{
    tls_fixture_close(&pair->server);
    tls_fixture_close(&pair->client);
    pair_close_parties(pair);
}

static enum tls_state state_of(struct tls_end *end)
{
    return end->module->advance(end->session);
}

static void test_same_key(void **state)
{
    struct pair pair;
    char bytes[8] = "";
    (void)state;
    pair_open(&pair, KEY, NAME, 0);
    assert_int_equal(state_of(&pair.server), TLS_OPEN);
    assert_int_equal(state_of(&pair.client), TLS_OPEN);
    assert_string_equal(pair.server.module->identity(pair.server.session), NAME);
    assert_int_equal(pair.client.module->write(pair.client.session, "ping", 4), 4);
    assert_int_equal(pair.server.module->read(pair.server.session, bytes, sizeof(bytes)), 4);
    assert_memory_equal(bytes, "ping", 4);
    assert_int_equal(pair.server.module->read(pair.server.session, bytes, sizeof(bytes)), -1);
    assert_int_equal(errno, EAGAIN);
    pair.client.module->end(pair.client.session);
    assert_int_equal(pair.server.module->read(pair.server.session, bytes, sizeof(bytes)), 0);
    pair_close(&pair);
}

static void test_wrong_key(void **state)
{
    struct pair pair;
    (void)state;
    pair_open(&pair, KEY + 1, NAME, 0);
    assert_int_equal(state_of(&pair.server), TLS_FAILED);
    assert_true(pair.server.module->has_wrong_key(pair.server.session));
    assert_string_equal(pair.server.module->problem(pair.server.session),
                        "it does not have the key of this job");
    assert_string_equal(pair.server.module->identity(pair.server.session), "");
    assert_int_equal(state_of(&pair.client), TLS_FAILED);
    pair_close(&pair);
}

static void test_identity_that_cannot_be_shown(void **state)
{
    struct pair pair;
    (void)state;
    pair_open(&pair, KEY, "hvdrun:job-1:a\nb", 0);
    assert_int_equal(state_of(&pair.server), TLS_FAILED);
    assert_int_equal(state_of(&pair.client), TLS_FAILED);
    pair_close(&pair);
}

/* The server is given `bytes` and then the end of the stream, or silence. */
static enum tls_state state_after(const void *bytes, size_t length, bool ends)
{
    struct tls_party *party = tls_fixture_party(true, KEY, NULL, 0);
    int ends_of[2];
    assert_int_equal(fd_socketpair(ends_of), 0);
    struct tls_end server = tls_fixture_end(party, ends_of[0]);
    assert_int_equal(write(ends_of[1], bytes, length), (ssize_t)length);
    if (ends)
        shutdown(ends_of[1], SHUT_WR);
    enum tls_state state = TLS_HANDSHAKE;
    for (int i = 0; i < 5; i++)
        state = state_of(&server);
    if (state == TLS_FAILED) {
        assert_true(server.module->problem(server.session)[0] != '\0');
        assert_false(server.module->has_wrong_key(server.session));
    }
    close(ends_of[1]);
    tls_fixture_close(&server);
    tls_fixture_module()->party_destroy(party);
    return state;
}

static void test_strangers(void **state)
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    static const char frame[] = "\x01\x01\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00";
    /* A ClientHello of TLS 1.2 without extensions, one suite. */
    static const char old[] = "\x16\x03\x01\x00\x2d\x01\x00\x00\x29\x03\x03"
                              "0123456789abcdef0123456789abcdef\x00\x00\x02\x00\x2f\x01\x00";
    uint8_t rubbish[4096];
    (void)state;
    srandom(5);
    for (size_t i = 0; i < sizeof(rubbish); i++)
        rubbish[i] = (uint8_t)random();
    assert_int_equal(state_after(http, sizeof(http) - 1, false), TLS_FAILED);
    assert_int_equal(state_after(frame, sizeof(frame) - 1, false), TLS_FAILED);
    assert_int_equal(state_after(old, sizeof(old) - 1, false), TLS_FAILED);
    assert_int_equal(state_after(rubbish, sizeof(rubbish), false), TLS_FAILED);
    assert_int_equal(state_after("", 0, true), TLS_FAILED);
    assert_int_equal(state_after(old, 7, true), TLS_FAILED);
    assert_int_equal(state_after(old, 7, false), TLS_HANDSHAKE); /* its deadline is for others */
    assert_int_equal(state_after("", 0, false), TLS_HANDSHAKE);
}

/* What the client sends from now on is for the test, which says itself what the server gets. */
struct cut {
    int wire, near[2];
};

static void cut_open(struct cut *cut, const struct pair *pair)
{
    assert_int_equal(fd_socketpair(cut->near), 0);
    cut->wire = dup(pair->server.fd);
    assert_int_equal(dup2(cut->near[1], pair->server.fd), pair->server.fd);
}

static void cut_close(struct cut *cut)
{
    int all[] = {cut->wire, cut->near[0], cut->near[1]};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        close(all[i]);
}

/* The record in which the client sends this; returns its length. */
static size_t cut_record(struct cut *cut, const struct pair *pair, const char *text,
                         uint8_t record[256])
{
    int length = (int)strlen(text);
    assert_int_equal(pair->client.module->write(pair->client.session, text, (size_t)length),
                     length);
    ssize_t got = read(cut->wire, record, 256);
    assert_true(got > length + 5);
    return (size_t)got;
}

static void expect_refused(const struct pair *pair)
{
    uint8_t bytes[64];
    assert_int_equal(pair->server.module->read(pair->server.session, bytes, sizeof(bytes)), -1);
    assert_int_not_equal(errno, EAGAIN);
    assert_true(pair->server.module->problem(pair->server.session)[0] != '\0');
}

/* A bit is flipped on the way. */
static void test_tampered_record(void **state)
{
    uint8_t record[256];
    (void)state;
    struct pair pair;
    struct cut cut;
    pair_open(&pair, KEY, NAME, 0);
    cut_open(&cut, &pair);
    size_t length = cut_record(&cut, &pair, "ping", record);
    record[length - 1] ^= 1;
    assert_int_equal(write(cut.near[0], record, length), length);
    expect_refused(&pair);
    cut_close(&cut);
    pair_close(&pair);
}

/* A record comes twice, or in place of the one before it. */
static void test_replayed_record(void **state)
{
    uint8_t first[256], second[256], bytes[64];
    (void)state;
    for (int twice = 0; twice < 2; twice++) {
        struct pair pair;
        struct cut cut;
        pair_open(&pair, KEY, NAME, 0);
        cut_open(&cut, &pair);
        size_t first_length = cut_record(&cut, &pair, "ping", first);
        size_t second_length = cut_record(&cut, &pair, "pong", second);
        if (twice == 1) {
            assert_int_equal(write(cut.near[0], first, first_length), first_length);
            assert_int_equal(pair.server.module->read(pair.server.session, bytes, sizeof(bytes)),
                             4);
            assert_int_equal(write(cut.near[0], first, first_length), first_length);
        } else {
            assert_int_equal(write(cut.near[0], second, second_length), second_length);
        }
        expect_refused(&pair);
        cut_close(&cut);
        pair_close(&pair);
    }
}

/* Passes on what has come on `from`; appends it to `heard`. */
static void pass(int from, int to, struct buf *heard)
{
    uint8_t bytes[4096];
    ssize_t got = recv(from, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got <= 0)
        return;
    assert_int_equal(write(to, bytes, (size_t)got), got);
    if (heard != NULL)
        buf_append(heard, bytes, (size_t)got);
}

/* All that an agent has said, said again to the same driver, is worth nothing. */
static void test_replayed_handshake(void **state)
{
    AUTO_BUF struct buf heard = BUF_INIT(65536);
    int client[2], server[2], again[2];
    char bytes[8] = "";
    (void)state;
    assert_int_equal(fd_socketpair(client), 0);
    assert_int_equal(fd_socketpair(server), 0);
    assert_int_equal(fd_socketpair(again), 0);
    struct pair pair = {.server_party = tls_fixture_party(true, KEY, NULL, 0),
                        .client_party = tls_fixture_party(false, KEY, NAME, 0)};
    pair.server = tls_fixture_end(pair.server_party, server[0]);
    pair.client = tls_fixture_end(pair.client_party, client[0]);
    struct tls_end replayed = tls_fixture_end(pair.server_party, again[0]);
    for (int i = 0; i < 20; i++) {
        state_of(&pair.client);
        pass(client[1], server[1], &heard);
        state_of(&pair.server);
        pass(server[1], client[1], NULL);
    }
    assert_int_equal(pair.client.module->write(pair.client.session, "ping", 4), 4);
    pass(client[1], server[1], &heard);
    assert_int_equal(state_of(&pair.server), TLS_OPEN);
    assert_int_equal(pair.server.module->read(pair.server.session, bytes, sizeof(bytes)), 4);
    assert_int_equal(write(again[1], buf_text(&heard), heard.length), heard.length);
    for (int i = 0; i < 20; i++)
        assert_int_not_equal(state_of(&replayed), TLS_OPEN);
    assert_int_equal(replayed.module->read(replayed.session, bytes, sizeof(bytes)), -1);
    tls_fixture_close(&replayed);
    pair_close(&pair);
    int ours[] = {client[1], server[1], again[1]};
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        close(ours[i]);
}

/* Streams */

struct side {
    struct tls_stream *stream;
    int fd; /* the plain end */
    int ended;
    char why[256];
};

struct fixture {
    struct loop *loop;
    struct pair pair;
    struct side server, client;
};

static void ended(void *context, const char *why)
{
    struct side *side = context;
    side->ended++;
    snprintf(side->why, sizeof(side->why), "%s", why == NULL ? "" : why);
}

static void open_side(struct loop *loop, const struct tls_end *end, struct side *side)
{
    struct error err = ERROR_INIT;
    *side = (struct side){.fd = -1};
    side->stream = tls_stream_create(loop, end, &side->fd, ended, side, &err);
    assert_non_null(side->stream);
    fd_nonblock(side->fd);
}

static void set_up(struct fixture *f, uint64_t rekey_bytes)
{
    struct error err = ERROR_INIT;
    f->loop = loop_create(&err);
    pair_open(&f->pair, KEY, NAME, rekey_bytes);
    assert_int_equal(state_of(&f->pair.server), TLS_OPEN);
    assert_int_equal(state_of(&f->pair.client), TLS_OPEN);
    open_side(f->loop, &f->pair.server, &f->server);
    open_side(f->loop, &f->pair.client, &f->client);
}

static void tear_down(struct fixture *f)
{
    tls_stream_destroy(f->server.stream);
    tls_stream_destroy(f->client.stream);
    fd_close(&f->server.fd);
    fd_close(&f->client.fd);
    pair_close_parties(&f->pair);
    loop_destroy(f->loop);
}

/* As much as goes in without anybody reading at the other side. */
static size_t stuff(struct fixture *f, int fd, uint8_t *counter)
{
    uint8_t bytes[4096];
    size_t total = 0;
    for (int idle = 0; idle < 20;) {
        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (uint8_t)(*counter + i);
        ssize_t put = write(fd, bytes, sizeof(bytes));
        idle = put > 0 ? 0 : idle + 1;
        total += put > 0 ? (size_t)put : 0;
        *counter = (uint8_t)(*counter + (put > 0 ? put : 0));
        run_turns(f->loop, 2);
    }
    return total;
}

static size_t drain(struct fixture *f, int fd, uint8_t *counter)
{
    uint8_t bytes[4096];
    size_t total = 0;
    for (int idle = 0; idle < 20;) {
        ssize_t got = read(fd, bytes, sizeof(bytes));
        idle = got > 0 ? 0 : idle + 1;
        for (ssize_t i = 0; i < got; i++)
            assert_int_equal(bytes[i], (*counter)++);
        total += got > 0 ? (size_t)got : 0;
        run_turns(f->loop, 2);
    }
    return total;
}

static void test_back_pressure_both_ways(void **state)
{
    struct fixture f;
    uint8_t up = 0, up_seen = 0, down = 0, down_seen = 0;
    (void)state;
    set_up(&f, 0);
    size_t sent_up = stuff(&f, f.client.fd, &up);
    size_t sent_down = stuff(&f, f.server.fd, &down);
    /* it is bounded: two buffers here, and what three sockets hold */
    assert_in_range(sent_up, 2 * TLS_STREAM_BUFFER - 65536, (16u << 20));
    assert_in_range(sent_down, 2 * TLS_STREAM_BUFFER - 65536, (16u << 20));
    assert_int_equal(drain(&f, f.server.fd, &up_seen), sent_up);
    assert_int_equal(drain(&f, f.client.fd, &down_seen), sent_down);
    tear_down(&f);
}

static void test_keys_are_renewed(void **state)
{
    struct fixture f;
    uint8_t up = 0, up_seen = 0, down = 0, down_seen = 0, record[256];
    (void)state;
    for (uint64_t limit = 0; limit <= 8; limit += 8) { /* 0: far away */
        struct pair pair;
        struct cut cut;
        pair_open(&pair, KEY, NAME, limit);
        cut_open(&cut, &pair);
        size_t first = cut_record(&cut, &pair, "0123456789", record);
        size_t second = cut_record(&cut, &pair, "0123456789", record); /* and word of the new key */
        assert_int_equal(second > first, limit > 0);
        cut_close(&cut);
        pair_close(&pair);
    }
    set_up(&f, 10000);
    for (int i = 0; i < 3; i++) {
        size_t sent = stuff(&f, f.client.fd, &up);
        assert_int_equal(drain(&f, f.server.fd, &up_seen), sent);
        sent = stuff(&f, f.server.fd, &down);
        assert_int_equal(drain(&f, f.client.fd, &down_seen), sent);
    }
    assert_int_equal(f.server.ended, 0);
    tear_down(&f);
}

static void test_what_was_written_arrives_before_the_end(void **state)
{
    struct fixture f;
    uint8_t up = 0, up_seen = 0;
    char byte;
    (void)state;
    set_up(&f, 0);
    size_t sent = stuff(&f, f.client.fd, &up);
    fd_close(&f.client.fd);
    assert_int_equal(drain(&f, f.server.fd, &up_seen), sent);
    assert_int_equal(f.client.ended, 1);
    assert_string_equal(f.client.why, "");
    assert_int_equal(f.server.ended, 1);
    assert_string_equal(f.server.why, "");
    assert_int_equal(read(f.server.fd, &byte, 1), 0);
    tear_down(&f);
}

static void test_end_without_a_word(void **state)
{
    struct fixture f;
    char byte;
    (void)state;
    set_up(&f, 0);
    shutdown(f.pair.client.fd, SHUT_RDWR); /* as when its process is killed */
    run_turns(f.loop, 10);
    assert_int_equal(f.server.ended, 1);
    assert_string_equal(f.server.why, "");
    assert_int_equal(read(f.server.fd, &byte, 1), 0);
    tear_down(&f);
}

static void test_broken(void **state)
{
    struct fixture f;
    char byte;
    (void)state;
    set_up(&f, 0);
    assert_int_equal(write(f.pair.client.fd, "\x17\x03\x03\x00\x05rubbish and more", 22), 22);
    run_turns(f.loop, 10);
    assert_int_equal(f.server.ended, 1);
    assert_true(strstr(f.server.why, "the TLS connection failed") != NULL);
    assert_int_equal(read(f.server.fd, &byte, 1), 0);
    tear_down(&f);
}

static void test_destroyed_in_the_middle(void **state)
{
    struct fixture f;
    uint8_t up = 0;
    (void)state;
    set_up(&f, 0);
    stuff(&f, f.client.fd, &up);
    tls_stream_destroy(f.client.stream);
    f.client.stream = NULL;
    run_turns(f.loop, 10);
    assert_int_equal(f.client.ended, 0);
    tear_down(&f);
}

static void test_module_that_is_not_there(void **state)
{
    struct error err = ERROR_INIT;
    (void)state;
    assert_null(module_open("/nowhere/hvdrun-tls.so", TLS_MODULE_KIND, &err));
    assert_string_equal(err.text, "/nowhere/hvdrun-tls.so is missing, a file of hvdrun: install "
                                  "hvdrun again");
    assert_null(module_open("/dev/null", TLS_MODULE_KIND, &err));
    assert_non_null(strstr(err.text, "libssl3"));
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN); /* as driver and agent do */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_key),
        cmocka_unit_test(test_wrong_key),
        cmocka_unit_test(test_identity_that_cannot_be_shown),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_tampered_record),
        cmocka_unit_test(test_replayed_record),
        cmocka_unit_test(test_replayed_handshake),
        cmocka_unit_test(test_back_pressure_both_ways),
        cmocka_unit_test(test_keys_are_renewed),
        cmocka_unit_test(test_what_was_written_arrives_before_the_end),
        cmocka_unit_test(test_end_without_a_word),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_destroyed_in_the_middle),
        cmocka_unit_test(test_module_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
