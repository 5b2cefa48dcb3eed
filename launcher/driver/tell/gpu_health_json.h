/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of a host after a failure, as JSON. What is not known has no key. */
#pragma once

#include "wire/control.pb-c.h"

struct json_t;

/* An array. The caller owns it. */
struct json_t *gpu_health_json(const Hvdrun__GpuHealths *message);
