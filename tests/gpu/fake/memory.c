/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake.h"

#define SPACE ((size_t)2 << 30) /* of addresses: pages come when they are written */
enum { ALIGNMENT = 512, BLOCKS_MAX = 1 << 16 };

struct block {
    size_t offset, bytes;
    int device;
};

/* The blocks that exist, by offset. */
static struct {
    pthread_mutex_t lock;
    char *device, *shadow;
    struct block blocks[BLOCKS_MAX];
    size_t count;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool map(void)
{
    if (memory.device != NULL)
        return true;
    int fd = memfd_create("fake-gpu", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)SPACE) != 0)
        return false;
    void *device = mmap(NULL, SPACE, PROT_NONE, MAP_SHARED, fd, 0);
    void *shadow = mmap(NULL, SPACE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    close(fd);
    if (device == MAP_FAILED || shadow == MAP_FAILED)
        return false;
    memory.device = device;
    memory.shadow = shadow;
    return true;
}

/* With the lock held: the first gap. */
static size_t place(size_t bytes, size_t *offset)
{
    size_t at = 0;
    *offset = ALIGNMENT;
    for (; at < memory.count; at++) {
        if (memory.blocks[at].offset - *offset >= bytes)
            break;
        *offset = memory.blocks[at].offset + memory.blocks[at].bytes;
    }
    return at;
}

uint64_t memory_new(int device, size_t bytes)
{
    uint64_t address = 0;
    size_t offset, room = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (bytes == 0 || bytes > SPACE)
        return 0;
    pthread_mutex_lock(&memory.lock);
    if (map() && memory.count < BLOCKS_MAX) {
        size_t at = place(room, &offset);
        if (offset + room <= SPACE) {
            for (size_t i = memory.count++; i > at; i--)
                memory.blocks[i] = memory.blocks[i - 1];
            memory.blocks[at] = (struct block){offset, room, device};
            address = (uint64_t)(uintptr_t)(memory.device + offset);
        }
    }
    pthread_mutex_unlock(&memory.lock);
    return address;
}

static bool is_device(const void *pointer)
{
    return memory.device != NULL && (const char *)pointer >= memory.device &&
           (const char *)pointer < memory.device + SPACE;
}

/* With the lock held. -1: none. */
static long find(uint64_t address)
{
    const char *pointer = (const char *)(uintptr_t)address;
    for (size_t i = 0; i < memory.count && is_device(pointer); i++) {
        size_t offset = (size_t)(pointer - memory.device);
        if (offset >= memory.blocks[i].offset &&
            offset < memory.blocks[i].offset + memory.blocks[i].bytes)
            return (long)i;
    }
    return -1;
}

bool memory_free(uint64_t address)
{
    pthread_mutex_lock(&memory.lock);
    long at = find(address);
    for (size_t i = at < 0 ? memory.count : (size_t)at; i + 1 < memory.count; i++)
        memory.blocks[i] = memory.blocks[i + 1];
    if (at >= 0)
        memory.count--;
    pthread_mutex_unlock(&memory.lock);
    return at >= 0;
}

int memory_device(uint64_t address)
{
    pthread_mutex_lock(&memory.lock);
    long at = find(address);
    int device = at < 0 ? -1 : memory.blocks[at].device;
    pthread_mutex_unlock(&memory.lock);
    return device;
}

void *fake_shadow(const void *device)
{
    return is_device(device) ? memory.shadow + ((const char *)device - memory.device)
                             : (void *)(uintptr_t)device;
}

size_t fake_live_allocations(void)
{
    pthread_mutex_lock(&memory.lock);
    size_t count = memory.count;
    pthread_mutex_unlock(&memory.lock);
    return count;
}
