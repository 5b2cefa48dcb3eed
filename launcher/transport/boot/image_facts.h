/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an executable needs of the machine that runs it, read from its ELF headers. Pure: bytes in,
 * facts out; broken headers are an error or leave a fact out, never more.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct image_facts {
    const char *machine;          /* as `uname -m` says it there; static */
    int glibc_major, glibc_minor; /* the least that it needs; 0.0: none */
};

/* -1: no ELF executable of this machine's own class and byte order, or of an unknown machine. */
int image_facts_read(const void *bytes, size_t length, struct image_facts *out, struct error *err);
