/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of this folder need, and nobody else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is ready. */
struct discovery_settle {
    uint64_t known, candidate; /* hashes of what was read */
    bool any;
    int looks; /* since `known` was last read */
};

enum discovery_settled {
    SETTLED_SAME,  /* the known content */
    SETTLED_AGAIN, /* other content: look again soon */
    SETTLED_NEW,   /* other content that counts from now on */
};

/* A read of the file: its content, or (if not `readable`) the error text. Content that keeps
 * changing counts after a number of reads. */
enum discovery_settled discovery_settle_look(struct discovery_settle *settle, bool readable,
                                             const char *bytes, size_t length);
