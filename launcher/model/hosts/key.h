/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys by which -H and all dialects of hostfiles describe a host. Pure. Errors have
 * STATUS_USAGE and say what was found and what was expected; the caller puts the place in front.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/plain.h"
#include "model/hosts/hosts.h"

enum host_key {
    HOST_KEY_SLOTS,
    HOST_KEY_MAX_SLOTS,
    HOST_KEY_USER,
    HOST_KEY_PORT,
    HOST_KEY_ADDRESS,
    HOST_KEY_IDENTITY,
    HOST_KEY_TRANSPORT,
    HOST_KEY_GPUS,
    HOST_KEY_WDIR,
    HOST_KEY_TOTAL, /* not a key */
};

/* A value that has been checked. */
struct host_value {
    const char *text; /* borrowed, without the brackets around an address; NULL: not said */
    size_t length;
    int number; /* of a key that has one: a count, a port, enum set_transport */
};

struct host_said {
    struct host_value values[HOST_KEY_TOTAL];
};

/* By its name or a name of other launchers ("max-slots", "cpu", "username"). */
enum host_key host_key_find(const char *word, size_t length);
const char *host_key_name(enum host_key key);

int host_key_read(enum host_key key, const char *text, size_t length, struct host_value *out,
                  struct error *err);

/* Not for slots, which add up. */
bool host_key_is_set(const struct host *host, enum host_key key);
bool host_key_differs(const struct host *host, enum host_key key, const struct host_value *value);
void host_key_put(struct host *host, enum host_key key, const struct host_value *value);

struct plain_shown host_key_show(const struct host *host, enum host_key key); /* what is set */

/* An address as inet_pton() accepts it, with or without a scope ("fe80::1%eth0"). */
bool host_is_ipv6(const char *text, size_t length);
