/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks are laid out over the hosts: --map-by, --rankfile. */
#pragma once

#include "base/error.h"
#include "model/plan/mapping.h"
#include "model/settings/settings.h"

/* Fills an all-zero struct, which the caller destroys in either case. -1 and STATUS_USAGE: what is
 * wrong with the option or the file, or two of them were given. */
int layout_read(const struct settings *settings, struct mapping *out, struct error *err);

/* Without a host list, a rankfile has the hosts itself, and ppr this machine: added to `hosts`.
 * false: it has none. */
bool layout_hosts(const struct mapping *mapping, struct host_list *hosts);

/* The workers of an elastic job come and go by slots: nothing else can be asked for. */
int layout_check_elastic(const struct settings *settings, struct error *err);
