/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/gloo/meeting.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define GATE_MS (660 * 1000) /* hvdrun opens its gate after 600 s at the latest */

enum hvd_status meeting_begin(const struct meeting *meeting, struct error *err)
{
    struct store store = meeting->store;
    char key[32];
    const char *host = meeting->host != NULL ? meeting->host : "";
    if (store.timeout_ms < GATE_MS)
        store.timeout_ms = GATE_MS;
    snprintf(key, sizeof(key), "rank_%d", meeting->place->rank);
    return store_put(&store, "global", key, host, strlen(host), err);
}

static enum hvd_status done_in(const struct meeting *meeting, const char *scope, int number,
                               struct error *err)
{
    char key[32];
    snprintf(key, sizeof(key), "%d", number);
    enum hvd_status status = store_put(&meeting->store, scope, key, "", 0, err);
    return status == HVD_OK ? store_delete(&meeting->store, scope, key, err) : status;
}

enum hvd_status meeting_done(const struct meeting *meeting, struct error *err)
{
    const struct engine_place *place = meeting->place;
    if (meeting->host == NULL)
        return HVD_OK;
    char *local AUTO_FREE = mem_printf("local_%s", meeting->host);
    char *cross AUTO_FREE = mem_printf("cross_%d", place->local_rank);
    enum hvd_status status = done_in(meeting, "global", place->rank, err);
    if (status == HVD_OK)
        status = done_in(meeting, local, place->local_rank, err);
    return status == HVD_OK ? done_in(meeting, cross, place->cross_rank, err) : status;
}
