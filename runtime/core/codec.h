/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How numbers and texts are written into messages. Numbers have 7 bits in each byte, the lowest
 * first, and the highest bit says that more follow. Bytes from other ranks are not trusted: a
 * reader that finds something wrong becomes `bad`, and from then on reads zeros and empty texts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "core/bits.h"

/* The largest message, and how many whole requests one has at most: all of them fit, whatever their
 * names and shapes are. */
#define CORE_MESSAGE_MAX ((size_t)128 << 20)
enum { CORE_BATCH_MAX = 16384 };

struct reader {
    const unsigned char *at;
    size_t left;
    bool bad;
};

void put_number(struct buf *out, uint64_t value);
void put_signed(struct buf *out, int64_t value);
void put_real(struct buf *out, double value);
void put_text(struct buf *out, const char *text);
void put_bits(struct buf *out, const struct bits *bits);

uint64_t get_number(struct reader *in);
uint64_t get_number_below(struct reader *in, uint64_t end); /* bad: it is `end` or more */
int64_t get_signed(struct reader *in);
double get_real(struct reader *in);
/* The caller frees it; NULL if the reader is bad. At most `max` bytes, none of them NUL. */
char *get_text(struct reader *in, size_t max);
/* Replaces the content. All numbers are below `end`. */
void get_bits(struct reader *in, size_t end, struct bits *out);
