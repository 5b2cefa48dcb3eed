/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/start/start.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/status.h"
#include "driver/end/blame.h"
#include "driver/end/teardown.h"
#include "driver/job/job_nodes.h"
#include "driver/job/part.h"
#include "driver/mpi/mpi.h"
#include "driver/reach/reach.h"
#include "driver/run/job_rendezvous.h"
#include "driver/run/run.h"
#include "driver/start/start_test.h"
#include "driver/start/worlds.h"
#include "model/exit/policy.h"
#include "model/exit/symptom.h"
#include "model/hosts/hosts.h"

/*
 * The late plan: a host without a slot count has as many slots as GPUs, which only its agent knows.
 * An agent that is a copy of the driver's line says how many slots that copy wants.
 * Such a job starts with a provisional plan with one slot for each of these hosts, and calls all
 * its hosts. When all agents have sent HELLO, the final plan replaces it. The agents of hosts
 * without a rank quit.
 */

static struct node_link *node_of(const struct job *job, const char *host)
{
    int i = 0;
    while (i < job->node_count && strcmp(job->nodes[i]->host, host) != 0)
        i++;
    return i < job->node_count ? job->nodes[i] : NULL;
}

/* The hosts of the request that were called, with the numbers of slots that their agents report. */
static void count_slots(const struct job *job, struct host_list *out)
{
    const struct host_list *hosts = job->request->late->hosts;
    for (size_t i = 0; i < hosts->count; i++) {
        const struct host *from = &hosts->items[i];
        const struct node_link *node = node_of(job, from->name);
        if (node == NULL) /* the first plan had no rank for it */
            continue;
        uint32_t own = node->hello->slots;
        bool says = own > 0 && own <= PLAN_SIZE_MAX;
        bool open = !says && !from->slots_given && from->traits.gpus == 0;
        int gpus = open ? (int)node->hello->gpus : 0, slots = gpus > 0 ? gpus : from->slots;
        struct host *to = hosts_add(out, from->name, says ? (int)own : slots, true);
        to->max_slots = from->max_slots;
        host_traits_copy(&to->traits, &from->traits);
        if (gpus > 0)
            log_info(&job->log, "%s: %d slot%s, one for each GPU", from->name, gpus,
                     gpus == 1 ? "" : "s");
    }
}

static bool check_rank(struct job *job, enum option_id id, int64_t rank)
{
    if (rank < job->plan->size)
        return true;
    char *text AUTO_FREE =
        mem_printf("%s: rank %lld does not exist; the job has ranks 0 to %d",
                   settings_place(job->settings, id), (long long)rank, job->plan->size - 1);
    teardown_launcher(job, STATUS_USAGE, text);
    return false;
}

/* The agent of a host without ranks quits, and the job does not wait for it. */
static void leave_unused(struct job *job)
{
    for (int i = 0; i < job->node_count; i++) {
        struct node_link *node = job->nodes[i];
        if (node->place >= 0 || node->state != NODE_UP)
            continue;
        log_info(&job->log, "%s: not used, because it gets no rank", node->host);
        node->state = NODE_CLOSING;
        node_link_send(node, FRAME_QUIT, job->epoch, NULL);
    }
}

static void seat_ranks(struct job *job)
{
    job_seat_ranks(job);
    for (int rank = 0; rank < job->plan->size; rank++) {
        const struct plan_rank *place = &job->plan->ranks[rank];
        struct output_seat who = {
            .rank = rank, .local_rank = place->local_rank, .host = job->places[place->node]->host};
        output_seat(job->output, rank, &who);
    }
}

int late_plan_take(struct job *job, struct plan **out)
{
    struct host_list hosts = {.count = 0};
    struct plan_request request = *job->request->late;
    struct error err = ERROR_INIT;
    count_slots(job, &hosts);
    request.hosts = &hosts;
    struct plan *plan = plan_create(&request, &err);
    hosts_destroy(&hosts);
    if (plan == NULL && job->request->copy != NULL && job->settings->np > 0)
        error_wrap(&err, "%s beside the lines of the hosts", settings_place(job->settings, OPT_np));
    if (plan == NULL) {
        teardown_launcher(job, err.status, err.text);
        return -1;
    }
    struct node_link **places AUTO_FREE = mem_array((size_t)plan->node_count, sizeof(*places));
    for (int i = 0; i < plan->node_count; i++)
        places[i] = node_of(job, plan->nodes[i].name);
    *out = plan;
    job->plan = plan;
    job_set_places(job, places);
    seat_ranks(job);
    leave_unused(job);
    return 0;
}

