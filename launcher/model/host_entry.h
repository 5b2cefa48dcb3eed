/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One entry of a host list, as `-H` and hostfiles share it: NAME, NAME:SLOTS, [ADDRESS]:SLOTS,
 * NAME[01-16]:SLOTS, each with USER@ in front or not. Pure. Errors have STATUS_USAGE and say cause
 * and remedy; the caller puts the entry's text and place in front.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "model/hosts.h"

/* An entry cut into its parts; all text is borrowed, and not yet checked. */
struct host_entry {
    const char *name; /* without brackets around an IPv6 address; ranges not expanded yet */
    size_t name_length;
    bool ipv6;
    const char *user; /* NULL: not said */
    size_t user_length;
    int slots; /* 1 when not given */
    bool slots_given;
    /* what only hostfiles say */
    int max_slots, port; /* 0: not said */
    const char *address; /* without brackets; NULL: not said */
    size_t address_length;
};

/* `text` holds at least one byte, without blanks around it. */
int host_entry_split(const char *text, size_t length, struct host_entry *out, struct error *err);

/* A slot count: 1 to HOSTS_SLOTS_MAX. */
int host_entry_slots(const char *text, size_t length, int *out, struct error *err);

/* A port number: 1 to 65535. */
int host_entry_port(const char *text, size_t length, int *out, struct error *err);

/* The name or numeric address to connect to, an IPv6 one in brackets or not. */
int host_entry_address(struct host_entry *entry, const char *text, size_t length,
                       struct error *err);

/* Adds every host that the entry stands for; `budget` as in hostlist_expand(). -1 also when a host
 * is there already with another user, port or address. */
int host_entry_add(const struct host_entry *entry, size_t *budget, struct host_list *list,
                   struct error *err);

/* Text from outside as an error may repeat it: one line, printable, short. */
struct host_shown {
    char text[64];
};
struct host_shown host_entry_show(const char *text, size_t length);
