/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the last lines of a worker's stderr say about its end. It had an error of its own, or got
 * one from a peer. symptom.def lists the texts. Pure.
 *
 * The first error counts. These rules keep an old error from counting:
 * - A worker that goes on after an error has handled it. It goes on if it writes an ordinary line,
 *   or to its other stream, more than TAIL_SILENCE_NS after the error. hvdrun forgets the error.
 * - The traceback after "Exception ignored in" ends nothing.
 * - The error is MIXED if an error from a peer came first and then, separately, one of its own. It
 *   is MIXED, too, if both are in one chain of Python exceptions and its own came first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/exit/tail.h"

#define SYMPTOM_LINE_MAX 200

enum symptom_kind {
    SYMPTOM_NONE,
    SYMPTOM_OWN,     /* an error of the worker alone */
    SYMPTOM_LOST,    /* a peer has gone */
    SYMPTOM_TIMEOUT, /* a peer does not answer */
    SYMPTOM_MIXED,
};

static inline bool symptom_blames_peer(enum symptom_kind kind)
{
    return kind == SYMPTOM_LOST || kind == SYMPTOM_TIMEOUT;
}

struct symptom {
    enum symptom_kind kind;
    bool of_rank;    /* LOST, TIMEOUT: the peer is a rank for sure, and not another service */
    bool left;       /* LOST: it has shut its library down in good order, or ended without that */
    int peer;        /* with `left`: its rank; -1: the text does not name it */
    int64_t when_ns; /* of its first line */
    char line[SYMPTOM_LINE_MAX + 1]; /* printable, cut to fit: "ValueError: bad row", ... */
};

/* Lines that were read at `until_ns` or later do not count. */
void symptom_read(const struct tail *tail, int64_t until_ns, struct symptom *out);
