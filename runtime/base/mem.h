/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation that never returns NULL.
 *
 * Policy: if a process of the launcher runs out of memory, it prints one line and ends with
 * STATUS_LAUNCHER. That is safe, because another process watches every process of a job and cleans
 * up after it (docs/design.md, "nothing survives"). To unwind through code that itself needs memory
 * would be less safe.
 *
 * libhvd does the same, in the user's process, for its small blocks. Memory for tensors and threads
 * is not from here: without it, libhvd returns HVD_ERR_MEMORY (docs/runtime.md).
 */
#pragma once

#include <stddef.h>

void *mem_alloc(size_t size);               /* zeroed */
void *mem_array(size_t count, size_t size); /* zeroed, overflow-checked */
void *mem_resize(void *old, size_t size);   /* as realloc */
void *mem_resize_array(void *old, size_t count, size_t size);
/* A new last item of an array that grows one by one and stays short, as a place to assign to:
 * MEM_ADD(list->items, list->count) = item. Both are evaluated several times. */
#define MEM_ADD(items, count)                                                     \
    (*({                                                                          \
        (items) = mem_resize_array(items, (size_t)(count) + 1, sizeof(*(items))); \
        &(items)[(count)++];                                                      \
    }))
/* The same of an array with space for `room` items (a size_t), which doubles when it is full. */
#define MEM_ADD_ROOM(items, count, room)                                             \
    (*({                                                                             \
        (items) = mem_one_more((items), (size_t)(count), &(room), sizeof(*(items))); \
        &(items)[(count)++];                                                         \
    }))
/* Makes room for an item behind the first `count`. `*room` at least doubles if it is full. Returns
 * the array, perhaps moved; new items are not zeroed. */
void *mem_one_more(void *items, size_t count, size_t *room, size_t size);
/* Makes an array have at least `wanted` items; the new ones are zeroed. Sets *count. Returns the
 * array, perhaps moved. */
void *mem_reach(void *items, size_t *count, size_t wanted, size_t size);
char *mem_strdup(const char *text); /* NULL stays NULL */
char *mem_strndup(const char *text, size_t length);
/* Frees the text at `at`, and puts a copy of `text` there, which may be the old one, or NULL. */
void mem_replace(char **at, const char *text);
void *mem_dup(const void *bytes, size_t size);
/* A copy of a compound literal, which is on the stack: MEM_NEW((struct x){.a = 1}). */
#define MEM_NEW(...)                                                             \
    ({                                                                           \
        _Static_assert(sizeof(__VA_ARGS__) <= 16384, "too large for the stack"); \
        (typeof(__VA_ARGS__) *)mem_dup(&(__VA_ARGS__), sizeof(__VA_ARGS__));     \
    })
/* Whole pages, zeroed. They go back to the kernel when they are freed. From malloc(), even a large
 * block can be a piece of the heap, where it leaves a hole. */
void *mem_pages(size_t size);
void mem_free_pages(void *pages, size_t size);
char *mem_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* All of these functions call this when memory runs out. Call it too if memory from elsewhere (the
 * kernel, a library) runs out. */
_Noreturn void mem_exhausted(void);

/* The line that it prints. libhvd and its engines have one of their own. */
extern const char mem_last_words[];

/* Frees the pointer that the argument points to, and sets it to NULL. For __attribute__((cleanup)).
 */
void mem_free_at(void *pointer_to_pointer);
#define AUTO_FREE __attribute__((cleanup(mem_free_at)))
