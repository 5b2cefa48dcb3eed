/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/reach/ways.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strv.h"
#include "driver/job/job_kind.h"
#include "io/dial_ends.h"
#include "model/allocation/allocation.h"
#include "model/net/address.h"
#include "node/facts.h"
#include "transport/boot/boot.h"
#include "transport/exec/words.h"
#include "transport/transports.h"

enum way way_choose(const struct job *job, const struct host_traits *traits)
{
    const struct allocation *allocation = job->request->allocation;
    bool is_plain = traits->user == NULL && traits->port == 0 && traits->address == NULL &&
                    traits->identity == NULL;
    int kind = traits->transport;
    if (kind == SET_TRANSPORT_AUTO && job->settings->launch_agent != NULL)
        return WAY_COMMAND;
    if (kind == SET_TRANSPORT_AUTO)
        kind = (int)job->settings->transport;
    switch (kind) {
    case SET_TRANSPORT_SSH_CLI: return WAY_SSH_CLI;
    case SET_TRANSPORT_SRUN: return WAY_SRUN;
    case SET_TRANSPORT_KUBECTL: return WAY_KUBECTL;
    case SET_TRANSPORT_DOCKER: return WAY_DOCKER;
    case SET_TRANSPORT_DIAL: return WAY_DIAL;
    case SET_TRANSPORT_AUTO:
        return is_plain && allocation != NULL && allocation->kind == ALLOCATION_SLURM ? WAY_SRUN
                                                                                      : WAY_SSH;
    default: return WAY_SSH;
    }
}

/* The name of this node in the Slurm job, whatever the name of the machine is. */
static bool is_slurm_name(const struct allocation *allocation, const char *host)
{
    return allocation != NULL && allocation->kind == ALLOCATION_SLURM && allocation->here != NULL &&
           strcmp(allocation->here, host) == 0;
}

bool way_is_here(const struct settings *settings, const struct allocation *allocation,
                 const char *host, const struct host_traits *traits)
{
    int kind = traits->transport;
    if (kind == SET_TRANSPORT_AUTO)
        kind = settings->launch_agent != NULL ? SET_TRANSPORT_SSH : (int)settings->transport;
    switch (kind) {
    case SET_TRANSPORT_LOCAL: return true;
    case SET_TRANSPORT_DIAL: return !traits->came && is_local_obviously(host) == LOCAL_YES;
    case SET_TRANSPORT_AUTO:
        return traits->user == NULL && traits->port == 0 && traits->address == NULL &&
               (is_slurm_name(allocation, host) || is_local_obviously(host) == LOCAL_YES);
    default: return false;
    }
}

bool way_may_be_here(const struct settings *settings, enum way way, const char *host,
                     const struct host_traits *traits)
{
    return way == WAY_SSH && traits->transport == SET_TRANSPORT_AUTO &&
           settings->transport == SET_TRANSPORT_AUTO && traits->user == NULL && traits->port == 0 &&
           is_local_obviously(host) == LOCAL_UNKNOWN;
}

/* The addresses of this machine to which an agent on another host may connect, best first. */
#define OWN_ADDRESSES_MAX 24

static void add_class(const struct node_address *all, size_t count, enum network_class fitness,
                      bool ipv6, struct strv *out)
{
    for (size_t i = 0; i < count && out->count < OWN_ADDRESSES_MAX; i++) {
        struct network_address parsed;
        if (all[i].up && all[i].ipv6 == ipv6 &&
            network_address_set(&parsed, all[i].iface, all[i].text, all[i].prefix) &&
            parsed.fitness == fitness)
            strv_add(out, all[i].text);
    }
}

/* Appends numeric addresses of interfaces that are up: ordinary ones before those of bridges and
 * tunnels, IPv4 before IPv6, loopback last (several nodes may be one machine). */
static void own_addresses_list(struct strv *out)
{
    static const enum network_class order[] = {NETWORK_ORDINARY, NETWORK_VIRTUAL,
                                               NETWORK_LINK_LOCAL, NETWORK_LOOPBACK};
    struct node_address *all = NULL;
    size_t count = node_addresses_read(&all);
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        add_class(all, count, order[i], false, out);
        add_class(all, count, order[i], true, out);
    }
    node_addresses_destroy(all, count);
}

struct ways {
    struct job *job;
    const struct transport_room *room;
    struct transport opened[WAYS];
    bool is_open[WAYS];
    struct exec_transport exec[WAYS];
    struct ssh_settings ssh_settings[WAYS];
    struct ssh_transport *ssh[WAYS];
    struct strv addresses;
    struct srun_settings srun_settings;
    struct srun_transport *srun;
    struct dial_in_settings dial_settings;
    struct dial_in *dial;
};

static int open_exec(struct ways *ways, enum way way, const char *text, struct error *err)
{
    struct exec_transport *exec = &ways->exec[way];
    strv_destroy(&exec->words);
    exec->room = ways->room;
    exec->boot_word = BOOT_COMMAND;
    exec->window = (int)ways->job->settings->ssh_window;
    if (exec_template_parse(text, &exec->words, err) < 0)
        return -1;
    ways->opened[way] = exec_transport(exec);
    return 0;
}

