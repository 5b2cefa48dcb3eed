/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/time_limit.h"

#include <limits.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "driver/end/teardown.h"
#include "driver/run/exits.h"
#include "driver/run/rank_states.h"
#include "stacks/tree.h"

#define WAIT_MS 2000
#define TEXT_MAX ((size_t)1 << 20)

struct time_limit {
    struct job *job;
    struct loop_timer *timer; /* until the limit */
    struct loop_timer *wait;  /* for the answers after it */
    int64_t begun_ms;         /* as job_running_ms() counts */
    int wanted;               /* nodes whose answer is awaited */
    struct rank_states *states;
    bool passed;
};

static void end_job(void *context)
{
    struct time_limit *limit = context;
    struct job *job = limit->job;
    limit->wanted = 0;
    loop_timer_clear(limit->wait);
    AUTO_BUF struct buf states = BUF_INIT(TEXT_MAX);
    rank_states_text(limit->states, &states);
    stack_tree_text(job->stacks, &states);
    if (states.length > 0)
        output_block(job->output, buf_text(&states));
    char *text AUTO_FREE = mem_printf("the job ran longer than --timeout %.1f s",
                                      (double)job->settings->timeout / 1000);
    teardown_launcher(job, STATUS_TIMEOUT, text);
}

static void passed(void *context)
{
    struct time_limit *limit = context;
    struct job *job = limit->job;
    job_advance_now(job);
    if (job->state != JOB_RUNNING || limit->passed)
        return;
    limit->passed = true;
    for (int i = 0; job->settings->stack_traces && i < job->node_count; i++) {
        if (!node_link_alive(job->nodes[i]))
            continue;
        node_link_send(job->nodes[i], FRAME_STATE_REQUEST, job->epoch, NULL);
        limit->wanted++;
    }
    loop_timer_set(limit->wait, limit->wanted > 0 ? WAIT_MS : 0);
}

struct time_limit *time_limit_create(struct job *job)
{
    struct time_limit *limit = mem_alloc(sizeof(*limit));
    *limit = (struct time_limit){.job = job, .states = rank_states_create()};
    job->stacks = stack_tree_create();
    limit->timer = loop_timer_create(job->loop, passed, limit);
    limit->wait = loop_timer_create(job->loop, end_job, limit);
    return limit;
}

void time_limit_destroy(struct time_limit *limit)
{
    if (limit == NULL)
        return;
    loop_timer_destroy(limit->timer);
    loop_timer_destroy(limit->wait);
    rank_states_destroy(limit->states);
    stack_tree_destroy(limit->job->stacks);
    limit->job->stacks = NULL;
    free(limit);
}

void time_limit_begin(struct time_limit *limit)
{
    const struct job *job = limit->job;
    limit->begun_ms = job_running_ms(job);
    if (job->settings->timeout > 0)
        loop_timer_set(limit->timer, job->settings->timeout);
}

void time_limit_stop(struct time_limit *limit)
{
    loop_timer_clear(limit->timer);
}

void time_limit_pause(struct time_limit *limit, bool paused)
{
    const struct job *job = limit->job;
    bool runs = job->state == JOB_RUNNING && job->settings->timeout > 0;
    if (paused)
        loop_timer_clear(limit->timer);
    else if (runs)
        loop_timer_set(limit->timer,
                       job->settings->timeout - (job_running_ms(job) - limit->begun_ms));
}

static void take_stack(struct job *job, const Hvdrun__PythonStack *source)
{
    struct stack stack = {.rank = job_seat_rank(job, (int)source->seat),
                          .role = source->role < STACK_ROLES ? (enum stack_role)source->role
                                                             : STACK_OTHER,
                          .holds_gil = source->holds_gil,
                          .doing = source->doing,
                          .trouble = source->trouble};
    struct stack_frame *frames AUTO_FREE = mem_array(source->n_frames + 1, sizeof(*frames));
    for (size_t i = 0; i < source->n_frames; i++) {
        const Hvdrun__PythonFrame *frame = source->frames[i];
        frames[i] = (struct stack_frame){.function = frame->function,
                                         .file = frame->file,
                                         .line = frame->line <= INT_MAX ? (int)frame->line : 0};
    }
    stack.frames = frames;
    stack.count = source->n_frames;
    stack_tree_add(job->stacks, &stack);
}

int time_limit_state(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct time_limit *limit = job->time_limit;
    if (limit->wanted <= 0)
        return 0; /* too late, or not asked for */
    Hvdrun__StateReport *message = hvdrun__state_report__unpack(NULL, frame->length, frame->body);
    if (message == NULL || message->n_seats != message->n_texts) {
        if (message != NULL)
            hvdrun__state_report__free_unpacked(message, NULL);
        return -1;
    }
    for (size_t i = 0; i < message->n_seats; i++) {
        if (exits_seat_of(job, node, message->seats[i]))
            rank_states_add(limit->states, job_seat_rank(job, (int)message->seats[i]), node->host,
                            message->texts[i]);
    }
    for (size_t i = 0; i < message->n_stacks; i++) {
        if (exits_seat_of(job, node, message->stacks[i]->seat))
            take_stack(job, message->stacks[i]);
    }
    hvdrun__state_report__free_unpacked(message, NULL);
    if (--limit->wanted == 0)
        end_job(limit);
    return 0;
}
