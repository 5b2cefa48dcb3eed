/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the launcher says about changed hosts, over a line of its own (line/line.h). It has no
 * thread: what has come waits in the socket until somebody asks.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct elastic_notices;

/* NULL: there is no line; the program is not notified then. */
struct elastic_notices *elastic_notices_open(const char *address, struct error *err);
void elastic_notices_close(struct elastic_notices *notices); /* accepts NULL */

/* Whether something has come since the last call. NULL: false. */
bool elastic_notices_take(struct elastic_notices *notices);
