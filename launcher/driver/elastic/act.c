/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/parts.h"

#include <signal.h>

#include "driver/end/teardown.h"
#include "driver/job/job_nodes.h"
#include "driver/job/part.h"
#include "driver/reach/reach.h"

static void call_host(const struct elastic_parts *parts, int host)
{
    struct job *job = parts->job;
    struct node_link *node = job->nodes[host];
    const struct host *entry = elastic_host_facts(parts->core, host).entry;
    if (node_link_alive(node)) {
        node->call_again = true;
        return;
    }
    if (node->state != NODE_CALLING) {
        node_link_renew(node);
        job_open_node(job, node);
    }
    reach_call(job, node, &entry->traits);
}

void elastic_act_node_gone(const struct elastic_parts *parts, struct node_link *node)
{
    bool again = node->call_again;
    node->call_again = false;
    if (again)
        call_host(parts, node->index);
}

static void let_go(struct job *job, int host)
{
    struct node_link *node = job->nodes[host];
    node->call_again = false;
    if (!node_link_alive(node) || node->hello == NULL) {
        reach_hang_up(job, node);
        node_link_unreached(node);
    } else if (node->state < NODE_CLOSING) {
        node->state = NODE_CLOSING;
        node_link_send(node, FRAME_QUIT, job->epoch, NULL);
    }
}

void elastic_act_kill(struct job *job, int seat, int64_t grace_ms)
{
    Hvdrun__EndWorker message = HVDRUN__END_WORKER__INIT;
    message.seat = (uint32_t)seat;
    message.signal = grace_ms > 0 ? SIGTERM : SIGKILL;
    message.grace_ms = (uint32_t)grace_ms;
    struct rank_record *record = &job->ranks.records[seat];
    record->ended_by_us |= record->state < RANK_EXITED;
    node_link_send(job->nodes[record->node], FRAME_END_WORKER, record->epoch, &message.base);
}

static void end_all(struct job *job, int64_t grace_ms)
{
    Hvdrun__End message = HVDRUN__END__INIT;
    message.signal = SIGTERM;
    message.grace_ms = (uint32_t)grace_ms;
    for (int i = 0; i < job->node_count; i++) {
        struct node_link *node = job->nodes[i];
        if (!node_link_alive(node) || node->state != NODE_RUNNING)
            continue;
        node->state = NODE_ENDING;
        node_link_send(node, FRAME_END, job->epoch, &message.base);
    }
}

static void tell_deadline(struct job *job, const struct elastic_action *action)
{
    Hvdrun__Deadline message = HVDRUN__DEADLINE__INIT;
    int64_t left = action->deadline_ms - job_running_ms(job);
    message.within_ms = (uint64_t)(left > 0 ? left : 0);
    message.why = (char *)(action->text == NULL ? "" : action->text);
    message.none = action->deadline_ms < 0;
    node_link_send(job->nodes[action->host], FRAME_DEADLINE, job->epoch, &message.base);
}

static void answer(const struct elastic_parts *parts, const struct elastic_action *action)
{
    const struct elastic_plan *plan = elastic_plan(parts->core);
    const struct elastic_member *member = NULL;
    for (int i = 0; action->seat >= 0 && i < plan->size && member == NULL; i++)
        member = plan->members[i].seat == action->seat ? &plan->members[i] : NULL;
    elastic_rendezvous_answer(parts->rendezvous, action->request, plan, member);
}

static void end_job(struct job *job, const struct elastic_verdict *verdict)
{
    if (verdict->end == ELASTIC_END_DRIVER)
        return; /* it has begun already */
    if (verdict->end == ELASTIC_END_SUCCESS)
        teardown_leftovers(job);
    else
        teardown_after_failure(job);
}

void elastic_act(const struct elastic_parts *parts, const struct elastic_action *action)
{
    struct job *job = parts->job;
    const struct elastic *core = parts->core;
    struct elastic_epoch *epoch = parts->epoch;
    switch (action->kind) {
    case ELASTIC_CALL: call_host(parts, action->host); break;
    case ELASTIC_LET_GO: let_go(job, action->host); break;
    case ELASTIC_GIVE_UP:
        node_link_give_up(job->nodes[action->host],
                          "its agent did not terminate its workers in time");
        break;
    case ELASTIC_PREPARE: elastic_epoch_prepare(epoch, elastic_plan(core)); break;
    case ELASTIC_CANCEL: elastic_epoch_cancel(epoch, false); break;
    case ELASTIC_START:
        elastic_epoch_start(epoch, elastic_plan(core));
        elastic_rendezvous_admit(parts->rendezvous);
        break;
    case ELASTIC_PREPARE_NEWCOMERS:
        elastic_epoch_prepare_newcomers(epoch, elastic_newcomers(core));
        break;
    case ELASTIC_CANCEL_NEWCOMERS: elastic_epoch_cancel(epoch, true); break;
    case ELASTIC_START_NEWCOMERS:
        elastic_epoch_start_newcomers(epoch, elastic_newcomers(core));
        break;
    case ELASTIC_ANSWER: answer(parts, action); break;
    case ELASTIC_KILL: elastic_act_kill(job, action->seat, action->grace_ms); break;
    case ELASTIC_END_ALL: end_all(job, action->grace_ms); break;
    case ELASTIC_NOTIFY: elastic_rendezvous_notify(parts->rendezvous, action->seat); break;
    case ELASTIC_DEADLINE: tell_deadline(job, action); break;
    case ELASTIC_SAY:
        log_print(&job->log, (enum log_level)action->level, "%s", action->text);
        elastic_story_note(parts->story, action->text);
        break;
    case ELASTIC_HOST_BAD:
        PARTS_TELL(job, host_bad, job->nodes[action->host], HOST_BAD_LOST, action->text);
        break;
    case ELASTIC_RESUMED:
        elastic_story_resumed(parts->story, elastic_facts(core), elastic_plan(core));
        break;
    case ELASTIC_VERDICT: end_job(job, elastic_verdict(core)); break;
    case ELASTIC_OVER:
    case ELASTIC_ACTIONS: break;
    }
}
