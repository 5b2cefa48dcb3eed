/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/state_report.h"

#include "base/mem.h"
#include "base/status.h"
#include "driver/end/teardown.h"
#include "driver/run/exits.h"

#define WAIT_MS 2000
#define TEXT_MAX ((size_t)1 << 20)

static void finish(void *context)
{
    struct job *job = context;
    if (job->states_wanted < 0)
        return;
    job->states_wanted = -1;
    loop_timer_clear(job->state_limit);
    char *text AUTO_FREE = mem_printf("the job ran longer than --timeout %.1f s",
                                      (double)job->settings->timeout / 1000);
    teardown_launcher(job, STATUS_TIMEOUT, text);
}

void state_report_begin(struct job *job)
{
    if (job->state != JOB_RUNNING)
        return;
    job->states_wanted = 0;
    if (job->settings->stack_traces) {
        for (int i = 0; i < job->node_count; i++) {
            if (!node_link_alive(job->nodes[i]))
                continue;
            node_link_send(job->nodes[i], FRAME_STATE_REQUEST, job->epoch, NULL);
            job->states_wanted++;
        }
    }
    job->state_limit = loop_timer_create(job->loop, finish, job);
    loop_timer_set(job->state_limit, job->states_wanted > 0 ? WAIT_MS : 0);
}

int state_report_got(struct job *job, struct node_link *node, const uint8_t *body, size_t length)
{
    if (job->states_wanted <= 0)
        return 0; /* too late, or nobody has asked */
    Hvdrun__StateReport *message = hvdrun__state_report__unpack(NULL, length, body);
    if (message == NULL || message->n_ranks != message->n_texts) {
        if (message != NULL)
            hvdrun__state_report__free_unpacked(message, NULL);
        return -1;
    }
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);
    for (size_t i = 0; i < message->n_ranks; i++) {
        if (exits_seat_of(job, node, message->ranks[i]))
            buf_printf(&text, "hvdrun: rank %d on %s: %s\n",
                       job_seat_rank(job, (int)message->ranks[i]), node->host, message->texts[i]);
    }
    output_block(job->output, buf_text(&text));
    hvdrun__state_report__free_unpacked(message, NULL);
    if (--job->states_wanted == 0)
        finish(job);
    return 0;
}
