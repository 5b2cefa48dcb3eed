/* SPDX-License-Identifier: Apache-2.0 */
/* What hvdrun-topology.so exports: one function. Module and launcher are built together. */
#pragma once

#include "base/error.h"
#include "model/binding/topology.h"

#define TOPOLOGY_MODULE_SYMBOL "hvdrun_topology_read_2"

/* Fills `out`, which the caller destroys. */
typedef int topology_module_read(struct topology *out, struct error *err);
