/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "wire/control.pb-c.h"
#include "wire/frame.h"

static bool is_type(int number)
{
    static const int types[] = {
#define NUMBER(name, value) value,
        FRAME_LIST(NUMBER)
#undef NUMBER
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i] == number)
            return true;
    }
    return false;
}

static void test_header_layout(void **state)
{
    (void)state;
    const struct frame_header header = {.version = FRAME_VERSION,
                                        .type = FRAME_OUTPUT,
                                        .number = 0xfeed,
                                        .length = 0x00012345,
                                        .node = 0xfedcba98,
                                        .epoch = 0x89abcdef};
    static const uint8_t wanted[FRAME_HEADER_SIZE] = {FRAME_VERSION, 9,    0xfe, 0xed, 0,    1,
                                                      0x23,          0x45, 0xfe, 0xdc, 0xba, 0x98,
                                                      0x89,          0xab, 0xcd, 0xef};
    uint8_t bytes[FRAME_HEADER_SIZE];
    memset(bytes, 0xff, sizeof(bytes));
    frame_header_put(&header, bytes);
    assert_memory_equal(bytes, wanted, sizeof(wanted));
    struct frame_header back;
    assert_int_equal(frame_header_get(bytes, &back, NULL), 0);
    assert_int_equal(back.version, header.version);
    assert_int_equal(back.type, header.type);
    assert_int_equal(back.number, header.number);
    assert_int_equal(back.length, header.length);
    assert_int_equal(back.node, header.node);
    assert_int_equal(back.epoch, header.epoch);
}

/* Exactly the listed types are taken, and each has its own name. */
static void test_types(void **state)
{
    (void)state;
    for (int type = 0; type < 256; type++) {
        uint8_t bytes[FRAME_HEADER_SIZE] = {FRAME_VERSION, (uint8_t)type};
        struct frame_header header;
        struct error err = ERROR_INIT;
        if (is_type(type)) {
            assert_int_equal(frame_header_get(bytes, &header, &err), 0);
            assert_string_not_equal(frame_name((uint8_t)type), "unknown");
        } else {
            assert_int_equal(frame_header_get(bytes, &header, &err), -1);
            assert_non_null(strstr(err.text, "unknown frame type"));
            assert_string_equal(frame_name((uint8_t)type), "unknown");
        }
    }
    assert_string_equal(frame_name(FRAME_HELLO), "HELLO");
    assert_string_equal(frame_name(FRAME_PART), "PART");
}

/* Versions are looked at first: whatever else a foreign header holds, the text is about them. */
static void test_other_versions(void **state)
{
    (void)state;
    for (int version = 0; version < 256; version++) {
        uint8_t bytes[FRAME_HEADER_SIZE];
        memset(bytes, 0xff, sizeof(bytes));
        bytes[0] = (uint8_t)version;
        struct frame_header header;
        struct error err = ERROR_INIT;
        assert_int_equal(frame_header_get(bytes, &header, &err), -1);
        if (version != FRAME_VERSION)
            assert_non_null(strstr(err.text, "speaks protocol"));
        else
            assert_null(strstr(err.text, "speaks protocol"));
    }
}

static void test_length(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {0, 1, FRAME_BODY_MAX, FRAME_BODY_MAX + 1, UINT32_MAX};
    for (size_t i = 0; i < 5; i++) {
        struct frame_header header = {
            .version = FRAME_VERSION, .type = FRAME_LOG, .length = lengths[i]};
        uint8_t bytes[FRAME_HEADER_SIZE];
        struct error err = ERROR_INIT;
        frame_header_put(&header, bytes);
        assert_int_equal(frame_header_get(bytes, &header, &err),
                         lengths[i] > FRAME_BODY_MAX ? -1 : 0);
        if (lengths[i] > FRAME_BODY_MAX)
            assert_non_null(strstr(err.text, "LOG frame"));
    }
}

