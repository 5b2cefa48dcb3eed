/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of an elastic job to requests over its control socket (driver/control/control.h). */
#pragma once

#include "driver/control/control.h"

/* The context is the struct elastic_parts. */
const struct control_ops *elastic_control_ops(void);
