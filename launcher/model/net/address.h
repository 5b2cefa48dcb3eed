/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One address of a node's interface: its subnet, how fit it is for traffic between hosts, and
 * whether the user allows it. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* How fit, best first. */
enum network_class {
    NETWORK_ORDINARY,
    NETWORK_VIRTUAL, /* bridges of containers and guests, tunnels: known by the interface's name */
    NETWORK_LINK_LOCAL, /* 169.254.0.0/16 */
    NETWORK_DOUBLE,     /* other hosts have it too; network_choose() finds these */
    NETWORK_LOOPBACK,
    NETWORK_UNUSABLE, /* fe80::/10 means nothing without the name of the interface */
};

struct network_address {
    char iface[32];
    char text[46]; /* as inet_ntop writes it */
    uint8_t bytes[16];
    bool ipv6;
    int prefix; /* bits of the subnet */
    enum network_class fitness;
};

/* A numeric address without an interface, with or without a scope, and brackets if it is IPv6. An
 * IPv4-mapped IPv6 address counts as IPv4. Its subnet is the address only. false: it is none. */
bool network_address_parse(const char *text, struct network_address *out);

/* "eth0 10.0.0.1/24", as HELLO carries it; without the length the subnet is the address only. */
bool network_address_parse_line(const char *line, struct network_address *out);

/* Of this interface; prefix -1: not known. false: the address is not numeric. */
bool network_address_set(struct network_address *out, const char *iface, const char *text,
                         int prefix);

bool network_address_equal(const struct network_address *a, const struct network_address *b);
bool network_address_same_subnet(const struct network_address *a, const struct network_address *b);

/* Is `address` among those that share the first `prefix` bits of `network`? */
bool network_address_within(const struct network_address *address,
                            const struct network_address *network, int prefix);

/* The subnet as "10.0.0.0/24". The caller owns it. */
char *network_address_subnet(const struct network_address *address);

/*
 * The words of --network-interfaces: which of a node's interfaces its workers may use.
 *
 * A word is a name (`eth0`), a pattern (`ib*`), a subnet (`10.0.0.0/8`) or an address. A word with
 * `!` in front excludes. Without a word that includes, workers may use all that is not excluded.
 * Lists of words are NULL-ended; NULL is an empty one.
 */

/* -1 with STATUS_USAGE for a word without a meaning. */
int network_filter_check(char *const *words, struct error *err);

/* Is there a word that includes? */
bool network_filter_includes(char *const *words);

/* Writes those of `all` that pass to `out` (room for `count`), in the order of the words that
 * include them, and returns how many. Loopback passes only if its exact name or address is a word.
 * An address whose exact name is a word counts as ordinary. An unusable one never passes. */
size_t network_filter_apply(char *const *words, const struct network_address *all, size_t count,
                            struct network_address *out);
