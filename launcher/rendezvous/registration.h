/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Horovod elastic worker registers (`PUT /worker_addresses/<host>:<local rank>`): where its
 * notification service listens, and the key that authenticates both sides there. The body is base64
 * of a pickle of ({interface: [(IPv4 address, port), ...], ...}, key). Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    REGISTRATION_BODY_MAX = 64 * 1024, /* bytes of base64 */
    REGISTRATION_ADDRESSES_MAX = 256,
    REGISTRATION_INTERFACE_MAX = 63, /* bytes of a name */
    REGISTRATION_KEY_MAX = 256,
};

struct registration_address {
    char interface[REGISTRATION_INTERFACE_MAX + 1]; /* '?' for each byte that is not ASCII */
    char text[16];                                  /* IPv4, as inet_ntop(3) writes it */
    uint16_t port;                                  /* host byte order, never 0 */
};

struct registration {
    struct registration_address *addresses; /* in the order in which they came */
    size_t count;                           /* at least 1 */
    uint8_t key[REGISTRATION_KEY_MAX];
    size_t key_length; /* at least 1 */
};

/* -1: `err` says what is wrong ("the worker's registration cannot be read: ..."), and `out`
 * is empty. */
int registration_read(const void *body, size_t length, struct registration *out, struct error *err);
void registration_destroy(struct registration *registration); /* accepts an all-zero struct */
