/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ssh transport: one connection per host through libssh2, many at once under a window, all in
 * one loop. libssh2 is in a module of its own, hvdrun-ssh.so, which the first call opens. The `ssh`
 * program does what libssh2 cannot do right, for that host, and a note says so. docs/transports.md
 * has the rules.
 */
#pragma once

#include "transport/ssh/shared.h"
#include "transport/transport.h"

struct ssh_transport;

/* The settings are borrowed. Costs nothing before the first call. */
struct ssh_transport *ssh_transport_create(const struct ssh_settings *settings);
void ssh_transport_destroy(struct ssh_transport *ssh); /* after the last hang_up; accepts NULL */
struct transport ssh_transport(struct ssh_transport *ssh);
