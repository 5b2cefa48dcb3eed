/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/place.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/status.h"
#include "cli/sources.h"
#include "model/allocation/allocation.h"
#include "model/allocation/slurm.h"
#include "model/hosts/entry.h"
#include "model/hosts/hostfile.h"
#include "model/hosts/hosts.h"
#include "model/plan/mapping.h"
#include "model/plan/rank_list.h"
#include "model/settings/settings.h"
#include "node/gpus.h"

/* Finds the allocation of a scheduler that the job may use, and reads its file. */

#define FILE_MAX ((size_t)64 << 20)

/* `srun hvdrun` with several tasks would start the whole job once for each task. */
static int refuse_twins(char *const *env, struct error *err)
{
    int task = allocation_slurm_twin(env);
    if (task < 0)
        return 0;
    if (task == 0)
        return error_usage(err,
                           "srun started several hvdrun processes, and each would start all "
                           "workers; start hvdrun without srun, or with srun -n1 --overlap (with "
                           "--scheduler none every task is a job of its own)");
    return error_usage(err, "%s", "");
}

static int find_kind(const struct settings *settings, char *const *env, enum allocation_kind *kind,
                     const char **file, struct error *err)
{
    static const enum allocation_kind kinds[] = {
        [SET_SCHEDULER_AUTO] = ALLOCATION_NONE,
        [SET_SCHEDULER_NONE] = ALLOCATION_NONE,
        [SET_SCHEDULER_SLURM] = ALLOCATION_SLURM,
        [SET_SCHEDULER_PBS] = ALLOCATION_PBS,
        [SET_SCHEDULER_LSF] = ALLOCATION_LSF,
        [SET_SCHEDULER_SGE] = ALLOCATION_SGE,
        [SET_SCHEDULER_KUBERNETES] = ALLOCATION_KUBERNETES,
    };
    *kind = kinds[settings->scheduler];
    if (*kind == ALLOCATION_NONE)
        *kind = allocation_detect(env, file);
    else if (!allocation_has(*kind, env, file))
        return error_usage(
            err,
            "%s: hvdrun does not run in a job of %s, which would set %s; start hvdrun in "
            "such a job, or leave the option out",
            settings_place(settings, OPT_scheduler), allocation_name(*kind),
            allocation_needs(*kind));
    return 0;
}

/* Looks for the allocation in `env`, as --scheduler says. `out` must be all zero. Its kind stays
 * ALLOCATION_NONE if there is no allocation, or with `--scheduler none`.
 * Returns -1 with STATUS_USAGE in three cases: the allocation is wrong, there is none of the kind
 * that --scheduler names, or one srun has started several launchers. In the last case only the
 * first launcher gets a text, so that the message appears once. The caller destroys `out` in any
 * case. */
static int allocation_read(const struct settings *settings, char *const *env,
                           struct allocation *out, struct error *err)
{
    enum allocation_kind kind = ALLOCATION_NONE;
    const char *file = NULL;
    AUTO_BUF struct buf bytes = BUF_INIT(FILE_MAX);
    if (settings->scheduler == SET_SCHEDULER_NONE)
        return 0;
    if (refuse_twins(env, err) < 0 || find_kind(settings, env, &kind, &file, err) < 0)
        return -1;
    if (file != NULL && text_file_read(file, settings->start_timeout, &bytes, err) < 0)
        return error_wrap(err, "hosts of the %s job (--scheduler none ignores them)",
                          allocation_name(kind));
    return allocation_parse(kind, env, file, file == NULL ? NULL : buf_text(&bytes), bytes.length,
                            out, err);
}

/* Reads a hostfile from the disk. model/hosts/hostfile.h describes its formats. */

#define HOSTFILE_MAX ((size_t)128 << 20)

/* `place` is FILE, or FILE#GROUP for the hosts of one group (unless there is a file with that whole
 * name). `option` named it, for the error of a file that cannot be read. Appends to `hosts`. A pipe
 * must end within `limit_ms`. -1: the status is STATUS_USAGE. */
