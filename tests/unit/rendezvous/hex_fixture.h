/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded bytes as hexadecimal digits, and mutations of them. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Spaces between the bytes are skipped. The caller frees it: exactly as long as it is, so that a
 * sanitizer sees a read beyond its end. */
static inline uint8_t *from_hex(const char *text, size_t *length)
{
    uint8_t *bytes = mem_alloc(strlen(text) / 2 + 1);
    *length = 0;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == ' ')
            continue;
        const char pair[] = {at[0], at[1], '\0'};
        bytes[(*length)++] = (uint8_t)strtoul(pair, NULL, 16);
        at++;
    }
    return mem_resize(bytes, *length > 0 ? *length : 1);
}

static inline char *to_base64(const uint8_t *bytes, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = mem_alloc(length / 3 * 4 + 5);
    size_t at = 0;
    for (size_t i = 0; i < length; i += 3) {
        uint32_t bits = 0;
        for (size_t j = i; j < i + 3; j++)
            bits = bits << 8 | (j < length ? bytes[j] : 0);
        for (size_t j = 0; j < 4; j++)
            text[at++] = i + j <= length ? digits[bits >> (18 - 6 * j) & 63] : '=';
    }
    return text;
}

/* A linear congruential generator: the same numbers in every run. */
static inline uint32_t fuzz_next(uint64_t *seed, uint32_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33) % below;
}

/* A copy (the caller's) that is changed at one to four places: a bit, a byte, a byte of `words`, a
 * cut, a piece doubled, a piece removed. */
static inline uint8_t *mutate(const uint8_t *bytes, size_t length, const char *words,
                              size_t word_count, uint64_t *seed, size_t *out_length)
{
    size_t now = length;
    uint8_t *copy = mem_alloc(length * 16 + 16);
    memcpy(copy, bytes, length);
    for (uint32_t changes = 1 + fuzz_next(seed, 4); changes > 0 && now > 0; changes--) {
        size_t at = fuzz_next(seed, (uint32_t)now);
        size_t piece = fuzz_next(seed, (uint32_t)(now - at));
        switch (fuzz_next(seed, 6)) {
        case 0: copy[at] ^= (uint8_t)(1u << fuzz_next(seed, 8)); break;
        case 1: copy[at] = (uint8_t)fuzz_next(seed, 256); break;
        case 2: copy[at] = (uint8_t)words[fuzz_next(seed, (uint32_t)word_count)]; break;
        case 3: now = fuzz_next(seed, 8) == 0 ? at : now; break;
        case 4:
            memmove(copy + at + piece, copy + at, now - at);
            now += piece;
            break;
        default: memmove(copy + at, copy + at + piece, now - at - piece); now -= piece;
        }
    }
    *out_length = now;
    return mem_resize(copy, now > 0 ? now : 1);
}
