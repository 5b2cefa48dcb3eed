/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of agent_image alone. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "transport/boot/agent_image.h"

struct image_facts {
    const char *machine;          /* as `uname -m` says it there; static */
    int glibc_major, glibc_minor; /* the least that it needs; 0.0: none */
};

/* -1: not an ELF executable of our own class and byte order, or for an unknown machine. */
int image_facts_read(const void *bytes, size_t length, struct image_facts *out, struct error *err);
