/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/start/prepare.h"

#include <stdlib.h>

#include "base/mem.h"
#include "driver/end/teardown.h"
#include "driver/job/job_kind.h"
#include "driver/reach/reach.h"
#include "driver/run/evidence_folder.h"
#include "driver/start/machines.h"
#include "driver/start/prepare_parts.h"
#include "model/net/network.h"
#include "output/terminal.h"

/* PREPARE as bytes. In a protobuf message the later of two fields wins, and lists grow, so a
 * message can be written in pieces. The part for all nodes comes first and is written once,
 * because with thousands of hosts their names are most of it. Behind it comes the part for one
 * node. */
struct prepare_body {
    struct buf bytes;
    size_t common; /* how many of them are for all */
};

#define PREPARE_MAX ((size_t)1 << 30)

static void body_add(struct prepare_body *body, const Hvdrun__Prepare *message)
{
    size_t length = hvdrun__prepare__get_packed_size(message);
    hvdrun__prepare__pack(message, buf_reserve(&body->bytes, length));
    buf_commit(&body->bytes, length);
}

static void fill_binding(Hvdrun__Prepare *message, const struct job *job, const struct plan *plan)
{
    const struct settings *settings = job->settings;
    int64_t mapped = plan->cpus_per_proc; /* --map-by slot:PE=N */
    message->bind = (uint32_t)settings->bind_to;
    message->report_bindings = settings->report_bindings;
    message->cpus_per_proc = (uint32_t)(mapped > 0 ? mapped : settings->cpus_per_proc);
    message->map_unit = plan->round_numa ? 1 : 0;
    /* a round over the memory nodes means nothing to workers that are not bound to one */
    if (plan->round_numa && !settings_is_set(settings, OPT_bind_to))
        message->bind = BIND_NUMA;
    message->gpus_per_proc = (uint32_t)settings->gpus_per_proc;
    message->nic_hints = settings->nic_hints;
}

/* The places of all ranks. */
static void fill_layout(Hvdrun__Prepare *message, const struct plan *plan,
                        struct prepare_parts *parts)
{
    size_t nodes = (size_t)plan->node_count, size = (size_t)plan->size;
    message->size = (uint32_t)size;
    message->hosts = parts->hosts;
    message->n_hosts = nodes;
    message->host_ranks = parts->host_ranks;
    message->n_host_ranks = nodes;
    message->hostnames = parts->hostnames;
    message->n_hostnames = parts->hostnames == NULL ? 0 : nodes;
    message->addresses = parts->addresses;
    message->n_addresses = nodes;
    message->rank_nodes = parts->rank_nodes;
    message->n_rank_nodes = parts->rank_nodes == NULL ? 0 : size;
    message->app_sizes = parts->app_sizes;
    message->n_app_sizes = parts->app_count;
}

/* `remote`: for the nodes that are other machines. */
static void put_common(struct prepare_body *body, const struct job *job,
                       const struct prepare_epoch *epoch, struct prepare_parts *parts, bool remote)
{
    const struct settings *settings = job->settings;
    const struct strv *env = remote ? job->request->away_env : job->request->base_env;
    Hvdrun__Prepare message = HVDRUN__PREPARE__INIT;
    fill_layout(&message, epoch->plan, parts);
    fill_binding(&message, job, epoch->plan);
    message.apps = parts->app_pointers;
    message.n_apps = parts->app_count;
    message.elastic = job->kind->many_epochs;
    message.restart_count = (uint32_t)epoch->restart_count;
    message.max_restarts = job->kind->many_epochs ? (uint32_t)settings->max_restarts : 0;
    message.remote = remote;
    message.base_env = env->items;
    message.n_base_env = env->count;
    message.knobs = job->request->knobs->items;
    message.n_knobs = job->request->knobs->count;
    message.limits = parts->limit_pointers;
    message.n_limits = parts->limit_count;
    message.mpi_controller = settings->controller == SET_CONTROLLER_MPI;
    message.evidence = evidence_folder_may_come(settings);
    message.keep_scheduler_env = settings->keep_scheduler_env;
    message.master_port = (uint32_t)settings->master_port;
    message.hold_port = settings->port_hold;
    message.interfaces = parts->interfaces;
    message.pty_seat = settings->pty >= 0 ? (int32_t)settings->pty : -1;
    message.merge_stderr = settings->merge_stderr;
    terminal_size(&message.terminal_rows, &message.terminal_columns);
    body_add(body, &message);
    body->common = body->bytes.length;
}

/* The settings of its workers in the host list, and the working directory of all. Returns a text
 * that the message borrows; NULL: none. */
