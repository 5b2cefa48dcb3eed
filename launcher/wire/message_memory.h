/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The build includes this before the generated code of the messages, so that messages take their
 * memory from base/mem.h. If a body cannot be unpacked, the body is broken: it is never a lack of
 * memory. A body that needs more than 32 MiB plus four times its length is broken too. No valid
 * message does, and without the limit a peer could turn 64 MiB into several GiB.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>

#define protobuf_c_message_unpack message_unpack

ProtobufCMessage *message_unpack(const ProtobufCMessageDescriptor *descriptor,
                                 ProtobufCAllocator *allocator, size_t length,
                                 const uint8_t *bytes);
