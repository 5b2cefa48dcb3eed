/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One entry of a host list, as `-H` and hostfiles share it: NAME, NAME:SLOTS, [ADDRESS]:SLOTS,
 * NAME[01-16]:SLOTS, each with USER@ in front or not. Pure. Errors have STATUS_USAGE and say cause
 * and remedy; the caller puts the entry's text and place in front.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/hosts/hosts.h"
#include "model/hosts/key.h"
#include "model/settings/show.h"

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

/* Where entries go to; starts as {.list, .budget, .unit}. */
struct host_adding {
    struct host_list *list;
    size_t budget;    /* as in hostlist_expand() */
    const char *unit; /* what the text is made of: "line" or "entry" */
    uint32_t number;  /* of the unit, from 1 */
    uint32_t *said;   /* by host and key: the number of the unit that said it */
    size_t said_room; /* hosts */
};

/* Adds every host that the entry stands for. -1 also when a host is there already and something
 * else was said about it. */
int host_entry_add(const struct host_entry *entry, struct host_adding *adding, struct error *err);
void host_adding_end(struct host_adding *adding);

/* Is this fit to be a host's name, and is there room for one more? */
int host_entry_check_name(const struct host_list *list, const char *name, struct error *err);

/* `text` as given to -H: "a:4,b:4", "[fe80::1]:2", "ann@node[01-16]:4". Blanks around an entry are
 * fine, an empty entry is an error. Appends to `out`. */
int hosts_parse(const char *text, struct host_list *out, struct error *err);
