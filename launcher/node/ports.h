/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A port for the job (MASTER_PORT, JAX's coordinator), chosen and held until the job ends (D10).
 *
 * It lies outside of ip_local_port_range, where the kernel never hands it to a client socket. It is
 * held by a socket that is bound but does not listen: other programs cannot bind it, except one
 * that sets SO_REUSEADDR and listens, as torch's store and gRPC do. The choice starts at a random
 * place and is first bound without SO_REUSEADDR, so two launchers never hold the same port.
 */
#pragma once

#include "base/error.h"

struct port_range {
    int first, last;
};

/* The ports that the kernel hands out to clients; its usual ones if it does not tell. */
struct port_range port_range_read(void);

/* Holds `wanted` (0: chooses one outside of `clients`) and returns the descriptor, close-on-exec,
 * to be closed at the end of the job; the number goes to `*port`. -1: it is taken or none is free.
 */
int port_hold(struct port_range clients, int wanted, int *port, struct error *err);
