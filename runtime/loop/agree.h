/* SPDX-License-Identifier: Apache-2.0 */
/* What all ranks of the job must agree on when the library starts. */
#pragma once

#include "core/settings.h"
#include "engine/engine.h"

/* Collective over `comm`. HVD_ERR_MISMATCH on every rank, with the same text: they differ. */
enum hvd_status agree(const struct engine *engine, struct engine_comm *comm, int rank, int size,
                      const struct settings *settings, int64_t timeout_ms, struct error *err);

/* Whether it is true on all members. */
enum hvd_status agree_on_success(const struct engine *engine, struct engine_comm *comm,
                                 bool success, int64_t timeout_ms, bool *all, struct error *err);
