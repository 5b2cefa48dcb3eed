/* SPDX-License-Identifier: Apache-2.0 */
/* hvdrun-agent as it is sent to hosts: one file that contains what it needs of ours, mapped, so
 * that many hosts share one copy. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct agent_image {
    const uint8_t *bytes; /* mapped until agent_image_close() */
    size_t length;
    char hash[65]; /* SHA-256, hexadecimal; "": not hashed yet */
    struct image_facts {
        const char *machine;          /* `uname -m` of hosts that can run it; static */
        int glibc_major, glibc_minor; /* the least that it needs; 0.0: none */
    } facts;
};

int agent_image_open(const char *path, struct agent_image *image, struct error *err);
/* Takes milliseconds, once: boot_create() needs it. Best done while a host is waited for. */
void agent_image_hash(struct agent_image *image);
void agent_image_close(struct agent_image *image); /* also one that was never opened (all zero) */
