/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/hung.h"

#include <stdio.h>

#include "base/status.h"
#include "model/elastic/calls.h"
#include "model/elastic/change.h"

static struct elastic_failure failure_of(const struct elastic *e, int seat)
{
    const struct elastic_worker *worker = elastic_workers_at(&e->workers, seat);
    struct elastic_failure failure = {.kind = ELASTIC_FAILURE_HUNG,
                                      .host = -1,
                                      .slot = -1,
                                      .seat = -1,
                                      .rank = -1,
                                      .code = STATUS_HANG,
                                      .since_ms = e->now_ms};
    if (worker == NULL || !elastic_worker_stays(worker)) {
        snprintf(failure.text, sizeof(failure.text), "the job hangs");
        return failure;
    }
    failure.host = worker->host;
    failure.slot = worker->slot;
    failure.seat = seat;
    failure.rank = worker->rank;
    snprintf(failure.text, sizeof(failure.text), "rank %d on %.200s hangs", worker->rank,
             elastic_hosts_name(&e->hosts, worker->host));
    return failure;
}

void elastic_hung(struct elastic *e, int seat)
{
    struct elastic_failure failure = failure_of(e, seat);
    bool alone = failure.seat >= 0 && elastic_change_rejoins(e);
    if (failure.seat >= 0 && e->hosts.items[failure.host].state == ELASTIC_HOST_UP)
        elastic_calls_count_hang(e, failure.host);
    if (alone)
        elastic_change_kill(e, failure.seat);
    elastic_change_fail(e, &failure);
}
