/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader of plain values in Python's pickle format, protocols 3 to 5: integers, text, bytes,
 * tuples, lists and dictionaries of them. Pure. It never executes anything: opcodes that create
 * objects or call functions are errors, like everything that is not in the table of pickle.c.
 *
 * Values are in one array and refer to each other by their index. A pickle may use one value in
 * several places, even inside itself, so code that follows references needs a limit of its own.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    PICKLE_SIZE_MAX = 64 * 1024, /* bytes; every other limit follows from it being small */
    PICKLE_VALUES_MAX = 4096,
    PICKLE_MARKS_MAX = 32,
};

enum pickle_kind { PICKLE_INT, PICKLE_TEXT, PICKLE_BYTES, PICKLE_TUPLE, PICKLE_LIST, PICKLE_DICT };

struct pickle_value {
    enum pickle_kind kind;
    int64_t number;      /* of an INT */
    const uint8_t *data; /* of TEXT and BYTES: borrowed from what was read; not NUL-ended, TEXT is
                          * not checked to be UTF-8 */
    size_t length;       /* of `data`, or of `items` */
    uint32_t *items;     /* of a TUPLE or LIST; a DICT has key, value, key, value... */
    size_t room;
};

struct pickle {
    struct pickle_value *values;
    size_t count, room;
    uint32_t root;
};

/* -1: not such a pickle; `out` is empty then. Keep `bytes` as long as `out`. */
int pickle_read(const uint8_t *bytes, size_t length, struct pickle *out, struct error *err);
void pickle_destroy(struct pickle *pickle); /* accepts an all-zero struct */