bool late_plan_check_ranks(struct job *job)
{
    return check_rank(job, OPT_stdin_, job->settings->stdin_) &&
           check_rank(job, OPT_pty, job->settings->pty);
}

#define NODE_TIMEOUT_MS 30000 /* the fail-over of a switch must not end a run of days (D5) */

struct static_job {
    struct exit_policy *policy; /* on job->plan */
    struct plan *late_plan;     /* NULL: none was needed, or not yet */
    bool lost;                  /* a node is lost */
    bool looks;                 /* the job ends after a last look at its ranks */
    int failed_rank;            /* that it is about; -1: none */
};

static struct static_job *of(const struct job *job)
{
    return job->kind_data;
}

/* Takes a plan that is new, or that changed before it was used. */
static void follow_plan(struct job *job)
{
    struct static_job *own = of(job);
    exit_policy_destroy(own->policy);
    own->policy =
        exit_policy_create((enum exit_rule)job->settings->exit_policy, job->plan, &job->outside);
    stdin_feed_begin(job);
}

/* A rank has spawned others: job->plan will be this one. */
static void grow(struct job *job, const struct plan *plan)
{
    job_rendezvous_open(job); /* for the first world */
    exit_policy_grow(of(job)->policy, plan);
    job_mpi_grow(job, plan);
}

static int create(struct job *job, struct error *err)
{
    struct static_job *own = mem_alloc(sizeof(*own));
    job->kind_data = own;
    follow_plan(job);
    job_take_plan(job);
    for (int i = 0; i < job->node_count; i++) {
        struct node_link *node = job->nodes[i];
        reach_add_node(job, node, &job->plan->nodes[i].traits);
        job_open_node(job, node);
        if (job_connect_node(job, node, err) < 0)
            return -1;
    }
    job->times.opened_ns = clock_mono_ns();
    return 0;
}

static void destroy(struct job *job)
{
    struct static_job *own = of(job);
    if (own == NULL)
        return;
    exit_policy_destroy(own->policy);
    plan_destroy(own->late_plan);
    free(own);
}

/* false: the job ends. */
static bool take_late_plan(struct job *job)
{
    struct static_job *own = of(job);
    if (job->request->late == NULL || own->late_plan != NULL)
        return true;
    if (late_plan_take(job, &own->late_plan) < 0)
        return false;
    follow_plan(job);
    return late_plan_check_ranks(job);
}

static void advance(struct job *job)
{
    if (job->state == JOB_CONNECTING && job->nodes_up == job->node_count) {
        if (take_late_plan(job))
            bringup_prepare(job);
    } else if (job->state == JOB_PREPARING && job->nodes_ready == job->plan->node_count) {
        bringup_start(job);
    } else if (job->state == JOB_RUNNING && job->ranks.finished == job->plan->size &&
               !of(job)->looks) {
        teardown_leftovers(job);
    }
}

/* What each rank says about its end: near the loss of a node, that decides. */
static void read_ranks(const struct job *job)
{
    for (int rank = 0; rank < job->plan->size; rank++) {
        const struct rank_record *record = &job->ranks.records[rank];
        struct symptom symptom;
        symptom_read(&record->tail, INT64_MAX, &symptom);
        exit_policy_said(of(job)->policy, rank, &symptom,
                         node_link_uncertainty(job->nodes[record->node]));
    }
}

static void verdict(const struct job *job, struct verdict *out)
{
    if (of(job)->lost)
        read_ranks(job);
    exit_policy_verdict(of(job)->policy, out);
    if (out->node >= 0)
        out->node = job->places[out->node]->index;
}

