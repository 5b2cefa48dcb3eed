/* SPDX-License-Identifier: Apache-2.0 */
/* What hvdrun-topology.so exports. Module and launcher are built together. */
#pragma once

#include "base/error.h"
#include "model/binding/topology.h"

#define TOPOLOGY_MODULE_SYMBOL "hvdrun_topology"
#define TOPOLOGY_MODULE_VERSION 3

struct topology_module {
    int version;
    /* Fills `out`, which the caller destroys. */
    int (*read)(struct topology *out, struct error *err);
};
