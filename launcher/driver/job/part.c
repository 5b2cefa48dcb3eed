/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/job/part.h"

#include <stdlib.h>

#include "base/mem.h"
#include "model/exit/record.h"
#include "model/exit/signal_name.h"

_Static_assert(PART_COUNT <= 64, "output_parts has a bit for each part");

const struct driver_part *parts_next(const struct job *job, int *at)
{
    while (job->parts != NULL && *at < PART_COUNT) {
        const struct driver_part *part = job->parts[(*at)++];
        if (part != NULL)
            return part;
    }
    return NULL;
}

void parts_note_frames(struct job *job)
{
    EACH_PART (job, part) {
        const struct part_frame *frame = part->frames;
        for (; frame != NULL && frame->type != 0; frame++)
            job->frames[frame->type] = &frame->rule;
        if (part->output != NULL)
            job->output_parts |= (uint64_t)1 << (next_part - 1);
    }
}

int part_open(struct job *job, enum part_id id, const struct driver_part *part, struct error *err)
{
    if (part->size > 0)
        job->own[id] = mem_alloc(part->size);
    return part->open == NULL ? 0 : part->open(job, err);
}

int parts_open(struct job *job, struct error *err)
{
    parts_note_frames(job);
    EACH_PART (job, part) {
        if (part_open(job, (enum part_id)(next_part - 1), part, err) < 0)
            return -1;
    }
    return 0;
}

void part_close(struct job *job, enum part_id id, const struct driver_part *part)
{
    if (job->own[id] != NULL && part->close != NULL)
        part->close(job);
    if (part->size > 0)
        free(job->own[id]);
    job->own[id] = NULL;
}

void parts_close(struct job *job)
{
    for (int i = PART_COUNT - 1; i >= 0; i--) {
        if (job->own[i] != NULL)
            part_close(job, (enum part_id)i, job->parts[i]);
    }
}

void parts_output(struct job *job, int seat, bool is_stderr, const void *bytes, size_t length)
{
    for (uint64_t left = job->output_parts; left != 0; left &= left - 1)
        job->parts[__builtin_ctzll(left)]->output(job, seat, is_stderr, bytes, length);
}

bool incident_raise(struct job *job, const struct incident *incident, void (*done)(void *context),
                    void *context)
{
    PARTS_TELL(job, incident, incident);
    return PARTS_ANY(job, takes_incident, incident, done, context);
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
