/* SPDX-License-Identifier: Apache-2.0 */
/* A message takes memory in proportion to its length, whatever it is made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "wire/control.pb-c.h"
#include "wire/frame.h"

/* A body of `length` bytes that says this again and again. */
static ProtobufCMessage *unpack_many(const ProtobufCMessageDescriptor *kind, size_t length,
                                     const char *words, size_t size)
{
    uint8_t *body AUTO_FREE = mem_alloc(length);
    for (size_t at = 0; at + size <= length; at += size)
        memcpy(body + at, words, size);
    return message_unpack(kind, NULL, length / size * size, body);
}

static void test_what_unfolds_is_refused(void **state)
{
    (void)state;
    static const struct {
        const ProtobufCMessageDescriptor *kind;
        const char *words;
        size_t size;
    } bombs[] = {
        {&hvdrun__mpi_store__descriptor, "\x3a\0", 2},     /* items, empty */
        {&hvdrun__prepare__descriptor, "\x32\0", 2},       /* apps, empty */
        {&hvdrun__facts__descriptor, "\x52\0", 2},         /* folders, empty */
        {&hvdrun__agent_hello__descriptor, "\x52\0", 2},   /* interfaces, empty */
        {&hvdrun__exited__descriptor, "\x08\0", 2},        /* one number, which the last one sets */
        {&hvdrun__log__descriptor, "\xf8\x7f\x01", 3},     /* a field that there is not */
        {&hvdrun__prepare__descriptor, "\x32\2\x0a\0", 4}, /* apps with an empty word each */
    };
    for (size_t i = 0; i < sizeof(bombs) / sizeof(bombs[0]); i++) {
        ProtobufCMessage *small = unpack_many(bombs[i].kind, 1000, bombs[i].words, bombs[i].size);
        assert_non_null(small);
        protobuf_c_message_free_unpacked(small, NULL);
        assert_null(unpack_many(bombs[i].kind, (size_t)4 << 20, bombs[i].words, bombs[i].size));
    }
}

/* Those that are in use: one value of any length, and lists of a very large job. */
static void test_what_is_needed_is_taken(void **state)
{
    (void)state;
    enum { NODES = 20000, RANKS = 16 * NODES };
    size_t length;
    Hvdrun__KvReply reply = HVDRUN__KV_REPLY__INIT;
    reply.body.len = (size_t)60 << 20;
    reply.body.data = mem_alloc(reply.body.len);
    uint8_t *packed = mem_alloc(hvdrun__kv_reply__get_packed_size(&reply));
    length = hvdrun__kv_reply__pack(&reply, packed);
    Hvdrun__KvReply *reply_back = hvdrun__kv_reply__unpack(NULL, length, packed);
    assert_non_null(reply_back);
    hvdrun__kv_reply__free_unpacked(reply_back, NULL);
    free(packed);
    free(reply.body.data);

    Hvdrun__Prepare prepare = HVDRUN__PREPARE__INIT;
    char *hosts[NODES];
    uint32_t *nodes AUTO_FREE = mem_array(RANKS, sizeof(*nodes));
    for (size_t i = 0; i < NODES; i++)
        hosts[i] = mem_printf("n%zu", i);
    for (uint32_t i = 0; i < RANKS; i++)
        nodes[i] = i % NODES;
    prepare.hosts = prepare.hostnames = prepare.addresses = hosts;
    prepare.n_hosts = prepare.n_hostnames = prepare.n_addresses = NODES;
    prepare.rank_nodes = nodes;
    prepare.n_rank_nodes = RANKS;
    packed = mem_alloc(hvdrun__prepare__get_packed_size(&prepare));
    length = hvdrun__prepare__pack(&prepare, packed);
    Hvdrun__Prepare *back = hvdrun__prepare__unpack(NULL, length, packed);
    assert_non_null(back);
    assert_int_equal(back->n_rank_nodes, RANKS);
    assert_string_equal(back->addresses[NODES - 1], hosts[NODES - 1]);
    hvdrun__prepare__free_unpacked(back, NULL);
    free(packed);
    for (size_t i = 0; i < NODES; i++)
        free(hosts[i]);
}

/* A longer message has more room, but not without end: its length is not taken for more than it is.
 */
static void test_long_bombs_are_refused(void **state)
{
    (void)state;
    assert_null(unpack_many(&hvdrun__mpi_store__descriptor, (size_t)12 << 20, "\x3a\0", 2));
    assert_null(unpack_many(&hvdrun__prepare__descriptor, (size_t)40 << 20, "\x32\0", 2));
}

/* The last block may end anywhere beside the end of the room: each number in the message moves it.
 */
static void test_refused_wherever_the_room_ends(void **state)
{
    (void)state;
    const size_t items = (size_t)1 << 20;
    uint8_t *body AUTO_FREE = mem_alloc(items + 64);
    for (size_t at = 0; at < items; at += 2)
        memcpy(body + at, "\x52\0", 2); /* interfaces, empty */
    for (size_t numbers = 0; numbers < 32; numbers++) {
        memcpy(body + items + 2 * numbers, "\x08\1", 2);
        assert_null(
            message_unpack(&hvdrun__agent_hello__descriptor, NULL, items + 2 * numbers + 2, body));
    }
}

/* A message of any kind, there and back. */
static void test_any_kind(void **state)
{
    (void)state;
    Hvdrun__Log message = HVDRUN__LOG__INIT;
    message.text = (char *)"text";
    ProtobufCBinaryData packed = message_pack(&message.base), empty = message_pack(NULL);
    Hvdrun__Log *read =
        (Hvdrun__Log *)message_read(&hvdrun__log__descriptor, packed.data, packed.len);
    assert_string_equal(read->text, "text");
    message_free(&read->base);
    assert_int_equal(empty.len, 0);
    message_free(message_read(&hvdrun__log__descriptor, empty.data, empty.len));
    assert_null(message_read(&hvdrun__log__descriptor, packed.data, packed.len - 1));
    message_free(NULL);
    free(packed.data);
    free(empty.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_unfolds_is_refused),
        cmocka_unit_test(test_what_is_needed_is_taken),
        cmocka_unit_test(test_long_bombs_are_refused),
        cmocka_unit_test(test_refused_wherever_the_room_ends),
        cmocka_unit_test(test_any_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
