/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts for which a job waits that does not come up. */
#include "driver/reach/reach.h"

#define MISSING_IN_ONE_LINE 4
#define RANKS_TEXT_MAX 256

/* The job does not wait for a node without a place. */
static bool is_missing(const struct job *job, const struct node_link *node)
{
    if (node->place < 0)
        return false;
    return node->state <= NODE_STARTING || node->state == NODE_UNREACHED ||
           (node->state == NODE_UP && job->state == JOB_PREPARING);
}

static const char *stage_reached(const struct node_link *node)
{
    return node->state == NODE_UP ? "preparing" : transport_stage_name(node->stage);
}

static void say_missing(const struct job *job, const struct node_link *node)
{
    AUTO_BUF struct buf ranks = BUF_INIT(RANKS_TEXT_MAX);
    const char *why = reach_why(job_part(job, reach), node);
    plan_node_describe(&job->plan->nodes[node->place], &ranks);
    log_error(&job->log, "%s: %s: %s (%s)", node->host, stage_reached(node),
              why != NULL ? why : "no answer in time", buf_text(&ranks));
}

void reach_describe_missing(const struct job *job, struct buf *out)
{
    int missing = 0;
    bool one_line = true;
    for (int i = 0; i < job->node_count; i++) {
        missing += is_missing(job, job->nodes[i]);
        one_line = one_line && reach_why(job_part(job, reach), job->nodes[i]) == NULL;
    }
    one_line = one_line && missing <= MISSING_IN_ONE_LINE;
    if (!one_line)
        buf_printf(out, " the %d of %d hosts named above", missing, job->node_count);
    const char *comma = "";
    for (int i = 0; i < job->node_count; i++) {
        const struct node_link *node = job->nodes[i];
        if (!is_missing(job, node))
            continue;
        if (!one_line) {
            say_missing(job, node);
            continue;
        }
        buf_printf(out, "%s %s (%s; ", comma, node->host, stage_reached(node));
        plan_node_describe(&job->plan->nodes[node->place], out);
        buf_printf(out, ")");
        comma = ",";
    }
}
