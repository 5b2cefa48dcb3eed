/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostfiles with sections: [defaults], [group NAME] with `hosts = a, b[1-4]`, and [host NAME],
 * whose name may hold ranges. Pure.
 *
 * What a host section says is stronger than what a group says, and that than the defaults; env is
 * put together by variables in the same way. Two different values of the same strength are an error
 * that names both places. Slots do not add up here: a host is what its sections say. Hosts stand in
 * the order in which they are first named.
 */
#pragma once

#include "base/error.h"
#include "model/hosts/hostfile_text.h"
#include "model/hosts/hosts.h"

/* As hostfile_parse(), without a byte order mark. */
int hostfile_ini_parse(const struct hostfile *file, struct host_list *out, struct error *err);
