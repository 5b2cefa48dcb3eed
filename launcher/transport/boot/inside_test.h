/* SPDX-License-Identifier: Apache-2.0 */
/* What only the tests of boot.c and agent_image.c use. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct image_facts; /* transport/boot/agent_image.h */

#define PRINTABLE_ROOM 240

/* Trims blanks at both ends, replaces what is not printable ASCII or UTF-8 text by '?', and cuts
 * what does not fit. */
void printable_line(const char *bytes, size_t length, char out[PRINTABLE_ROOM]);

/* -1: not an ELF executable of our own class and byte order, or for an unknown machine. */
int image_facts_read(const void *bytes, size_t length, struct image_facts *out, struct error *err);
