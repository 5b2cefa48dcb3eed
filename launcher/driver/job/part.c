/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/job/part.h"

_Static_assert(PART_COUNT <= 64, "output_parts has a bit for each part");

void parts_note_frames(struct job *job)
{
    for (int i = 0; i < PART_COUNT; i++) {
        const struct part_frame *frame = job->parts[i] == NULL ? NULL : job->parts[i]->frames;
        for (; frame != NULL && frame->type != 0; frame++)
            job->frames[frame->type] = &frame->rule;
        if (job->parts[i] != NULL && job->parts[i]->output != NULL)
            job->output_parts |= (uint64_t)1 << i;
    }
}

int parts_open(struct job *job, struct error *err)
{
    parts_note_frames(job);
    for (int i = 0; i < PART_COUNT; i++) {
        const struct driver_part *part = job->parts[i];
        if (part != NULL && part->open != NULL && part->open(job, err) < 0)
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

/* Calls a function of all parts that have it. A part is NULL if its feature was left out. */
#define TELL_ALL(job, function, ...)                               \
    for (int i = 0; (job)->parts != NULL && i < PART_COUNT; i++) { \
        const struct driver_part *part = (job)->parts[i];          \
        if (part != NULL && part->function != NULL)                \
            part->function(__VA_ARGS__);                           \
    }

void parts_prepare(const struct job *job, Hvdrun__Prepare *message)
{
    TELL_ALL(job, prepare, job, message)
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
    bool taken = false;
    for (int i = 0; job->parts != NULL && i < PART_COUNT && !taken; i++) {
        const struct driver_part *part = job->parts[i];
        taken = part != NULL && part->waits != NULL && part->waits(job, stall, round);
    }
    return taken;
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

void parts_heard(struct job *job)
{
    TELL_ALL(job, heard, job)
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
    bool busy = false;
    for (int i = 0; job->parts != NULL && i < PART_COUNT && !busy; i++)
        busy = job->parts[i] != NULL && job->parts[i]->busy != NULL && job->parts[i]->busy(job);
    return busy;
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