static void test_data_layout(void **state)
{
    (void)state;
    const struct frame_data data = {.seat = 0x01020304,
                                    .stream = 2,
                                    .offset = 0x1122334455667788,
                                    .when_ns = 0x99aabbccddeeff00};
    static const uint8_t wanted[FRAME_DATA_PREFIX] = {
        1,    2,    3,    4,    2,    0,    0,    0,    0x11, 0x22, 0x33, 0x44,
        0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0};
    uint8_t bytes[FRAME_DATA_PREFIX];
    memset(bytes, 0xff, sizeof(bytes));
    frame_data_put(&data, bytes);
    assert_memory_equal(bytes, wanted, sizeof(wanted));
    struct frame_data back;
    assert_int_equal(frame_data_get(bytes, sizeof(bytes), &back, NULL), 0);
    assert_int_equal(back.seat, data.seat);
    assert_int_equal(back.stream, 2);
    assert_true(back.offset == data.offset);
    assert_true(back.when_ns == data.when_ns);
}

/* Each length in a block of its own size, so that a read beyond it is seen by AddressSanitizer. */
static void test_data_truncated(void **state)
{
    (void)state;
    for (uint32_t length = 0; length <= FRAME_DATA_PREFIX; length++) {
        uint8_t *body = calloc(1, length > 0 ? length : 1);
        struct frame_data data;
        struct error err = ERROR_INIT;
        assert_int_equal(frame_data_get(body, length, &data, &err),
                         length == FRAME_DATA_PREFIX ? 0 : -1);
        assert_int_equal(err.text[0] == '\0', length == FRAME_DATA_PREFIX);
        free(body);
    }
}

static void test_data_streams(void **state)
{
    (void)state;
    for (int stream = 0; stream < 256; stream++) {
        uint8_t body[FRAME_DATA_PREFIX] = {0};
        body[4] = (uint8_t)stream;
        struct frame_data data;
        struct error err = ERROR_INIT;
        assert_int_equal(frame_data_get(body, sizeof(body), &data, &err), stream <= 2 ? 0 : -1);
        char named[32];
        snprintf(named, sizeof(named), "stream %d", stream);
        assert_true(stream <= 2 || strstr(err.text, named) != NULL);
    }
}

static uint8_t *packed(const ProtobufCMessage *message, size_t *length)
{
    *length = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(*length + 1);
    assert_int_equal(protobuf_c_message_pack(message, bytes), *length);
    return bytes;
}

