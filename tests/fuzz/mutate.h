/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs made of others by random changes, for replay.c. The same seed gives the same inputs. Far
 * simpler than libFuzzer, which sees what the program does with its inputs: this one only walks
 * around the corpus.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define MUTATE_SIZE_MAX ((size_t)64 << 10)
#define MUTATE_SEED UINT64_C(20261121)

struct mutate_input {
    uint8_t *bytes;
    size_t length;
};

/* All zero but for `state`: nothing yet. */
struct mutate_corpus {
    struct mutate_input *inputs, *words;
    size_t count, word_count;
    uint64_t state; /* of the random numbers */
};

void mutate_add(struct mutate_corpus *corpus, const void *bytes, size_t length);

/* The words of a dictionary as libFuzzer has them: lines of NAME="VALUE" or "VALUE", where \xNN,
 * \\ and \" are escapes; # begins a comment. */
int mutate_read_words(struct mutate_corpus *corpus, const char *path, struct error *err);

/* Writes the next one to `out`, which has MUTATE_SIZE_MAX bytes of room. */
void mutate_next(struct mutate_corpus *corpus, struct mutate_input *out);
void mutate_destroy(struct mutate_corpus *corpus);
