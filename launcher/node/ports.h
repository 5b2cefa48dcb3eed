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

/* Holds `wanted` (0: chooses) and returns the descriptor, close-on-exec, to be closed at the end of
 * the job; the number goes to `*port`. -1: it is taken or none is free. */
int port_hold(int wanted, int *port, struct error *err);
