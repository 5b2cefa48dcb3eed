/* SPDX-License-Identifier: Apache-2.0 */
/* What a host has said about itself, and whether our agent can run there. Pure. */
#pragma once

#include "transport/boot/agent_image.h"

struct boot_host {
    char kernel[64], machine[64];
    char libc[128]; /* "glibc 2.36", "musl", the first line of ldd --version, or "" */
};

/* From "KERNEL MACHINE LIBC...". */
void boot_host_parse(const char *text, struct boot_host *out);

/* -1: it cannot, and `err` says why and what to do. An unknown fact does not count against it. */
int boot_host_check(const struct boot_host *host, const struct agent_image *image,
                    struct error *err);
