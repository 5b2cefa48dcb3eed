/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the answer to a status request (driver/control/request.h) as a table for people. It skips
 * what the answer does not have, and removes control characters from texts.
 */
#pragma once

#include <jansson.h>

#include "base/buf.h"

void control_status_text(const json_t *status, struct buf *out);