static void test_prepare_round_trip(void **state)
{
    (void)state;
    char *argv[] = {"./a", "", "two words", "\377 not UTF-8"}, *env[] = {"A=1", "B=x=y"};
    Hvdrun__App app = HVDRUN__APP__INIT;
    app.argv = argv;
    app.n_argv = 4;
    app.env = env;
    app.n_env = 2;
    app.np = 3;
    app.mpi = "pmix";
    Hvdrun__Worker worker = HVDRUN__WORKER__INIT;
    worker.rank = UINT32_MAX;
    worker.cross_size = 7;
    Hvdrun__Limit limit = HVDRUN__LIMIT__INIT;
    limit.resource = 7;
    limit.soft = UINT64_MAX;
    Hvdrun__App *apps[] = {&app};
    Hvdrun__Worker *workers[] = {&worker};
    Hvdrun__Limit *limits[] = {&limit};
    uint32_t stdin_seats[] = {0, 300};
    Hvdrun__Prepare message = HVDRUN__PREPARE__INIT;
    message.apps = apps;
    message.workers = workers;
    message.limits = limits;
    message.n_apps = message.n_workers = message.n_limits = 1;
    message.stdin_seats = stdin_seats;
    message.n_stdin_seats = 2;
    message.pty_seat = -1;
    message.hold_port = true;
    message.host = "node-01";

    size_t length;
    uint8_t *bytes = packed(&message.base, &length);
    Hvdrun__Prepare *back = hvdrun__prepare__unpack(NULL, length, bytes);
    assert_non_null(back);
    assert_int_equal(back->n_apps, 1);
    assert_int_equal(back->apps[0]->n_argv, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(back->apps[0]->argv[i], argv[i]);
    assert_string_equal(back->apps[0]->env[1], "B=x=y");
    assert_string_equal(back->apps[0]->wdir, "");
    assert_string_equal(back->apps[0]->mpi, "pmix");
    assert_int_equal(back->workers[0]->rank, UINT32_MAX);
    assert_int_equal(back->workers[0]->cross_size, 7);
    assert_true(back->limits[0]->soft == UINT64_MAX);
    assert_int_equal(back->n_stdin_seats, 2);
    assert_int_equal(back->stdin_seats[1], 300);
    assert_int_equal(back->pty_seat, -1);
    assert_true(back->hold_port);
    assert_false(back->merge_stderr);
    assert_string_equal(back->host, "node-01");
    hvdrun__prepare__free_unpacked(back, NULL);

    /* Cut anywhere: refused or a shorter message, never a crash. */
    for (size_t cut = 0; cut < length; cut++) {
        uint8_t *part = malloc(cut + 1);
        memcpy(part, bytes, cut);
        Hvdrun__Prepare *less = hvdrun__prepare__unpack(NULL, cut, part);
        if (less != NULL)
            hvdrun__prepare__free_unpacked(less, NULL);
        free(part);
    }
    free(bytes);
}

static void test_exited_round_trip(void **state)
{
    (void)state;
    Hvdrun__Exited message = HVDRUN__EXITED__INIT;
    message.seat = 5;
    message.signaled = true;
    message.code = -1;
    message.when_ns = UINT64_MAX;
    message.text = "line one\nline two";
    message.max_rss_kb = 1ULL << 40;
    size_t length;
    uint8_t *bytes = packed(&message.base, &length);
    Hvdrun__Exited *back = hvdrun__exited__unpack(NULL, length, bytes);
    assert_non_null(back);
    assert_int_equal(back->seat, 5);
    assert_true(back->signaled);
    assert_false(back->core);
    assert_int_equal(back->code, -1);
    assert_true(back->when_ns == UINT64_MAX);
    assert_true(back->max_rss_kb == 1ULL << 40);
    assert_string_equal(back->text, "line one\nline two");
    hvdrun__exited__free_unpacked(back, NULL);
    free(bytes);
}

static void test_kv_round_trip(void **state)
{
    (void)state;
    uint8_t body[300];
    for (size_t i = 0; i < sizeof(body); i++)
        body[i] = (uint8_t)i; /* NULs too: it is bytes */
    Hvdrun__KvRequest message = HVDRUN__KV_REQUEST__INIT;
    message.token = UINT64_MAX - 1;
    message.method = 2;
    message.scope = "global";
    message.key = "";
    message.body.data = body;
    message.body.len = sizeof(body);
    size_t length;
    uint8_t *bytes = packed(&message.base, &length);
    Hvdrun__KvRequest *back = hvdrun__kv_request__unpack(NULL, length, bytes);
    assert_non_null(back);
    assert_true(back->token == UINT64_MAX - 1);
    assert_string_equal(back->scope, "global");
    assert_string_equal(back->key, "");
    assert_int_equal(back->body.len, sizeof(body));
    assert_memory_equal(back->body.data, body, sizeof(body));
    hvdrun__kv_request__free_unpacked(back, NULL);
    free(bytes);
}

/* An empty body is every message with its defaults, and text is never NULL. */
static void test_empty_bodies(void **state)
{
    (void)state;
    Hvdrun__AgentHello *hello = hvdrun__agent_hello__unpack(NULL, 0, (const uint8_t *)"");
    assert_non_null(hello);
    assert_int_equal(hello->protocol, 0);
    assert_string_equal(hello->hostname, "");
    assert_string_equal(hello->problem, "");
    assert_int_equal(hello->n_interfaces, 0);
    hvdrun__agent_hello__free_unpacked(hello, NULL);
    Hvdrun__Ready *ready = hvdrun__ready__unpack(NULL, 0, (const uint8_t *)"");
    assert_non_null(ready);
    assert_string_equal(ready->problem, "");
    hvdrun__ready__free_unpacked(ready, NULL);
}

/* Bytes of every kind in every message type: refused or not, but never a crash. */
static void test_rubbish(void **state)
{
    (void)state;
    static const ProtobufCMessageDescriptor *const types[] = {
        &hvdrun__agent_hello__descriptor,  &hvdrun__welcome__descriptor,
        &hvdrun__prepare__descriptor,      &hvdrun__ready__descriptor,
        &hvdrun__start__descriptor,        &hvdrun__started__descriptor,
        &hvdrun__exited__descriptor,       &hvdrun__finished__descriptor,
        &hvdrun__credit__descriptor,       &hvdrun__signal__descriptor,
        &hvdrun__end__descriptor,          &hvdrun__killing__descriptor,
        &hvdrun__heartbeat__descriptor,    &hvdrun__log__descriptor,
        &hvdrun__kv_request__descriptor,   &hvdrun__kv_reply__descriptor,
        &hvdrun__kv_notice__descriptor,    &hvdrun__abort__descriptor,
        &hvdrun__state_report__descriptor, &hvdrun__window_size__descriptor};
    unsigned seed = 7, refused = 0;
    for (int round = 0; round < 5000; round++) {
        size_t length = (size_t)round % 64;
        uint8_t *bytes = malloc(length + 1);
        for (size_t i = 0; i < length; i++) {
            seed = seed * 1103515245u + 12345u;
            bytes[i] = (uint8_t)(seed >> 20);
        }
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
            ProtobufCMessage *message = protobuf_c_message_unpack(types[i], NULL, length, bytes);
            refused += message == NULL;
            if (message != NULL)
                protobuf_c_message_free_unpacked(message, NULL);
        }
        free(bytes);
    }
    assert_true(refused > 50000);
}

