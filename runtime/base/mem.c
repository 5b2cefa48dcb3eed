/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/status.h"

__attribute__((weak)) const char mem_last_words[] =
    "hvdrun: out of memory; the job is being ended\n";

void mem_exhausted(void)
{
    ssize_t ignored = write(STDERR_FILENO, mem_last_words, strlen(mem_last_words));
    (void)ignored;
    _exit(STATUS_LAUNCHER);
}

void *mem_alloc(size_t size)
{
    return mem_array(1, size);
}

void *mem_array(size_t count, size_t size)
{
    void *block = calloc(count > 0 ? count : 1, size > 0 ? size : 1);
    if (block == NULL)
        mem_exhausted();
    return block;
}

void *mem_resize(void *old, size_t size)
{
    void *block = realloc(old, size > 0 ? size : 1);
    if (block == NULL)
        mem_exhausted();
    return block;
}

void *mem_resize_array(void *old, size_t count, size_t size)
{
    if (size > 0 && count > SIZE_MAX / size)
        mem_exhausted();
    return mem_resize(old, count * size);
}

void *mem_one_more(void *items, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return items;
    *room = *room > 0 ? *room * 2 : 16;
    return mem_resize_array(items, *room, size);
}

void *mem_reach(void *items, size_t *count, size_t wanted, size_t size)
{
    if (wanted <= *count)
        return items;
    char *reached = mem_resize_array(items, wanted, size);
    memset(reached + *count * size, 0, (wanted - *count) * size);
    *count = wanted;
    return reached;
}

char *mem_strdup(const char *text)
{
    return text == NULL ? NULL : mem_dup(text, strlen(text) + 1);
}

char *mem_strndup(const char *text, size_t length)
{
    size_t used = strnlen(text, length);
    char *copy = mem_resize(NULL, used + 1);
    memcpy(copy, text, used);
    copy[used] = '\0';
    return copy;
}

void mem_replace(char **at, const char *text)
{
    char *copy = mem_strdup(text);
    free(*at);
    *at = copy;
}

void *mem_dup(const void *bytes, size_t size)
{
    void *copy = mem_resize(NULL, size);
    if (size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

void *mem_pages(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        mem_exhausted();
    return pages;
}

void mem_free_pages(void *pages, size_t size)
{
    munmap(pages, size);
}

char *mem_printf(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0)
        mem_exhausted();
    return text;
}

void mem_free_at(void *pointer_to_pointer)
{
    void *block;
    memcpy(&block, pointer_to_pointer, sizeof(block));
    free(block);
    block = NULL;
    memcpy(pointer_to_pointer, &block, sizeof(block));
}
