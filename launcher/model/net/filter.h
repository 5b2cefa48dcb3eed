/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of --network-interfaces: which of a node's interfaces its workers may use. Pure.
 *
 * A word is a name (`eth0`), a pattern (`ib*`), a subnet (`10.0.0.0/8`) or an address; with a `!`
 * in front it excludes. Without a word that includes, all that is not excluded may be used. Lists
 * of words are NULL-ended; NULL is an empty one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "model/net/address.h"

/* -1 with STATUS_USAGE for a word that can mean nothing. */
int network_filter_check(char *const *words, struct error *err);

/* Is there a word that includes? */
bool network_filter_includes(char *const *words);

/* Writes those of `all` that pass to `out` (room for `count`) and returns how many, in the order of
 * the words that include them. Loopback passes only when its very name or address is a word. What
 * is meant by its very name counts as ordinary, whatever it is. What is unusable never passes. */
size_t network_filter_apply(char *const *words, const struct network_address *all, size_t count,
                            struct network_address *out);
