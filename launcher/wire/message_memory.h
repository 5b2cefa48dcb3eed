/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before the generated code of the messages: they take their memory from base/mem.h. A
 * body that cannot be unpacked is then always a broken one, never one for which there was no
 * memory. One that would take more than 32 MiB and four times its length is a broken one too: no
 * message of ours does, and else a peer could have 64 MiB become several GiB.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>

#define protobuf_c_message_unpack message_unpack

ProtobufCMessage *message_unpack(const ProtobufCMessageDescriptor *descriptor,
                                 ProtobufCAllocator *allocator, size_t length,
                                 const uint8_t *bytes);
