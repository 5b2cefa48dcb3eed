/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and answers byte by byte as they were recorded between Horovod and its workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/sha256.h"
#include "rendezvous/hex_fixture.h"
#include "rendezvous/notification.h"

#define KEY "62651552841393ba7acf6d1214867e7fb1711ce4ba1ce50b61dd03940777251c"

/* A body that workers have accepted: HostsUpdatedRequest(1795217027, 2). */
#define REQUEST_BODY                                                                               \
    "80048c1d686f726f766f642e72756e6e65722e656c61737469632e776f726b65728c13486f737473557064617465" \
    "6"                                                                                            \
    "4526571756573749329817d288c0974696d657374616d704a83d6006b8c037265734b0275622e"

#define ACK                                                                                        \
    "6709b9212206b7a0c51a7ba330c49b88fdb0627d305671b0cce9fbbc1d4be0ed4400000080059539000000000000" \
    "00"                                                                                           \
    "8c22686f726f766f642e72756e6e65722e636f6d6d6f6e2e7574696c2e6e6574776f726b948c0b41636b52657370" \
    "6f"                                                                                           \
    "6e7365949394298194 2e"

/* The answer to a ping. */
#define PING_RESPONSE                                                                              \
    "fc717dfea66ec27bacedcaa728a43bf392f7fa09593a8ecfdffb7b55c882471c9400000080059589000000000000" \
    "00"                                                                                           \
    "8c22686f726f766f642e72756e6e65722e636f6d6d6f6e2e7574696c2e6e6574776f726b948c0c50696e67526573" \
    "70"                                                                                           \
    "6f6e73659493942981947d94288c0c736572766963655f6e616d65948c1b776f726b6572206e6f74696669636174" \
    "69"                                                                                           \
    "6f6e2073657276696365948c0e736f757263655f61646472657373948c093132372e302e302e319475622e"

struct fixture {
    uint8_t *key;
    size_t key_length;
    uint8_t *ack;
    size_t ack_length;
};

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    f->key = from_hex(KEY, &f->key_length);
    f->ack = from_hex(ACK, &f->ack_length);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    free(f->key);
    free(f->ack);
    free(f);
    return 0;
}

static void expect_request(struct fixture *f, uint64_t timestamp, int result, const char *body_hex)
{
    size_t length = 0;
    uint8_t *body AUTO_FREE = from_hex(body_hex, &length);
    uint8_t request[NOTIFICATION_REQUEST_MAX], mac[HMAC_SIZE];
    int32_t announced = (int32_t)length;
    size_t written = notification_write_request(request, f->key, f->key_length, timestamp, result);
    assert_int_equal(written, HMAC_SIZE + 4 + length);
    hmac_sha256(f->key, f->key_length, body, length, mac);
    assert_memory_equal(request, mac, sizeof(mac));
    assert_memory_equal(request + HMAC_SIZE, &announced, sizeof(announced));
    assert_memory_equal(request + HMAC_SIZE + 4, body, length);
}

static void test_request(void **state)
{
    struct fixture *f = *state;
    expect_request(f, 1795217027, 2, REQUEST_BODY);
}

/* The key and the digest of a frame that Horovod's own launcher has sent. */
static void test_recorded_digest(void **state)
{
    struct fixture *f = *state;
    size_t length = 0;
    uint8_t *body AUTO_FREE = from_hex(
        "80059592000000000000008c1d686f726f766f642e72756e6e65722e656c61737469632e776f726b6572948c13"
        "486f73747355706461746564526571756573749493942981947d94288c0974696d657374616d70944a83d6006b"
        "8c03726573948c086275696c74696e73948c076765746174747294939468008c10486f73745570646174655265"
        "73756c749493948c056164646564948694529475622e",
        &length);
    size_t mac_length = 0;
    uint8_t mac[HMAC_SIZE];
    uint8_t *recorded AUTO_FREE =
        from_hex("cfc72ff2c9de0f9eaa0af5e63b7d902b8efa1ad1317fbf86116c087ca3997dd7", &mac_length);
    assert_int_equal(length, 157);
    hmac_sha256(f->key, f->key_length, body, length, mac);
    assert_memory_equal(mac, recorded, sizeof(mac));
}

#define BEFORE                                                                                     \
    "80048c1d686f726f766f642e72756e6e65722e656c61737469632e776f726b65728c13486f737473557064617465" \
    "6"                                                                                            \
    "4526571756573749329817d288c0974696d657374616d70"
#define AFTER "8c037265734b"

/* BININT ends in January 2038. */
static void test_late_timestamps(void **state)
{
    struct fixture *f = *state;
    expect_request(f, 0, 0, BEFORE "4a00000000" AFTER "0075622e");
    expect_request(f, 2147483647, 3, BEFORE "4affffff7f" AFTER "0375622e");
    expect_request(f, 2147483648, 3, BEFORE "8a050000008000" AFTER "0375622e");
    expect_request(f, 4294967296, 1, BEFORE "8a050000000001" AFTER "0175622e");
    expect_request(f, 0x7fffffffff, 1, BEFORE "8a05ffffffff7f" AFTER "0175622e");
    expect_request(f, 0x8000000000, 1, BEFORE "8a06000000008000" AFTER "0175622e");
    expect_request(f, UINT64_MAX, 1, BEFORE "8a09ffffffffffffffff00" AFTER "0175622e");
}

