/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostfiles with sections: [defaults], [group NAME] with `hosts = a, b[1-4]`, and [host NAME],
 * whose name may hold ranges. Pure.
 *
 * A host section overrides a group, and a group overrides the defaults; env is merged by variables
 * in the same way. Two different values on the same level are an error that names both places.
 * Slots do not add up here. Hosts are in the order in which they are first named.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "model/hosts/hosts.h"

/* A hostfile before it is parsed: what the parsers of all dialects are given. */
struct hostfile {
    const char *bytes;
    size_t length;
    const char *name;  /* for messages */
    const char *group; /* only the hosts of this one; NULL: all of them */
};

/* As hostfile_parse(), without a byte order mark. */
int hostfile_ini_parse(const struct hostfile *file, struct host_list *out, struct error *err);
