/* SPDX-License-Identifier: Apache-2.0 */
/* Which variables most likely hold secrets. Pure. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

/* By its name: TOKEN, PASSWORD, PASSWD, SECRET, KEY, CREDENTIAL, AUTH or COOKIE in any case. */
bool secret_is_name(const char *name, size_t length);

/* Appends "NAME=VALUE" of an environment, or "NAME=(hidden, 40 bytes)". */
void secret_mask(const char *pair, struct buf *out);
