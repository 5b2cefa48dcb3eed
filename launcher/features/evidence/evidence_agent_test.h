/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of evidence need, and nobody else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/fd.h"
#include "model/env/flight_recorder.h"

struct flight_item {
    uint32_t seat;
    struct flight_places places;
    bool ended, told; /* by the thread; by flight_dumps_advance() */
    char *bytes;      /* NULL: none */
    size_t length;
    const char *missing; /* why; static. NULL without bytes: the worker records nothing */
};

struct flight_dumps;

/* Takes the places. `room`: bytes of all dumps. */
struct flight_dumps *flight_dumps_create(struct flight_item *items_take, size_t count, size_t room);

/* Those that have come since the last call: `item` is borrowed for the call. true: there are no
 * more. After the deadline, the rest is missing. */
bool flight_dumps_advance(struct flight_dumps *dumps,
                          void (*each)(void *context, const struct flight_item *item),
                          void *context);
void flight_dumps_destroy(struct flight_dumps *dumps); /* accepts NULL */

/*
 * One dump of PyTorch's flight recorder (model/env/flight_recorder.h). The rank makes the FIFO and
 * writes the file in place, so its last byte says whether it is complete. hvdrun does not look into
 * it, because it is a pickle, which can run a program when somebody loads it.
 *
 * All calls can block on a folder of a network, so they are for a thread.
 */

struct flight_dump {
    struct file_stamp before; /* the file of an earlier dump; all zero: there was none */
    struct file_stamp last;   /* as it was looked at last */
};

/* Writes a byte into the FIFO. -1: no process of ours reads there. */
int flight_dump_ask(struct flight_dump *dump, const char *pipe, const char *path);

enum flight_state {
    FLIGHT_WAITS,
    FLIGHT_TAKEN,     /* `out` has it */
    FLIGHT_TOO_LARGE, /* for `out` */
};

/* Look every FLIGHT_PAUSE_MS: a file that is complete and does not change is taken. */
enum flight_state flight_dump_look(struct flight_dump *dump, const char *path, struct buf *out);

#define FLIGHT_PAUSE_MS 200