static enum exit_role role(const struct job *job, int seat)
{
    return exit_policy_role(of(job)->policy, seat);
}

/* Nodes */

static void end_for(struct job *job, int failed_rank)
{
    if (failed_rank < 0 || !cause_wait_begin(job, failed_rank))
        teardown_after_failure(job);
}

static void collected(void *context)
{
    struct job *job = context;
    if (job->state != JOB_RUNNING)
        return;
    if (job->ranks.finished == job->plan->size)
        teardown_leftovers(job);
    else
        end_for(job, of(job)->failed_rank);
}

/* The ranks go on for as long as a part looks at them. `text_take`: what has failed. */
static void end_if(struct job *job, bool wanted, int rank, char *text_take)
{
    struct static_job *own = of(job);
    char *text AUTO_FREE = text_take;
    struct incident incident = {.kind = INCIDENT_FAILURE, .text = text, .rank = rank};
    if (!wanted || own->looks)
        return;
    worlds_stop(job);
    own->failed_rank = rank;
    own->looks = job->state == JOB_RUNNING && incident_raise(job, &incident, collected, job);
    if (!own->looks)
        end_for(job, rank);
}

static void lost(struct job *job, struct node_link *node, const char *why)
{
    const struct exit_loss loss = node_link_loss(node);
    of(job)->lost = true;
    cause_wait_end(job);
    end_if(job, exit_policy_node_lost(of(job)->policy, node->place, &loss, why), -1,
           mem_printf("lost %s: %s", node->host, why));
}

static void killed(struct job *job, const struct node_link *node, int64_t when_ns)
{
    exit_policy_killed(of(job)->policy, node->place, when_ns);
}

/* Workers */

static void started(struct job *job, int seat)
{
    exit_policy_started(of(job)->policy, seat);
}

static void exited(struct job *job, const struct exit_event *event)
{
    struct exit_policy *policy = of(job)->policy;
    const struct rank_record *record = &job->ranks.records[event->seat];
    job_rendezvous_rank_gone(job, event->seat);
    cause_wait_exited(job, event->seat);
    end_if(job,
           record->exec_failed ? exit_policy_ended(policy, FACT_NOT_EXECUTED, event, record->text)
                               : exit_policy_ended(policy, FACT_EXITED, event, NULL),
           record->rank, incident_exit_text(job, event));
    worlds_exited(job, event->seat);
}

static void finished(struct job *job, int seat)
{
    cause_wait_finished(job, seat);
    if (job->state == JOB_RUNNING)
        worlds_finished(job, seat);
}

static void aborted(struct job *job, const struct exit_event *event, const char *message)
{
    int rank = job_seat_rank(job, event->seat);
    end_if(job, exit_policy_ended(of(job)->policy, FACT_ABORTED, event, message), rank,
           mem_printf("rank %d on %s aborted the job", rank, job_seat_host(job, event->seat)));
}

static int ready(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    return frame->epoch == job->epoch ? bringup_ready(job, node, frame)
                                      : worlds_ready(job, node, frame);
}

static const struct frame_rule frames[FRAME_TYPES] = {
    [FRAME_READY] = {ready, NULL, EPOCHS_ALL, NODE_STARTING, false},
    [FRAME_SPAWN] = {worlds_spawn, &hvdrun__spawn__descriptor, EPOCHS_PRESENT, NODE_RUNNING, false},
    [FRAME_TERMINATE] = {user_signals_terminate, NULL, EPOCHS_ALL, NODE_STARTING, false},
};

const struct job_kind static_kind = {
    .has_workers = true,
    .node_timeout_ms = NODE_TIMEOUT_MS,
    .frames = frames,
    .create = create,
    .destroy = destroy,
    .begin = bringup_begin,
    .advance = advance,
    .verdict = verdict,
    .role = role,
    .hello = bringup_hello,
    .came = bringup_came,
    .unreached = bringup_unreached,
    .lost = lost,
    .killed = killed,
    .grow = grow,
    .started = started,
    .exited = exited,
    .finished = finished,
    .aborted = aborted,
};
