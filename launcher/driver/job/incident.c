/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/job/incident.h"

#include "base/mem.h"
#include "driver/job/part.h"
#include "model/exit/record.h"
#include "model/exit/signal_name.h"

bool incident_raise(struct job *job, const struct incident *incident, void (*done)(void *context),
                    void *context)
{
    int at = 0;
    const struct driver_part *part = parts_next(job, &at);
    while (part != NULL &&
           (part->incident == NULL || !part->incident(job, incident, done, context)))
        part = parts_next(job, &at);
    return part != NULL;
}

char *incident_exit_text(const struct job *job, const struct exit_event *event)
{
    const struct rank_record *record = &job->ranks.records[event->seat];
    const char *host = job_seat_host(job, event->seat);
    if (record->exec_failed)
        return mem_printf("rank %d on %s could not start: %s", record->rank, host,
                          record->text == NULL ? "" : record->text);
    const char *name = event->signaled ? signal_short_name(event->code) : NULL;
    if (name != NULL)
        return mem_printf("rank %d on %s was killed by SIG%s", record->rank, host, name);
    if (event->signaled)
        return mem_printf("rank %d on %s was killed by signal %d", record->rank, host, event->code);
    return mem_printf("rank %d on %s exited with code %d", record->rank, host, event->code);
}