/* What it borrows is apart from the message. */
static ProtobufCMessage *read_head(const ProtobufCMessageDescriptor *kind, const uint8_t *bytes,
                                   size_t length, unsigned field, const uint8_t **value,
                                   size_t *value_length)
{
    ProtobufCBinaryData *borrowed, nothing = {0, NULL};
    ProtobufCMessage *message = message_borrow(kind, bytes, length, field, &borrowed);
    *value = borrowed == NULL ? NULL : borrowed->data;
    *value_length = borrowed == NULL ? 0 : borrowed->len;
    if (borrowed != NULL)
        *borrowed = nothing;
    return message;
}

/* The last field is left where it is, and nothing is read behind the end. */
static void test_head(void **state)
{
    (void)state;
    enum { BYTES = 9 };
    uint8_t content[300], *value_at;
    const uint8_t *value;
    size_t length;
    memset(content, 7, sizeof(content));
    Hvdrun__Stage message = HVDRUN__STAGE__INIT;
    message.root = 200;
    message.dest = "to";
    message.chunk = 70000;
    struct buf packed AUTO_BUF = message_head(&message.base, BYTES, sizeof(content));
    packed.limit += sizeof(content);
    assert_int_equal(buf_append(&packed, content, sizeof(content)), 0);
    for (size_t cut = 0; cut <= packed.length; cut++) {
        uint8_t *bytes AUTO_FREE = mem_dup(buf_text(&packed), packed.length - cut);
        Hvdrun__Stage *read = (Hvdrun__Stage *)read_head(
            &hvdrun__stage__descriptor, bytes, packed.length - cut, BYTES, &value, &length);
        if (cut == 0) {
            value_at = bytes + packed.length - sizeof(content);
            assert_non_null(read);
            assert_ptr_equal(value, value_at);
            assert_int_equal(length, sizeof(content));
            assert_int_equal(read->root, 200);
            assert_string_equal(read->dest, "to");
            assert_int_equal(read->chunk, 70000);
            assert_int_equal(read->bytes.len, 0);
        } else {
            assert_int_equal(length, 0);
        }
        message_free(read == NULL ? NULL : &read->base);
    }
}

/* Elsewhere it is a field like others. */
static void test_head_is_not_the_end(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {9 << 3 | 2, 2, 'a', 'b', 1 << 3, 5};
    static const uint8_t odd[] = {9 << 3 | 5, 1, 2, 3, 4, 9 << 3 | 2, 1, 'a'};
    static const uint8_t endless[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                      0xff, 0xff, 0xff, 0xff, 0};
    const uint8_t *value;
    size_t length;
    Hvdrun__Stage *read = (Hvdrun__Stage *)read_head(&hvdrun__stage__descriptor, bytes,
                                                     sizeof(bytes), 9, &value, &length);
    assert_non_null(read);
    assert_int_equal(length, 0);
    assert_int_equal(read->bytes.len, 2);
    assert_int_equal(read->root, 5);
    message_free(&read->base);
    message_free(read_head(&hvdrun__stage__descriptor, odd, sizeof(odd), 9, &value, &length));
    assert_int_equal(length, 0);
    assert_null(
        read_head(&hvdrun__stage__descriptor, endless, sizeof(endless), 9, &value, &length));
    assert_int_equal(length, 0);
}

