/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host patterns of known_hosts lines: names between commas, `*` for any bytes, `?` for one, a
 * leading `!` for "not these". Upper and lower case are the same. The time is linear in name x
 * pattern, whatever the pattern.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* True when one of the patterns matches and none of the negated ones does. */
bool pattern_list_matches(const char *list, size_t length, const char *name);
