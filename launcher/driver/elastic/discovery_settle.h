/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a file that others write may be believed: what is read of it counts once it has been read
 * twice alike. A file that is being written, or is gone for the moment between its removal and its
 * making, is so never taken for a new one. The first look of all counts at once. No I/O, no clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* All zero is ready. */
struct discovery_settle {
    struct buf known, candidate; /* a byte for "could be read", and what was read or the error */
    bool any;
    int looks; /* since `known` was last seen */
};

enum discovery_settled {
    SETTLED_SAME,  /* as known */
    SETTLED_AGAIN, /* something else: look again soon */
    SETTLED_NEW,   /* something else that counts from now on */
};

/* A look at the file: its content, or (not `readable`) the text that says why not. What never stays
 * the same counts after some looks all the same. */
enum discovery_settled discovery_settle_look(struct discovery_settle *settle, bool readable,
                                             const char *bytes, size_t length);
void discovery_settle_destroy(struct discovery_settle *settle);
