/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a fuzz target is made of. A target is one file, fuzz_NOUN.c, with one function, FUZZ_TARGET:
 * bytes in; what must not happen ends the process (a sanitizer's finding, FUZZ_CHECK, a hang). It
 * is linked with libFuzzer, or with replay.c; see README.md.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* FUZZ_RUN is the function's name, which the build says. */
#define FUZZ_TARGET                                 \
    int FUZZ_RUN(const uint8_t *data, size_t size); \
    int FUZZ_RUN(const uint8_t *data, size_t size)

static inline void fuzz_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: this does not hold: %s\n", file, line, condition);
    abort();
}

/* What is true whatever the input is. */
#define FUZZ_CHECK(condition)                            \
    do {                                                 \
        if (!(condition))                                \
            fuzz_failed(__FILE__, __LINE__, #condition); \
    } while (0)

/* Input that is consumed from its front; past its end everything is zero and empty. */
struct fuzz_bytes {
    const uint8_t *at;
    size_t left;
};

static inline uint8_t fuzz_u8(struct fuzz_bytes *bytes)
{
    if (bytes->left == 0)
        return 0;
    bytes->left--;
    return *bytes->at++;
}

/* Mostly a number at one of the borders where code goes wrong. */
static inline uint32_t fuzz_u32(struct fuzz_bytes *bytes)
{
    static const uint32_t borders[] = {0,          1,          2,          3,         4,
                                       5,          7,          8,          255,       256,
                                       65535,      65536,      1000000,    0x7ffffff, 0x7fffffff,
                                       0x80000000, 0xfffffffe, 0xffffffff, 100,       1u << 20};
    const size_t count = sizeof(borders) / sizeof(borders[0]);
    uint8_t choice = fuzz_u8(bytes);
    if (choice < 4 * count)
        return borders[choice % count];
    return (uint32_t)choice << 24 | (uint32_t)fuzz_u8(bytes) << 8 | fuzz_u8(bytes);
}

static inline uint64_t fuzz_u64(struct fuzz_bytes *bytes)
{
    uint64_t high = fuzz_u8(bytes) % 4 == 0 ? fuzz_u32(bytes) : 0;
    return high << 32 | fuzz_u32(bytes);
}

/* A string of its own allocation, so that one byte read too far is found. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = mem_alloc(size + 1);
    if (size > 0)
        memcpy(text, data, size);
    return text;
}

/* The next line without its end, likewise; the rest stays. Past the end it is "". */
static inline char *fuzz_line(struct fuzz_bytes *bytes)
{
    const uint8_t *end = bytes->left == 0 ? NULL : memchr(bytes->at, '\n', bytes->left);
    size_t length = end == NULL ? bytes->left : (size_t)(end - bytes->at);
    char *line = fuzz_text(bytes->at, length);
    bytes->at += length + (end != NULL);
    bytes->left -= length + (end != NULL);
    return line;
}

static inline char *fuzz_rest(struct fuzz_bytes *bytes)
{
    char *text = fuzz_text(bytes->at, bytes->left);
    bytes->left = 0;
    return text;
}

/* An error that is told is one line that fits. */
static inline void fuzz_check_error(int result, const struct error *err)
{
    FUZZ_CHECK(result >= 0 || err->text[0] != '\0');
    FUZZ_CHECK(strlen(err->text) < ERROR_TEXT_MAX);
}
