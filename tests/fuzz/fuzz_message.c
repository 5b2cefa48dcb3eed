/* SPDX-License-Identifier: Apache-2.0 */
/* Every message of control.proto: the first byte chooses it. What can be read can be written, in
 * the size that is said before. It is the same without a copy of its bytes. (Read again it need not
 * be the same: protobuf-c does not keep every unknown field whole.) */
#include <protobuf-c/protobuf-c.h>

#include "fuzz.h"
#include "wire/control.pb-c.h"
#include "wire/frame.h"

static const ProtobufCMessageDescriptor *const messages[] = {
    &hvdrun__agent_hello__descriptor,  &hvdrun__welcome__descriptor,
    &hvdrun__prepare__descriptor,      &hvdrun__ready__descriptor,
    &hvdrun__start__descriptor,        &hvdrun__started__descriptor,
    &hvdrun__exited__descriptor,       &hvdrun__finished__descriptor,
    &hvdrun__credit__descriptor,       &hvdrun__signal__descriptor,
    &hvdrun__end__descriptor,          &hvdrun__killing__descriptor,
    &hvdrun__end_worker__descriptor,   &hvdrun__notify__descriptor,
    &hvdrun__notified__descriptor,     &hvdrun__terminate__descriptor,
    &hvdrun__deadline__descriptor,     &hvdrun__signalled__descriptor,
    &hvdrun__heartbeat__descriptor,    &hvdrun__log__descriptor,
    &hvdrun__kv_request__descriptor,   &hvdrun__kv_reply__descriptor,
    &hvdrun__kv_notice__descriptor,    &hvdrun__abort__descriptor,
    &hvdrun__state_report__descriptor, &hvdrun__window_size__descriptor,
    &hvdrun__mpi_collect__descriptor,  &hvdrun__mpi_collected__descriptor,
    &hvdrun__mpi_modex__descriptor,    &hvdrun__mpi_modex_data__descriptor,
    &hvdrun__mpi_store__descriptor,    &hvdrun__mpi_store_reply__descriptor,
    &hvdrun__mpi_event__descriptor,    &hvdrun__mpi_signal__descriptor,
    &hvdrun__facts__descriptor,        &hvdrun__probe__descriptor,
    &hvdrun__probed__descriptor,       &hvdrun__ranks_ended__descriptor,
    &hvdrun__stall__descriptor,        &hvdrun__usage__descriptor,
    &hvdrun__ask__descriptor,          &hvdrun__answer__descriptor,
    &hvdrun__pulse__descriptor,        &hvdrun__evidence__descriptor,
    &hvdrun__stage__descriptor,        &hvdrun__staged__descriptor,
};

/* What was left where it came from becomes the message's own. */
static void give_back(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                      const uint8_t *value, size_t length)
{
    ProtobufCBinaryData *place = (ProtobufCBinaryData *)((char *)message + field->offset);
    free(place->data);
    place->data = length > 0 ? mem_dup(value, length) : NULL;
    place->len = length;
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

/* With or without a copy of a field's bytes, the message is the same. */
static void read_both_ways(const struct fuzz_bytes *bytes, const ProtobufCMessageDescriptor *kind,
                           const ProtobufCFieldDescriptor *field)
{
    const uint8_t *value;
    size_t length;
    ProtobufCMessage *whole = message_read(kind, bytes->at, bytes->left);
    ProtobufCMessage *head = read_head(kind, bytes->at, bytes->left, field->id, &value, &length);
    FUZZ_CHECK((whole == NULL) == (head == NULL));
    FUZZ_CHECK(value != NULL || length == 0);
    FUZZ_CHECK(value == NULL || value + length == bytes->at + bytes->left);
    if (head != NULL && value != NULL)
        give_back(head, field, value, length);
    if (head != NULL) {
        ProtobufCBinaryData one = message_pack(whole), other = message_pack(head);
        FUZZ_CHECK(one.len == other.len && memcmp(one.data, other.data, one.len) == 0);
        free(one.data);
        free(other.data);
    }
    message_free(whole);
    message_free(head);
}

FUZZ_TARGET
{
    struct fuzz_bytes bytes = {data, size};
    const ProtobufCMessageDescriptor *kind =
        messages[fuzz_u8(&bytes) % (sizeof(messages) / sizeof(messages[0]))];
    for (unsigned i = 0; i < kind->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &kind->fields[i];
        if (field->type == PROTOBUF_C_TYPE_BYTES && field->label == PROTOBUF_C_LABEL_NONE)
            read_both_ways(&bytes, kind, field);
    }
    ProtobufCMessage *message = protobuf_c_message_unpack(kind, NULL, bytes.left, bytes.at);
    if (message == NULL)
        return 0;
    size_t length = protobuf_c_message_get_packed_size(message);
    uint8_t *packed AUTO_FREE = mem_alloc(length + 1);
    FUZZ_CHECK(protobuf_c_message_pack(message, packed) == length);
    ProtobufCMessage *again = protobuf_c_message_unpack(kind, NULL, length, packed);
    if (again != NULL)
        protobuf_c_message_free_unpacked(again, NULL);
    protobuf_c_message_free_unpacked(message, NULL);
    return 0;
}
