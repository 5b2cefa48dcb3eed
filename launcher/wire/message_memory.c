/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message_memory.h"

#include <stdlib.h>

#include "base/mem.h"

#undef protobuf_c_message_unpack

static void *take(void *context, size_t size)
{
    (void)context;
    return mem_alloc(size);
}

static void give(void *context, void *block)
{
    (void)context;
    free(block);
}

/* `allocator` is NULL everywhere; so is that of hvdrun__..._free_unpacked, which means free(). */
ProtobufCMessage *message_unpack(const ProtobufCMessageDescriptor *descriptor,
                                 ProtobufCAllocator *allocator, size_t length, const uint8_t *bytes)
{
    ProtobufCAllocator ours = {.alloc = take, .free = give};
    return protobuf_c_message_unpack(descriptor, allocator == NULL ? &ours : allocator, length,
                                     bytes);
}
