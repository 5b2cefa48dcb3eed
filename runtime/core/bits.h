/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of small numbers (ranks, numbers of the cache) as bits. A set grows as needed. An all-zero
 * struct is an empty set. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bits {
    uint64_t *words; /* owned */
    size_t count;    /* words */
};

#define AUTO_BITS __attribute__((cleanup(bits_destroy)))

void bits_destroy(struct bits *bits); /* leaves an empty set */
void bits_clear(struct bits *bits);
void bits_set(struct bits *bits, size_t number);
void bits_unset(struct bits *bits, size_t number);
bool bits_test(const struct bits *bits, size_t number);
bool bits_any(const struct bits *bits);
size_t bits_size(const struct bits *bits); /* how many numbers it has */
bool bits_equal(const struct bits *a, const struct bits *b);
bool bits_meet(const struct bits *a, const struct bits *b);         /* have a number in common */
bool bits_contain(const struct bits *all, const struct bits *part); /* `all` has each of `part` */
void bits_add(struct bits *to, const struct bits *from);
void bits_remove(struct bits *from, const struct bits *what);
void bits_copy(struct bits *to, const struct bits *from);

/* The first number that is at least `from`; SIZE_MAX: none. */
size_t bits_next(const struct bits *bits, size_t from);
