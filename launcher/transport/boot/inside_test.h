/* SPDX-License-Identifier: Apache-2.0 */
/* What only the tests of boot.c and agent_image.c use. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define PRINTABLE_ROOM 240

/* Trims blanks at both ends, replaces what is not printable ASCII or UTF-8 text by '?', and cuts
 * what does not fit. */
void printable_line(const char *bytes, size_t length, char out[PRINTABLE_ROOM]);

struct image_facts {
    const char *machine;          /* as `uname -m` says it there; static */
    int glibc_major, glibc_minor; /* the least that it needs; 0.0: none */
};

/* -1: not an ELF executable of our own class and byte order, or for an unknown machine. */
int image_facts_read(const void *bytes, size_t length, struct image_facts *out, struct error *err);
