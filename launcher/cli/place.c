/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/place.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/status.h"
#include "cli/allocation_read.h"
#include "cli/hostfile_read.h"
#include "cli/layout.h"
#include "model/hosts/entry.h"
#include "node/gpus.h"

#define PATH_ROOM 4096

/* The slots of this machine if no option gives them: one for each GPU, at least one. */
static int own_slots(const struct settings *settings)
{
    if (settings->np > 0)
        return (int)settings->np;
    int gpus = gpus_count("");
    return gpus > 0 ? gpus : 1;
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
    if (named && allocated)
        return allocation_check(&place->allocation, &place->hosts, settings->oversubscribe, err);
    place->allocated = !named && allocated;
    if (place->allocated)
        hosts_copy(&place->hosts, &place->allocation.hosts);
    else if (!named && !layout_hosts(&place->mapping, &place->hosts))
        hosts_add(&place->hosts, "localhost", own_slots(settings), true);
    return 0;
}

void place_close(struct place *place)
{
    allocation_destroy(&place->allocation);
    hosts_destroy(&place->hosts);
    mapping_destroy(&place->mapping);
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
static int check_rank(const struct settings *settings, enum option_id id, int64_t rank, int size,
                      struct error *err)
{
    if (rank < size)
        return 0;
    return error_status(err, STATUS_USAGE,
                        "%s: rank %lld does not exist; the job has ranks 0 to %d",
                        settings_place(settings, id), (long long)rank, size - 1);
}

/* The number of ranks: -np, otherwise that of the mapping, otherwise the number of the scheduler's
 * tasks, otherwise 0, which means all slots. */
static int wanted_np(const struct command_line *line, const struct place *place)
{
    if (line->apps.count > 1)
        return 0; /* each program has its own number */
    if (line->settings.np > 0)
        return (int)line->settings.np;
    if (mapping_has_size(&place->mapping))
        return 0;
    return place->allocated ? place->allocation.np : 0;
}

static int check_ranks(const struct settings *settings, int size, struct error *err)
{
    if (check_rank(settings, OPT_stdin_, settings->stdin_, size, err) < 0)
        return -1;
    return check_rank(settings, OPT_pty, settings->pty, size, err);
}

struct plan *place_plan(const struct command_line *line, struct place *place, bool late,
                        struct error *err)
{
    const struct settings *settings = &line->settings;
    place->request = (struct plan_request){.hosts = &place->hosts,
                                           .apps = &line->apps,
                                           .np = wanted_np(line, place),
                                           .oversubscribe = settings->oversubscribe,
                                           .mapping = &place->mapping};
    struct plan_request request = place->request;
    request.oversubscribe |= late; /* the hosts may have more slots than we know now */
    struct plan *plan = plan_create(&request, err);
    if (plan == NULL && place->allocated && err != NULL && err->status == STATUS_NO_SLOTS)
        error_wrap(err, "%s job%s%s", allocation_name(place->allocation.kind),
                   place->allocation.job_id == NULL ? "" : " ",
                   place->allocation.job_id == NULL ? "" : place->allocation.job_id);
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
        return error_status(err, STATUS_USAGE, "an elastic job runs one program, not %zu",
                            line->apps.count);
    if (settings->oversubscribe)
        return error_status(
            err, STATUS_USAGE,
            "%s: an elastic job cannot have more workers than slots; give the hosts more slots",
            settings_place(settings, OPT_oversubscribe));
    if (settings->pty >= 0)
        return error_status(
            err, STATUS_USAGE,
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