static int open_ssh(struct ways *ways, enum way way)
{
    const struct settings *settings = ways->job->settings;
    ways->ssh_settings[way] = (struct ssh_settings){.room = ways->room,
                                                    .module_path = ways->job->request->ssh_module,
                                                    .window = (int)settings->ssh_window,
                                                    .config_file = settings->ssh_config,
                                                    .user = settings->ssh_user,
                                                    .port = (int)settings->ssh_port,
                                                    .identity = settings->ssh_identity_file,
                                                    .strict = settings->ssh_strict,
                                                    .program_only = way == WAY_SSH_CLI};
    ways->ssh[way] = ssh_transport_create(&ways->ssh_settings[way]);
    ways->opened[way] = ssh_transport(ways->ssh[way]);
    return 0;
}

static void tell_note(void *context, enum log_level level, const char *line)
{
    const struct ways *ways = context;
    log_print(&ways->job->log, level, "%s", line);
}

/* So that the reason is known before the job gives up. */
static int64_t start_limit_ms(const struct job *job)
{
    return job->settings->start_timeout / 10 * 9;
}

static void srun_idle(void *context)
{
    const struct ways *ways = context;
    job_advance(ways->job);
}

static int open_srun(struct ways *ways, struct error *err)
{
    const struct job *job = ways->job;
    if (getenv("SLURM_JOB_ID") == NULL && getenv("SLURM_JOBID") == NULL)
        return error_usage(err,
                           "srun reaches hosts only inside a Slurm job (SLURM_JOB_ID is not set): "
                           "start hvdrun with sbatch or in salloc, or choose another --transport");
    own_addresses_list(&ways->addresses);
    ways->srun_settings = (struct srun_settings){.room = ways->room,
                                                 .module_path = job->request->tls_module,
                                                 .agent_path = job->request->agent_path,
                                                 .arguments = job->settings->srun_args,
                                                 .addresses = strv_items(&ways->addresses),
                                                 .limit_ms = start_limit_ms(job),
                                                 .nodes = job->node_count,
                                                 .one_each = job->kind->many_epochs,
                                                 .note = tell_note,
                                                 .idle = srun_idle,
                                                 .context = ways};
    ways->srun = srun_transport_create(&ways->srun_settings, err);
    if (ways->srun == NULL)
        return -1;
    ways->opened[WAY_SRUN] = srun_transport(ways->srun);
    return 0;
}

static const char *stranger(void *context, const char *name)
{
    const struct ways *ways = context;
    return ways->job->kind->stranger(ways->job, name);
}

static int open_dial(struct ways *ways, struct error *err)
{
    const struct job *job = ways->job;
    const struct settings *settings = job->settings;
    const char *id = settings->dial_id;
    bool elastic = job->kind->many_epochs;
    if (settings->dial_port == 0 || (settings->dial_secret == NULL && !settings->dial_open))
        return error_usage(err,
                           "--transport dial needs --dial-port PORT and --dial-secret FILE, which "
                           "hvdrun-agent --dial gets too");
    ways->dial_settings = (struct dial_in_settings){
        .room = ways->room,
        .module_path = job->request->tls_module,
        .secret_file = settings->dial_secret,
        .id = id != NULL ? id : DIAL_ID_USUAL,
        .port = (int)settings->dial_port,
        .limit_ms = elastic ? 0 : start_limit_ms(job),
        .nodes = elastic ? (int)job->request->hosts->count : job->node_count,
        .stranger = elastic && job_is_open(job) ? stranger : NULL,
        .note = tell_note,
        .context = ways};
    ways->dial = dial_in_create(&ways->dial_settings, err);
    if (ways->dial == NULL)
        return -1;
    ways->opened[WAY_DIAL] = dial_in_transport(ways->dial);
    return 0;
}

static int open_way(struct ways *ways, enum way way, struct error *err)
{
    switch (way) {
    case WAY_SSH:
    case WAY_SSH_CLI: return open_ssh(ways, way);
    case WAY_SRUN: return open_srun(ways, err);
    case WAY_DIAL: return open_dial(ways, err);
    case WAY_KUBECTL: return open_exec(ways, way, "kubectl exec -i %h --", err);
    case WAY_DOCKER: return open_exec(ways, way, "docker exec -i %h", err);
    case WAY_COMMAND: return open_exec(ways, way, ways->job->settings->launch_agent, err);
    case WAYS: break;
    }
    return error_set(err, "unknown transport");
}

struct ways *ways_create(struct job *job, const struct transport_room *room)
{
    return MEM_NEW((struct ways){.job = job, .room = room});
}

const struct transport *ways_open(struct ways *ways, enum way way, struct error *err)
{
    if (!ways->is_open[way] && open_way(ways, way, err) < 0)
        return NULL;
    ways->is_open[way] = true;
    return &ways->opened[way];
}

bool ways_are_idle(const struct ways *ways)
{
    return ways->srun == NULL || srun_transport_is_idle(ways->srun);
}

void ways_close(struct ways *ways)
{
    for (int way = 0; way < WAYS; way++) {
        ssh_transport_destroy(ways->ssh[way]);
        ways->ssh[way] = NULL;
        exec_transport_close(&ways->exec[way]);
        ways->is_open[way] = false;
    }
    srun_transport_destroy(ways->srun);
    ways->srun = NULL;
    dial_in_destroy(ways->dial);
    ways->dial = NULL;
    strv_destroy(&ways->addresses);
}

void ways_destroy(struct ways *ways)
{
    if (ways == NULL)
        return;
    ways_close(ways);
    for (int way = 0; way < WAYS; way++)
        strv_destroy(&ways->exec[way].words);
    free(ways);
}
