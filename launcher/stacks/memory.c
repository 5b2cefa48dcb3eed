/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/memory.h"

#include <string.h>

#define LOWEST_POINTER 4096
#define POINTER_LIMIT ((uint64_t)1 << 52) /* aarch64; x86-64 has less, and the read fails there */

int memory_read(struct memory *memory, uint64_t address, void *out, size_t length)
{
    size_t cost = length + MEMORY_READ_COST;
    if (address < LOWEST_POINTER || address >= POINTER_LIMIT || cost > memory->budget) {
        memory->budget = cost > memory->budget ? 0 : memory->budget;
        return -1;
    }
    memory->budget -= cost;
    return memory->read(memory->context, address, out, length);
}

int memory_u64(struct memory *memory, uint64_t address, uint64_t *out)
{
    return memory_read(memory, address, out, sizeof(*out));
}

int memory_i32(struct memory *memory, uint64_t address, int32_t *out)
{
    return memory_read(memory, address, out, sizeof(*out));
}

int memory_pointer(struct memory *memory, uint64_t address, uint64_t *out)
{
    uint64_t value = 0;
    if (memory_u64(memory, address, &value) < 0 || (value != 0 && !memory_is_pointer(value)))
        return -1;
    *out = value;
    return 0;
}

bool memory_is_pointer(uint64_t value)
{
    return value >= LOWEST_POINTER && value < POINTER_LIMIT && value % 8 == 0;
}

uint64_t memory_u64_at(const unsigned char *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof(value));
    return value;
}

uint32_t memory_u32_at(const unsigned char *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof(value));
    return value;
}