static int hostfile_read(const char *place, const char *option, int64_t limit_ms,
                         struct host_list *hosts, struct error *err)
{
    struct buf bytes AUTO_BUF = BUF_INIT(HOSTFILE_MAX);
    char *path AUTO_FREE = mem_strdup(place);
    char *mark = strrchr(path, '#');
    const char *group = NULL;
    if (mark != NULL && access(path, F_OK) < 0) {
        *mark = '\0';
        group = mark + 1;
    }
    if (text_file_read(path, limit_ms, &bytes, err) < 0)
        return error_wrap(err, "%s", option);
    const struct hostfile file = {
        .bytes = buf_text(&bytes), .length = bytes.length, .name = path, .group = group};
    return hostfile_parse(&file, hosts, err);
}

/* Options that map ranks to hosts: --map-by, --rankfile. */

#define RANKFILE_MAX ((size_t)512 << 20)

/* Fills an all-zero struct, which the caller destroys in any case. On an error the status is
 * STATUS_USAGE: the option or the file is wrong, or there are two of these options. */
static int layout_read(const struct settings *settings, struct mapping *out, struct error *err)
{
    if (settings->map_by != NULL && mapping_parse(settings->map_by, out, err) < 0)
        return error_wrap(err, "%s", settings_place(settings, OPT_map_by));
    if (settings->rankfile != NULL && out->rule != MAP_SLOT)
        return error_usage(err, "%s and %s both say where each rank runs; give one of them",
                           settings_place(settings, OPT_map_by),
                           settings_place(settings, OPT_rankfile));
    if (out->cpus_per_proc > 0 && settings->cpus_per_proc > 0 &&
        out->cpus_per_proc != settings->cpus_per_proc)
        return error_usage(
            err, "%s sets %d cores for each worker, but %s sets %lld; give one of them",
            settings_place(settings, OPT_map_by), out->cpus_per_proc,
            settings_place(settings, OPT_cpus_per_proc), (long long)settings->cpus_per_proc);
    const char *path = settings->rankfile;
    AUTO_BUF struct buf bytes = BUF_INIT(RANKFILE_MAX);
    if (path == NULL)
        return 0;
    out->rule = MAP_LIST;
    if (text_file_read(path, settings->start_timeout, &bytes, err) < 0)
        return error_wrap(err, "%s", settings_place(settings, OPT_rankfile));
    return rankfile_parse(buf_text(&bytes), bytes.length, path, &out->list, err);
}

/* For a job without a host list. Adds the hosts of the rankfile to `hosts`, or this machine for
 * ppr. False: the mapping has no hosts. */
static bool layout_hosts(const struct mapping *mapping, struct host_list *hosts)
{
    if (mapping->rule == MAP_PPR)
        hosts_add(hosts, "localhost", mapping->per_node, true);
    for (size_t i = 0; mapping->rule == MAP_LIST && i < mapping->list.names.count; i++) {
        const struct host *host = &mapping->list.names.items[i];
        hosts_add(hosts, host->name, host->slots, true);
    }
    return hosts->count > 0;
}

/* -1: the mapping gives its hosts more than slots. An elastic job always fills them slot by slot.
 */
static int layout_check_elastic(const struct settings *settings, struct error *err)
{
    struct mapping mapping = {.rule = MAP_SLOT};
    int result = layout_read(settings, &mapping, err);
    bool found = settings->host_discovery_script != NULL || settings->hosts_watch != NULL;
    bool counts =
        mapping.rule == MAP_PPR && /* then these are the slots of the hosts */
        (!found || (mapping.per_node > 0 && mapping.per_node == settings->slots_per_host));
    bool other =
        result == 0 && ((mapping.rule != MAP_SLOT && !counts) || mapping.cpus_per_proc > 0);
    enum option_id option = settings->rankfile != NULL ? OPT_rankfile : OPT_map_by;
    if (other)
        result = error_usage(
            err,
            "%s: the workers of an elastic job always fill the slots of its hosts in order; use "
            "%s, or leave the option out",
            settings_place(settings, option),
            found ? "--map-by slot with --slots-per-host"
                  : "--map-by slot or ppr:N:node (with --cpus-per-proc for cores)");
    mapping_destroy(&mapping);
    return result;
}

