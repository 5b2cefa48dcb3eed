/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/job/part.h"

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

#define EACH_PART(job, part)                                      \
    int next_part = 0;                                            \
    const struct driver_part *part = parts_next(job, &next_part); \
    for (; part != NULL; part = parts_next(job, &next_part))

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

int parts_open(struct job *job, struct error *err)
{
    parts_note_frames(job);
    EACH_PART (job, part) {
        if (part->open != NULL && part->open(job, err) < 0)
            return -1;
    }
    return 0;
}

void parts_close(struct job *job)
{
    for (int i = PART_COUNT - 1; i >= 0; i--) {
        if (job->own[i] != NULL && job->parts[i]->close != NULL)
            job->parts[i]->close(job);
        job->own[i] = NULL;
    }
}

/* Calls a function of all parts that have it. */
#define TELL_ALL(job, function, ...)     \
    EACH_PART (job, part) {              \
        if (part->function != NULL)      \
            part->function(__VA_ARGS__); \
    }

void parts_prepare(const struct job *job, Hvdrun__Prepare *message)
{
    TELL_ALL(job, prepare, job, message)
}

void parts_ready(struct job *job, const struct node_link *node, const Hvdrun__Ready *message)
{
    TELL_ALL(job, ready, job, node, message)
}

void parts_start(const struct job *job, Hvdrun__Start *message)
{
    TELL_ALL(job, start, job, message)
}

void parts_forget(struct job *job)
{
    TELL_ALL(job, forget, job)
}

void parts_report(const struct job *job, struct json_t *root)
{
    TELL_ALL(job, report, job, root)
}

void parts_output(struct job *job, int seat, bool is_stderr, const void *bytes, size_t length)
{
    for (uint64_t left = job->output_parts; left != 0; left &= left - 1)
        job->parts[__builtin_ctzll(left)]->output(job, seat, is_stderr, bytes, length);
}

bool parts_waits(struct job *job, struct stall *stall, uint32_t round)
{
    EACH_PART (job, part) {
        if (part->waits != NULL && part->waits(job, stall, round))
            return true;
    }
    return false;
}

void parts_node_event(struct job *job, struct node_link *node, const char *event, const char *text)
{
    TELL_ALL(job, node_event, job, node, event, text)
}

void parts_node_lost(struct job *job, struct node_link *node)
{
    TELL_ALL(job, node_lost, job, node)
}

void parts_node_closed(struct job *job, struct node_link *node)
{
    TELL_ALL(job, node_closed, job, node)
}

void parts_ranks_changed(struct job *job)
{
    TELL_ALL(job, ranks_changed, job)
}

void parts_steps_begin(struct job *job)
{
    TELL_ALL(job, steps_begin, job)
}

void parts_host_bad(struct job *job, const struct node_link *node, enum host_bad kind,
                    const char *why)
{
    TELL_ALL(job, host_bad, job, node, kind, why)
}

bool parts_leave_out(struct job *job, const char *host)
{
    EACH_PART (job, part) {
        if (part->leaves_out != NULL && part->leaves_out(job, host))
            return true;
    }
    return false;
}

bool parts_delay(struct job *job, struct node_link *node)
{
    EACH_PART (job, part) {
        if (part->delays != NULL && part->delays(job, node))
            return true;
    }
    return false;
}

bool parts_hold(struct job *job, uint32_t epoch)
{
    EACH_PART (job, part) {
        if (part->holds != NULL && part->holds(job, epoch))
            return true;
    }
    return false;
}

void parts_user_ends(struct job *job, int signal)
{
    TELL_ALL(job, user_ends, job, signal)
}

void parts_ending(struct job *job)
{
    TELL_ALL(job, ending, job)
}

bool parts_busy(struct job *job)
{
    EACH_PART (job, part) {
        if (part->busy != NULL && part->busy(job))
            return true;
    }
    return false;
}

void parts_over(struct job *job)
{
    TELL_ALL(job, over, job)
}

void parts_tell(struct job *job)
{
    TELL_ALL(job, tell, job)
}

void parts_told(struct job *job)
{
    TELL_ALL(job, told, job)
}

void parts_status(const struct job *job, struct json_t *root)
{
    TELL_ALL(job, status, job, root)
}

void parts_record(const struct job *job, struct json_t *end)
{
    TELL_ALL(job, record, job, end)
}

bool incident_raise(struct job *job, const struct incident *incident, void (*done)(void *context),
                    void *context)
{
    EACH_PART (job, part) {
        if (part->incident != NULL && part->incident(job, incident, done, context))
            return true;
    }
    return false;
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
