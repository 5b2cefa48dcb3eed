/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the ranks of a job meet in the launcher's store, by the scopes and keys that Horovod's
 * workers use. From them, hvdrun learns which rank has come, which rank waits for which, and when
 * all are connected. Other launchers only store them.
 */
#pragma once

#include "engine/store.h"

/* This rank, as the store knows it. */
struct meeting {
    struct store store;
    const struct engine_place *place;
    const char *host; /* as the launcher names it; NULL: unknown */
};

/* The first request of a rendezvous. hvdrun answers it when all ranks have sent it, however long
 * their imports last. It also holds the newcomers of an elastic job until they can join. */
enum hvd_status meeting_begin(const struct meeting *meeting, struct error *err);

/* This rank is connected to all others. */
enum hvd_status meeting_done(const struct meeting *meeting, struct error *err);
