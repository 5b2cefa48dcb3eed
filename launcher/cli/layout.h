/* SPDX-License-Identifier: Apache-2.0 */
/* Options that map ranks to hosts: --map-by, --rankfile. */
#pragma once

#include "base/error.h"
#include "model/plan/mapping.h"
#include "model/settings/settings.h"

/* Fills an all-zero struct, which the caller destroys in any case. On an error the status is
 * STATUS_USAGE: the option or the file is wrong, or there are two of these options. */
int layout_read(const struct settings *settings, struct mapping *out, struct error *err);

/* For a job without a host list. Adds the hosts of the rankfile to `hosts`, or this machine for
 * ppr. False: the mapping has no hosts. */
bool layout_hosts(const struct mapping *mapping, struct host_list *hosts);

/* -1: the mapping is not by slot. An elastic job always fills the hosts slot by slot. */
int layout_check_elastic(const struct settings *settings, struct error *err);
