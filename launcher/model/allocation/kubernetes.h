/* SPDX-License-Identifier: Apache-2.0 */
/* The hostfile that mpi-operator of Kubernetes writes. Pure. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "model/allocation/source.h"
#include "model/allocation/types.h"

/* Are the variables of this scheduler set? `*file` becomes the file that they name, borrowed from
 * `env`; it is not changed when they name none. */
bool allocation_kubernetes_has(char *const *env, const char **file);
/* Fills hosts, np and what else the scheduler says; the caller checks that there are hosts. */
int allocation_kubernetes_parse(const struct allocation_source *source, struct allocation *out,
                                struct error *err);