int place_count(enum map_each each)
{
    int gpus = each == MAP_EACH_CPU ? 0 : gpus_count("");
    return gpus > 0 || each == MAP_EACH_GPU ? gpus : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* The N of ppr:N:node on this machine, where it is a word. */
static int count_here(const struct settings *settings, struct mapping *mapping, struct error *err)
{
    mapping->per_node = place_count(mapping->each);
    if (mapping->per_node == 0)
        return error_status(err, STATUS_NO_SLOTS,
                            "%s: this machine has no GPU that hvdrun can see; write a number",
                            settings_place(settings, OPT_map_by));
    return 0;
}

/* The same on other hosts. Each is asked for its GPUs when it is up, as without a slot count. */
static int count_there(const struct settings *settings, struct place *place, struct error *err)
{
    if (place->mapping.each == MAP_EACH_CPU || settings_is_elastic(settings))
        return error_usage(err,
                           "%s: hvdrun counts only the GPUs of other hosts, and only for a job "
                           "that is not elastic; write the number of ranks on each host",
                           settings_place(settings, OPT_map_by));
    for (size_t i = 0; i < place->hosts.count; i++) {
        if (place->allocated || !place->hosts.items[i].slots_given) {
            place->hosts.items[i].slots = 1;
            place->hosts.items[i].slots_given = false;
        }
    }
    place->allocation.np = 0;
    place->mapping.rule = MAP_SLOT;
    return 0;
}

/* In an elastic job, ppr:N:node says how many slots each host has. */
static int take_slots(const struct settings *settings, struct place *place, struct error *err)
{
    int slots = place->mapping.per_node;
    if (place->hosts.count == 0)
        hosts_add(&place->hosts, "localhost", slots, true);
    for (size_t i = 0; i < place->hosts.count; i++) {
        struct host *host = &place->hosts.items[i];
        if (host->slots_given && host->slots < slots && !place->mapping.oversubscribe)
            return error_status(err, STATUS_NO_SLOTS,
                                "%s: %d ranks do not fit on %s, which has %d slot%s; give it more "
                                "slots",
                                settings_place(settings, OPT_map_by), slots, host->name,
                                host->slots, host->slots == 1 ? "" : "s");
        host->slots = slots;
        host->slots_given = true;
    }
    place->allocation.np = 0;
    place->mapping.rule = MAP_SLOT;
    return 0;
}

/* `place->hosts` is empty if the job runs on this machine. */
static int settle_ppr(const struct settings *settings, struct place *place, struct error *err)
{
    const struct mapping *mapping = &place->mapping;
    bool here = place->hosts.count == 0;
    if (mapping->rule == MAP_PPR && mapping->each != MAP_EACH_NUMBER &&
        (here ? count_here(settings, &place->mapping, err) : count_there(settings, place, err)) < 0)
        return -1;
    if (mapping->rule == MAP_PPR && settings_is_elastic(settings))
        return take_slots(settings, place, err);
    return 0;
}

/* The place. */

#define PATH_ROOM 4096

/* The slots of this machine if no option gives them: one for each GPU, at least one. */
static int own_slots(const struct settings *settings)
{
    if (settings->np > 0)
        return (int)settings->np;
    int gpus = gpus_count("");
    return gpus > 0 ? gpus : 1;
}

/* The agents that dial in are the hosts. So nothing here tells how many ranks the job has, and ppr
 * has no hosts to give slots to. */
static int check_open(const struct settings *settings, const struct mapping *mapping,
                      struct error *err)
{
    if (settings->np == 0 && settings->min_np == 0 && settings->max_np == 0)
        return error_usage(err,
                           "%s: dial without a host list needs a number of ranks: give -np, or "
                           "--min-np and --max-np",
                           settings_place(settings, OPT_transport));
    if (mapping->rule == MAP_SLOT)
        return 0;
    return error_usage(err,
                       "%s: there is no host list; hosts that dial in have --slots-per-host ranks",
                       settings_place(settings, OPT_map_by));
}

int place_open(const struct command_line *line, char *const *env, struct place *place,
               struct error *err)
{
    const struct settings *settings = &line->settings;
    bool named = settings->hosts != NULL || settings->hostfile != NULL;
    if (allocation_read(settings, env, &place->allocation, err) < 0 ||
        layout_read(settings, &place->mapping, err) < 0)
        return -1;
    if (settings->host_discovery_script != NULL || settings->hosts_watch != NULL)
        return 0;
    if (settings->hosts != NULL && hosts_parse(settings->hosts, &place->hosts, err) < 0)
        return -1;
    if (settings->hostfile != NULL &&
        hostfile_read(settings->hostfile, settings_place(settings, OPT_hostfile),
                      settings->start_timeout, &place->hosts, err) < 0)
        return -1;
    hosts_settle_slots(&place->hosts);
    bool allocated = place->allocation.kind != ALLOCATION_NONE;
    if (named && allocated &&
        allocation_check(&place->allocation, &place->hosts, settings->oversubscribe, err) < 0)
        return -1;
    place->allocated = !named && allocated;
    if (place->allocated)
        hosts_copy(&place->hosts, &place->allocation.hosts);
    if (place->hosts.count == 0 && !named && settings->transport == SET_TRANSPORT_DIAL &&
        settings_is_elastic(settings) && !line->check.wanted)
        return check_open(settings, &place->mapping, err);
    if (settle_ppr(settings, place, err) < 0)
        return -1;
    if (place->hosts.count == 0 && !named && !layout_hosts(&place->mapping, &place->hosts))
        hosts_add(&place->hosts, "localhost", own_slots(settings), true);
    return 0;
}

void place_close(struct place *place)
{
    allocation_destroy(&place->allocation);
    hosts_destroy(&place->hosts);
    mapping_destroy(&place->mapping);
    mem_free_at(&place->bad_hosts);
    mem_free_at(&place->left_out);
}

/* The slots without which an elastic job with these hosts does not start. */
static int least_slots(const struct settings *settings)
{
    int64_t np = settings->np > 0 ? settings->np : settings->min_np;
    return settings_is_elastic(settings) && np > 0 ? (int)np : 1;
}

int place_suffices(const struct command_line *line, const struct place *place, int before,
                   struct error *err)
{
    int wanted = least_slots(&line->settings), left = hosts_slots(&place->hosts);
    if (place->left_out == NULL || before < wanted || left >= wanted)
        return 0;
    return error_status(err, STATUS_NO_SLOTS,
                        "not enough slots: %d wanted, %d left, because %s; give more hosts, or %s",
                        wanted, left, place->left_out, place->remedy);
}

bool place_is_vague(const struct place *place)
{
    if (mapping_has_size(&place->mapping))
        return false;
    size_t i = 0;
    while (i < place->hosts.count &&
           (place->hosts.items[i].slots_given || place->hosts.items[i].traits.gpus > 0))
        i++;
    return i < place->hosts.count;
}

/* The rank that an option names must exist. */
static int check_ranks(const struct settings *settings, int size, struct error *err)
{
    bool pty = settings->stdin_ < size;
    int64_t rank = pty ? settings->pty : settings->stdin_;
    if (rank < size)
        return 0;
    return error_usage(err, "%s: rank %lld does not exist; the job has ranks 0 to %d",
                       settings_place(settings, pty ? OPT_pty : OPT_stdin_), (long long)rank,
                       size - 1);
}

/* The number of ranks: -np, otherwise that of the mapping, otherwise the number of the scheduler's
 * tasks, otherwise 0, which means all slots. Nobody has chosen the tasks of hosts that are left
 * out.
 */
static int wanted_np(const struct command_line *line, const struct place *place)
{
    if (line->apps.count > 1)
        return 0; /* each program has its own number */
    if (line->settings.np > 0)
        return (int)line->settings.np;
    if (mapping_has_size(&place->mapping))
        return 0;
    int tasks = place->allocated ? place->allocation.np : 0;
    return place->left_out != NULL && tasks > hosts_slots(&place->hosts) ? 0 : tasks;
}

struct plan *place_plan(const struct command_line *line, struct place *place, bool late,
                        struct error *err)
{
    const struct settings *settings = &line->settings;
    place->request = (struct plan_request){.hosts = &place->hosts,
                                           .apps = &line->apps,
                                           .np = wanted_np(line, place),
                                           .oversubscribe = settings->oversubscribe,
                                           .idle_hosts = settings->idle_hosts,
                                           .mapping = &place->mapping};
    struct plan_request request = place->request;
    request.oversubscribe |= late; /* the hosts may have more slots than we know now */
    struct plan *plan = plan_create(&request, err);
    if (plan != NULL && settings->max_np > 0 && plan->size > settings->max_np) {
        plan_destroy(plan);
        request.np = (int)settings->max_np;
        plan = plan_create(&request, err);
    }
    if (plan == NULL && place->allocated && err != NULL && err->status == STATUS_NO_SLOTS)
        error_wrap(err, "%s job%s%s", allocation_name(place->allocation.kind),
                   place->allocation.job_id == NULL ? "" : " ",
                   place->allocation.job_id == NULL ? "" : place->allocation.job_id);
    if (plan == NULL && place->left_out != NULL && err != NULL) {
        struct error why = *err;
        error_status(err, why.status, "%s (%s; %s)", why.text, place->left_out, place->remedy);
    }
    if (plan == NULL && line->nodes.launcher != NULL && settings->np > 0)
        error_wrap(err, "%s beside the line of %s", settings_place(settings, OPT_np),
                   line->nodes.launcher);
    if (plan != NULL && !late && check_ranks(settings, plan->size, err) < 0) {
        plan_destroy(plan);
        plan = NULL;
    }
    return plan;
}

int place_check_elastic(const struct command_line *line, struct error *err)
{
    const struct settings *settings = &line->settings;
    if (line->apps.count > 1)
        return error_usage(err, "an elastic job runs one program, not %zu", line->apps.count);
    if (settings->oversubscribe)
        return error_usage(
            err,
            "%s: an elastic job cannot have more workers than slots; give the hosts more slots",
            settings_place(settings, OPT_oversubscribe));
    if (settings->idle_hosts)
        return error_usage(err, "%s: ranks of an elastic job cannot spawn others",
                           settings_place(settings, OPT_idle_hosts));
    if (settings->pty >= 0)
        return error_usage(
            err,
            "%s: the workers of an elastic job come and go, so none of them can have the terminal",
            settings_place(settings, OPT_pty));
    return layout_check_elastic(settings, err);
}

char *place_modules(void)
{
    char path[PATH_ROOM];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[length > 0 ? length : 0] = '\0';
    const char *started = (const char *)getauxval(AT_EXECFN); /* where there is no /proc */
    if (length < 0 && (started == NULL || realpath(started, path) == NULL))
        path[0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = '\0';
    char *beside = mem_printf("%s/lib/hvdrun", path);
    if (access(beside, X_OK) == 0)
        return beside;
    mem_free_at(&beside);
    return mem_printf("%s/../" HVDRUN_LIBDIR "/hvdrun", path);
}

char *place_here(void)
{
    struct stat named, real;
    const char *pwd = getenv("PWD"); /* the path that the user sees, which may contain links */
    if (pwd != NULL && pwd[0] == '/' && stat(pwd, &named) == 0 && stat(".", &real) == 0 &&
        named.st_dev == real.st_dev && named.st_ino == real.st_ino)
        return mem_strdup(pwd);
    char path[PATH_ROOM];
    return mem_strdup(getcwd(path, sizeof(path)) == NULL ? "/" : path);
}

char *place_job_id(void)
{
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    return mem_printf("hvdrun-%s-%d", host, (int)getpid());
}
