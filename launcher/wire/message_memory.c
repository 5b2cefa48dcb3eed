/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message_memory.h"

#include <stdlib.h>

#include "base/mem.h"

#undef protobuf_c_message_unpack

/* One or two bytes can become the struct of an empty message, and a list may have any number of
 * these. The limit of memory for a body is GROWTH_FREE plus GROWTH_MAX times its length. */
#define GROWTH_MAX 4
#define GROWTH_FREE ((size_t)32 << 20)
#define BLOCK_COST 16 /* about what an allocator adds to each block */

static void *take(void *context, size_t size)
{
    size_t *room = context;
    if (size > *room || *room - size < BLOCK_COST)
        return NULL;
    *room -= size + BLOCK_COST;
    return mem_alloc(size);
}

static void give(void *context, void *block)
{
    (void)context;
    free(block);
}

/* Every caller gives NULL for `allocator`, here and to hvdrun__..._free_unpacked. There it means
 * free(). */
ProtobufCMessage *message_unpack(const ProtobufCMessageDescriptor *descriptor,
                                 ProtobufCAllocator *allocator, size_t length, const uint8_t *bytes)
{
    size_t room = GROWTH_FREE + GROWTH_MAX * length;
    ProtobufCAllocator ours = {.alloc = take, .free = give, .allocator_data = &room};
    return protobuf_c_message_unpack(descriptor, allocator == NULL ? &ours : allocator, length,
                                     bytes);
}

ProtobufCBinaryData message_pack(const ProtobufCMessage *message)
{
    size_t length = message == NULL ? 0 : protobuf_c_message_get_packed_size(message);
    ProtobufCBinaryData packed = {length, mem_alloc(length + 1)};
    if (message != NULL)
        protobuf_c_message_pack(message, packed.data);
    return packed;
}

ProtobufCMessage *message_read(const ProtobufCMessageDescriptor *kind, const uint8_t *bytes,
                               size_t length)
{
    return message_unpack(kind, NULL, length, bytes);
}

void message_free(ProtobufCMessage *message)
{
    if (message != NULL)
        protobuf_c_message_free_unpacked(message, NULL);
}
