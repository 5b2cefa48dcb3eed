/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of a host (model/explain/facts.h) from facts.json. */
#pragma once

#include <jansson.h>

#include "model/explain/facts.h"

/* `list`: JSON of driver/tell/evidence_json.h, or anything else. `out` has a place for each
 * element, and borrows from it. */
void explain_json_gpus(const json_t *list, struct explain_gpu *out);