static enum notification_verdict feed(struct fixture *f, const uint8_t *bytes, size_t length,
                                      size_t step, const char *problem)
{
    struct notification_reply *reply = notification_reply_create(f->key, f->key_length);
    enum notification_verdict verdict = NOTIFICATION_MORE;
    for (size_t at = 0; at < length; at += step) {
        size_t piece = at + step < length ? step : length - at;
        uint8_t *exact AUTO_FREE = mem_dup(bytes + at, piece);
        verdict = notification_reply_feed(reply, exact, piece);
    }
    assert_string_equal(notification_reply_problem(reply), problem);
    notification_reply_destroy(reply);
    return verdict;
}

static void test_acknowledged(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(f->ack_length, 104);
    for (size_t step = 1; step <= f->ack_length; step++)
        assert_int_equal(feed(f, f->ack, f->ack_length, step, ""), NOTIFICATION_ACKNOWLEDGED);
    for (size_t length = 0; length < f->ack_length; length++)
        assert_int_equal(feed(f, f->ack, length, 7, ""), NOTIFICATION_MORE);
    uint8_t *longer AUTO_FREE = mem_alloc(f->ack_length + 5000);
    memcpy(longer, f->ack, f->ack_length);
    assert_int_equal(feed(f, longer, f->ack_length + 5000, 6000, ""), NOTIFICATION_ACKNOWLEDGED);
}

static void test_bad_answers(void **state)
{
    struct fixture *f = *state;
    uint8_t *bytes AUTO_FREE = mem_dup(f->ack, f->ack_length);
    for (size_t i = 0; i < f->ack_length; i++) {
        if (i >= HMAC_SIZE && i < HMAC_SIZE + 4)
            continue;
        bytes[i] ^= 1;
        assert_int_equal(feed(f, bytes, f->ack_length, 50, "sends an answer with a wrong digest"),
                         NOTIFICATION_BAD);
        bytes[i] ^= 1;
    }
    static const int32_t lengths[] = {0, -1, INT32_MIN, NOTIFICATION_REPLY_MAX + 1, INT32_MAX};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        memcpy(bytes + HMAC_SIZE, &lengths[i], 4);
        for (size_t step = 1; step < 60; step += 7)
            assert_int_equal(
                feed(f, bytes, f->ack_length, step, "sends an answer with an invalid length"),
                NOTIFICATION_BAD);
    }
    size_t length = 0;
    uint8_t *ping AUTO_FREE = from_hex(PING_RESPONSE, &length);
    assert_int_equal(length, 184);
    assert_int_equal(feed(f, ping, length, 9, "sends an answer that is not an acknowledgement"),
                     NOTIFICATION_BAD);
    f->key[0] ^= 1;
    assert_int_equal(feed(f, f->ack, f->ack_length, 200, "sends an answer with a wrong digest"),
                     NOTIFICATION_BAD);
}

static void test_mutations(void **state)
{
    struct fixture *f = *state;
    uint64_t seed = 5;
    for (int round = 0; round < 20000; round++) {
        size_t length = 0;
        uint8_t *bytes AUTO_FREE = mutate(f->ack, f->ack_length, "\0\xff\x8c", 3, &seed, &length);
        struct notification_reply *reply = notification_reply_create(f->key, f->key_length);
        size_t at = 0;
        enum notification_verdict verdict = NOTIFICATION_MORE;
        while (at < length) {
            size_t piece = 1 + fuzz_next(&seed, (uint32_t)(length - at));
            verdict = notification_reply_feed(reply, bytes + at, piece);
            at += piece;
        }
        if (verdict == NOTIFICATION_ACKNOWLEDGED) /* only what was changed behind it */
            assert_memory_equal(bytes, f->ack, f->ack_length);
        notification_reply_destroy(reply);
    }
}

/* A key of any length, one byte included, is the one that counts. */
static void test_short_keys(void **state)
{
    struct fixture *f = *state;
    enum { HEAD = HMAC_SIZE + 4 };
    static const uint8_t keys[2][4] = {"key", "Key"};
    for (size_t length = 1; length < 4; length++) {
        uint8_t *ack AUTO_FREE = mem_dup(f->ack, f->ack_length);
        hmac_sha256(keys[0], length, ack + HEAD, f->ack_length - HEAD, ack);
        for (int other = 0; other < 2; other++) {
            struct notification_reply *reply = notification_reply_create(keys[other], length);
            assert_int_equal(notification_reply_feed(reply, ack, f->ack_length),
                             other != 0 ? NOTIFICATION_BAD : NOTIFICATION_ACKNOWLEDGED);
            notification_reply_destroy(reply);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_request, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recorded_digest, setup, teardown),
        cmocka_unit_test_setup_teardown(test_late_timestamps, setup, teardown),
        cmocka_unit_test_setup_teardown(test_acknowledged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mutations, setup, teardown),
        cmocka_unit_test_setup_teardown(test_short_keys, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
