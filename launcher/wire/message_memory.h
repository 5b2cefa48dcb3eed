/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The build includes this before the generated code of the messages, so that messages take their
 * memory from base/mem.h. If a body cannot be unpacked, the body is broken: it is never a lack of
 * memory. A body that needs more than 32 MiB plus four times its length is broken too. No valid
 * message does, and without the limit a peer could turn 64 MiB into several GiB.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

#define protobuf_c_message_unpack message_unpack

ProtobufCMessage *message_unpack(const ProtobufCMessageDescriptor *descriptor,
                                 ProtobufCAllocator *allocator, size_t length,
                                 const uint8_t *bytes);

/* For messages of any kind. The message packed; free its data. NULL: an empty message. */
ProtobufCBinaryData message_pack(const ProtobufCMessage *message);
/* The reverse. NULL: the bytes are broken. */
ProtobufCMessage *message_read(const ProtobufCMessageDescriptor *kind, const uint8_t *bytes,
                               size_t length);
void message_free(ProtobufCMessage *message); /* of message_read(); accepts NULL */
