/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message_memory.h"

#include <stdlib.h>

#include "base/mem.h"

#undef protobuf_c_message_unpack

/* A byte or two can become a whole struct of an empty message, of which lists may hold any number:
 * a list may grow so far beyond what it took on the way. */
#define GROWTH_MAX 4
#define GROWTH_FREE ((size_t)32 << 20)
#define BLOCK_COST 16 /* what an allocator adds, about */

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

/* `allocator` is NULL everywhere; so is that of hvdrun__..._free_unpacked, which means free(). */
ProtobufCMessage *message_unpack(const ProtobufCMessageDescriptor *descriptor,
                                 ProtobufCAllocator *allocator, size_t length, const uint8_t *bytes)
{
    size_t room = GROWTH_FREE + GROWTH_MAX * length;
    ProtobufCAllocator ours = {.alloc = take, .free = give, .allocator_data = &room};
    return protobuf_c_message_unpack(descriptor, allocator == NULL ? &ours : allocator, length,
                                     bytes);
}
