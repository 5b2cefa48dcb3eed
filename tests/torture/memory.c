/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations. The allocator's own functions are called by their second names, since to look up the
 * first ones takes memory.
 */
#include <errno.h>
#include <stdlib.h>

#include "fault.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
    return fault_now("malloc", FAULT_ALLOC) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fault_now("calloc", FAULT_ALLOC) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fault_now("realloc", FAULT_ALLOC) ? NULL : __libc_realloc(old, size);
}

int posix_memalign(void **place, size_t alignment, size_t size)
{
    *place = fault_now("posix_memalign", FAULT_ALLOC) ? NULL : __libc_memalign(alignment, size);
    return *place == NULL ? ENOMEM : 0;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fault_now("aligned_alloc", FAULT_ALLOC) ? NULL : __libc_memalign(alignment, size);
}
