/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/start/late_plan.h"

#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "driver/end/teardown.h"
#include "driver/job/job_nodes.h"
#include "model/hosts/hosts.h"

static struct node_link *node_of(const struct job *job, const char *host)
{
    int i = 0;
    while (i < job->node_count && strcmp(job->nodes[i]->host, host) != 0)
        i++;
    return i < job->node_count ? job->nodes[i] : NULL;
}

/* The hosts of the request, with the numbers of slots that their agents report. */
static void count_slots(const struct job *job, struct host_list *out)
{
    const struct host_list *hosts = job->request->late->hosts;
    for (size_t i = 0; i < hosts->count; i++) {
        const struct host *from = &hosts->items[i];
        const struct node_link *node = node_of(job, from->name);
        bool open = !from->slots_given && from->traits.gpus == 0 && node != NULL;
        int gpus = open ? (int)node->hello->gpus : 0;
        struct host *to = hosts_add(out, from->name, gpus > 0 ? gpus : from->slots, true);
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
        struct output_seat who = {rank, place->local_rank, job->places[place->node]->host};
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
