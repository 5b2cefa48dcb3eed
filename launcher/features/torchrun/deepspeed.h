/* SPDX-License-Identifier: Apache-2.0 */
/* What only DeepSpeed and Accelerate have: devices of hosts, and variables. Pure. */
#pragma once

#include "features/torchrun/translation.h"

/* --include HOST:0,1@HOST:0,1, if all hosts have the same devices, or none of them is named; or
 * else the hostfile. */
void deepspeed_hosts(struct translation *t);

/* The variables that Accelerate's launcher always sets. */
void accelerate_variables(struct translation *t);
