/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of this machine to which an agent on another host may connect, best first. */
#pragma once

#include "base/strv.h"

#define OWN_ADDRESSES_MAX 24

/* Appends numeric addresses of interfaces that are up: ordinary ones before those of bridges and
 * tunnels, IPv4 before IPv6, loopback last (several nodes may be one machine). */
void own_addresses_list(struct strv *out);