/* In the message itself. */
static void test_borrowed_bytes(void **state)
{
    (void)state;
    static const uint8_t last[] = {1 << 3, 5, 9 << 3 | 2, 2, 'a', 'b'};
    static const uint8_t other[] = {9 << 3 | 2, 2, 'a', 'b', 1 << 3, 5};
    static const uint8_t twice[] = {9 << 3 | 2, 1, 'c', 9 << 3 | 2, 2, 'a', 'b'};
    static const uint8_t no_field[] = {2, 1, 'a'};
    static const struct row {
        const uint8_t *bytes;
        size_t length;
        bool borrowed;
    } rows[] = {
        {last, sizeof(last), true}, {other, sizeof(other), false}, {twice, sizeof(twice), true}};
    ProtobufCBinaryData *borrowed;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        Hvdrun__Stage *read = (Hvdrun__Stage *)message_borrow(
            &hvdrun__stage__descriptor, rows[i].bytes, rows[i].length, 9, &borrowed);
        assert_non_null(read);
        assert_int_equal(read->bytes.len, 2);
        assert_memory_equal(read->bytes.data, "ab", 2);
        assert_ptr_equal(borrowed, rows[i].borrowed ? &read->bytes : NULL);
        if (borrowed != NULL) {
            assert_ptr_equal(borrowed->data, rows[i].bytes + rows[i].length - 2);
            borrowed->data = NULL;
        }
        message_free(&read->base);
    }
    assert_null(
        message_borrow(&hvdrun__stage__descriptor, no_field, sizeof(no_field), 0, &borrowed));
    assert_null(borrowed);
}

/* What is refused when all is read is refused here, too; and the last of two values counts. */
static void test_head_is_as_strict(void **state)
{
    (void)state;
    static const uint8_t long_key[] = {9 << 3 | 2 | 0x80, 0x80, 0x80, 0x80, 0x80, 0, 1, 'a'};
    static const uint8_t long_length[] = {9 << 3 | 2, 0x81, 0x80, 0x80, 0x80, 0x80, 0, 'a'};
    static const uint8_t five[] = {
        9 << 3 | 2 | 0x80, 0x80, 0x80, 0x80, 0, 0x81, 0x80, 0x80, 0x80, 0, 'a'};
    static const uint8_t twice[] = {9 << 3 | 2, 1, 'a', 9 << 3 | 2, 0};
    const ProtobufCMessageDescriptor *kind = &hvdrun__stage__descriptor;
    const uint8_t *value;
    size_t length;
    assert_null(message_read(kind, long_key, sizeof(long_key)));
    assert_null(read_head(kind, long_key, sizeof(long_key), 9, &value, &length));
    assert_null(message_read(kind, long_length, sizeof(long_length)));
    assert_null(read_head(kind, long_length, sizeof(long_length), 9, &value, &length));
    ProtobufCMessage *read = read_head(kind, five, sizeof(five), 9, &value, &length);
    assert_ptr_equal(value, five + sizeof(five) - 1);
    assert_int_equal(length, 1);
    message_free(read);
    read = read_head(kind, twice, sizeof(twice), 9, &value, &length);
    assert_ptr_equal(value, twice + sizeof(twice));
    assert_int_equal(length, 0);
    message_free(read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_layout),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_other_versions),
        cmocka_unit_test(test_length),
        cmocka_unit_test(test_data_layout),
        cmocka_unit_test(test_data_truncated),
        cmocka_unit_test(test_data_streams),
        cmocka_unit_test(test_prepare_round_trip),
        cmocka_unit_test(test_exited_round_trip),
        cmocka_unit_test(test_kv_round_trip),
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_head_is_not_the_end),
        cmocka_unit_test(test_borrowed_bytes),
        cmocka_unit_test(test_head_is_as_strict),
        cmocka_unit_test(test_empty_bodies),
        cmocka_unit_test(test_rubbish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
