/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One entry of a host list, as -H and hostfiles share it: NAME or NAME:SLOTS, with USER@ in front
 * for another user. NAME may hold ranges (model/hosts/hostlist_range.h): `node[01-16]:4`. An IPv6
 * address is in brackets, `[fe80::1%eth0]:2`; an entry is one if it starts with a bracket with a
 * colon inside. Names are checked by name_is_safe() (D14). Pure.
 *
 * Errors have STATUS_USAGE and say cause and remedy; the caller puts the entry's text and place in
 * front.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/plain.h"
#include "model/hosts/hosts.h"
#include "model/hosts/key.h"

/* An entry cut into its parts; all text is borrowed. */
struct host_entry {
    const char
        *name; /* without brackets around an IPv6 address; ranges not expanded, not checked */
    size_t name_length;
    bool ipv6;
    struct host_said said; /* user and slots, as far as they were */
};

/* The bytes up to the comma that ends the entry; commas in brackets belong to a range. */
size_t host_entry_length(const char *text, size_t length);

/* `text` holds at least one byte, without blanks around it. */
int host_entry_split(const char *text, size_t length, struct host_entry *out, struct error *err);

/* The list that entries are added to; starts as {.list, .budget, .unit}. */
struct host_adding {
    struct host_list *list;
    size_t budget;    /* as in hostlist_expand() */
    const char *unit; /* what the text consists of: "line" or "entry" */
    uint32_t number;  /* of the unit, from 1 */
    uint32_t *said;   /* by host and key: the number of the unit that said it */
    size_t said_count;
    const struct host_entry *entry; /* at hand */
};

/* Adds every host that the entry means. -1 also when an earlier entry said something else about a
 * host. */
int host_entry_add(const struct host_entry *entry, struct host_adding *adding, struct error *err);
void host_adding_end(struct host_adding *adding);

/* Is this a valid host name, and is there room for one more? */
int host_entry_check_name(const struct host_list *list, const char *name, struct error *err);

/* Reads `text` as given to -H: "a:4,b:4", "[fe80::1]:2", "ann@node[01-16]:4". Blanks around an
 * entry are fine, an empty entry is an error. Appends to `out`. After an error `out` holds the
 * entries before the bad one; the caller destroys it as usual. */
int hosts_parse(const char *text, struct host_list *out, struct error *err);
