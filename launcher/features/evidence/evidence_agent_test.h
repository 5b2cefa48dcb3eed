/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of evidence need, and nobody else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/env/flight_recorder.h"

struct flight_item {
    uint32_t seat;
    struct flight_places places;
    bool ended;
    char *bytes; /* NULL: none */
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