static char *fill_host_traits(Hvdrun__Prepare *message, const struct job *job,
                              const struct node_link *node, const struct host_traits *traits,
                              const struct prepare_parts *parts)
{
    /* even if it lost its name */
    bool is_here = job->settings->wdir == NULL && node->stream.same_machine;
    char *wdir = traits->wdir == NULL ? NULL : prepare_folder(job, traits->wdir);
    message->host_env = traits->env.items;
    message->n_host_env = traits->env.count;
    message->wdir = wdir != NULL ? wdir : is_here ? (char *)"" : parts->wdir;
    return wdir;
}

static void send_prepare(struct prepare_body *body, const struct job *job,
                         const struct prepare_epoch *epoch, int index,
                         const struct prepare_parts *parts)
{
    struct node_link *node = epoch->places[index];
    const struct plan_node *place = &epoch->plan->nodes[index];
    const struct node_share *share = &parts->shares[index];
    Hvdrun__Prepare message = HVDRUN__PREPARE__INIT;
    message.node_index = (uint32_t)index;
    message.host = place->name;
    message.local_size = (uint32_t)place->local_size;
    message.cpu_ranks = (uint32_t)parts->cpu_ranks[index];
    message.workers = parts->worker_pointers + share->first_worker;
    message.n_workers = share->workers;
    if (parts->stdin_seats != NULL)
        message.stdin_seats = parts->stdin_seats + share->first_stdin;
    message.n_stdin_seats = share->stdin_count;
    message.wants_master = !epoch->beside_others && epoch->plan->ranks[0].node == index;
    char *node_wdir AUTO_FREE = fill_host_traits(&message, job, node, &place->traits, parts);
    body_add(body, &message);
    node_link_send_bytes(node, FRAME_PREPARE, epoch->number, body->bytes.bytes + body->bytes.start,
                         body->bytes.length);
    buf_truncate(&body->bytes, body->common);
}

/* The address for workers on other machines. In later epochs a worker keeps the interface with
 * which it started. */
static bool others_may_join(const struct job *job)
{
    const struct settings *settings = job->settings;
    if (!job->kind->many_epochs || settings->transport == SET_TRANSPORT_LOCAL)
        return false;
    bool any = settings->host_discovery_script != NULL || settings->hosts_watch != NULL;
    for (int i = 0; i < job->node_count && !any; i++)
        any = !reach_is_near(job_part(job, reach), job->nodes[i]);
    return any;
}

/* false: the hosts do not share a network that the user allows; the job ends. */
static bool choose_addresses(struct job *job, const struct prepare_epoch *epoch,
                             struct prepare_parts *parts)
{
    size_t count = (size_t)epoch->plan->node_count;
    struct network_node *nodes AUTO_FREE = mem_array(count, sizeof(*nodes));
    parts->addresses = mem_array(count, sizeof(char *));
    for (size_t i = 0; i < count; i++) {
        const struct node_link *node = epoch->places[i];
        nodes[i] = (struct network_node){.name = node->host,
                                         .boot_id = node->hello->boot_id,
                                         .interfaces = node->hello->interfaces,
                                         .interface_count = node->hello->n_interfaces,
                                         .reached_by = node->stream.peer};
    }
    struct error err = ERROR_INIT;
    const struct strv *allowed = &job->settings->network_interfaces;
    if (network_choose(nodes, (int)count, others_may_join(job),
                       allowed->count > 0 ? allowed->items : NULL, parts->addresses, &err) == 0)
        return true;
    teardown_launcher(job, err.status, err.text);
    return false;
}

bool prepare_send(struct job *job, const struct prepare_epoch *epoch)
{
    struct prepare_parts parts = {.app_count = 0};
    prepare_parts_fill(job, epoch, &parts);
    bool agreed = choose_addresses(job, epoch, &parts);
    if (agreed)
        machines_warn(job, epoch);
    struct prepare_body bodies[2] = {{BUF_INIT(PREPARE_MAX), 0}, {BUF_INIT(PREPARE_MAX), 0}};
    for (int i = 0; agreed && i < epoch->plan->node_count; i++) {
        if (!prepare_concerns(epoch, i))
            continue;
        bool remote = !epoch->places[i]->stream.same_machine;
        struct prepare_body *body = &bodies[remote];
        if (body->common == 0)
            put_common(body, job, epoch, &parts, remote);
        send_prepare(body, job, epoch, i, &parts);
    }
    buf_destroy(&bodies[0].bytes);
    buf_destroy(&bodies[1].bytes);
    prepare_parts_free(&parts);
    return agreed;
}
