/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to a status (driver/control/request.h) as a table for people. Whatever is missing in
 * it is left out; its texts come out without control characters.
 */
#pragma once

#include <jansson.h>

#include "base/buf.h"

void control_status_text(const json_t *status, struct buf *out);
