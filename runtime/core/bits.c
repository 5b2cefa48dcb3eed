/* SPDX-License-Identifier: Apache-2.0 */
#include "core/bits.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { WORD = 64 };

void bits_destroy(struct bits *bits)
{
    free(bits->words);
    *bits = (struct bits){0};
}

void bits_clear(struct bits *bits)
{
    if (bits->count > 0)
        memset(bits->words, 0, bits->count * sizeof *bits->words);
}

static void grow(struct bits *bits, size_t count)
{
    if (count > bits->count)
        bits->words = mem_reach(bits->words, &bits->count, count, sizeof *bits->words);
}

void bits_set(struct bits *bits, size_t number)
{
    grow(bits, number / WORD + 1);
    bits->words[number / WORD] |= (uint64_t)1 << number % WORD;
}

void bits_unset(struct bits *bits, size_t number)
{
    if (number / WORD < bits->count)
        bits->words[number / WORD] &= ~((uint64_t)1 << number % WORD);
}

bool bits_test(const struct bits *bits, size_t number)
{
    return number / WORD < bits->count && (bits->words[number / WORD] >> number % WORD & 1) != 0;
}

static uint64_t word(const struct bits *bits, size_t i)
{
    return i < bits->count ? bits->words[i] : 0;
}

bool bits_any(const struct bits *bits)
{
    return bits_next(bits, 0) != SIZE_MAX;
}

size_t bits_size(const struct bits *bits)
{
    size_t size = 0;
    for (size_t i = 0; i < bits->count; i++)
        size += (size_t)__builtin_popcountll(bits->words[i]);
    return size;
}

bool bits_equal(const struct bits *a, const struct bits *b)
{
    return bits_contain(a, b) && bits_contain(b, a);
}

bool bits_meet(const struct bits *a, const struct bits *b)
{
    for (size_t i = 0; i < a->count; i++)
        if ((a->words[i] & word(b, i)) != 0)
            return true;
    return false;
}

bool bits_contain(const struct bits *all, const struct bits *part)
{
    for (size_t i = 0; i < part->count; i++)
        if ((part->words[i] & ~word(all, i)) != 0)
            return false;
    return true;
}

void bits_add(struct bits *to, const struct bits *from)
{
    grow(to, from->count);
    for (size_t i = 0; i < from->count; i++)
        to->words[i] |= from->words[i];
}

void bits_remove(struct bits *from, const struct bits *what)
{
    for (size_t i = 0; i < from->count; i++)
        from->words[i] &= ~word(what, i);
}

void bits_copy(struct bits *to, const struct bits *from)
{
    bits_clear(to);
    bits_add(to, from);
}

size_t bits_next(const struct bits *bits, size_t from)
{
    for (size_t i = from / WORD; i < bits->count; i++) {
        uint64_t left = bits->words[i];
        if (i == from / WORD)
            left &= ~(uint64_t)0 << from % WORD;
        if (left != 0)
            return i * WORD + (size_t)__builtin_ctzll(left);
    }
    return SIZE_MAX;
}
