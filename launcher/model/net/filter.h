/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of --network-interfaces: which of a node's interfaces its workers may use. Pure.
 *
 * A word is a name (`eth0`), a pattern (`ib*`), a subnet (`10.0.0.0/8`) or an address. A word with
 * `!` in front excludes. Without a word that includes, workers may use all that is not excluded.
 * Lists of words are NULL-ended; NULL is an empty one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "model/net/address.h"

/* -1 with STATUS_USAGE for a word without a meaning. */
int network_filter_check(char *const *words, struct error *err);

/* Is there a word that includes? */
bool network_filter_includes(char *const *words);

/* Writes those of `all` that pass to `out` (room for `count`), in the order of the words that
 * include them, and returns how many. Loopback passes only if its exact name or address is a word.
 * An address whose exact name is a word counts as ordinary. An unusable one never passes. */
size_t network_filter_apply(char *const *words, const struct network_address *all, size_t count,
                            struct network_address *out);
