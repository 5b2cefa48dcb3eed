/* SPDX-License-Identifier: Apache-2.0 */
/* What each query does to the store, and what it answers. Pure. */
#pragma once

#include "features/torch_store/torch_client.h"

/* Carries out a query that has come whole; `at` is behind its type. -1: the client is to be
 * dropped, and `err` says why. */
int torch_carry_out(struct torch_client *client, const uint8_t *at, struct error *err);
