/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"

#define HOSTFILE_MAX ((size_t)256 << 20)
#define PATH_ROOM 4096

static int read_hostfile(const char *path, struct host_list *hosts, struct error *err)
{
    AUTO_BUF struct buf bytes = BUF_INIT(HOSTFILE_MAX);
    if (fd_read_file(path, &bytes, err) < 0) {
        if (err != NULL)
            err->status = STATUS_USAGE;
        return -1;
    }
    return hosts_parse_file(buf_text(&bytes), bytes.length, path, hosts, err);
}

/* The hosts as given; without any, this machine with as many slots as workers are wanted. */
static int read_hosts(const struct command_line *line, struct host_list *hosts, struct error *err)
{
    const struct settings *settings = &line->settings;
    if (settings->hosts != NULL)
        return hosts_parse(settings->hosts, hosts, err);
    if (settings->hostfile != NULL)
        return read_hostfile(settings->hostfile, hosts, err);
    hosts_add(hosts, "localhost", settings->np > 0 ? (int)settings->np : 1, true);
    return 0;
}

/* A rank named by an option must exist. */
static int check_rank(const struct settings *settings, enum option_id id, int64_t rank, int size,
                      struct error *err)
{
    if (rank < size)
        return 0;
    return error_status(err, STATUS_USAGE, "%s: there is no rank %lld among %d workers",
                        settings_place(settings, id), (long long)rank, size);
}

struct plan *place_plan(const struct command_line *line, struct error *err)
{
    const struct settings *settings = &line->settings;
    struct host_list hosts = {.count = 0};
    struct plan *plan = NULL;
    if (read_hosts(line, &hosts, err) == 0) {
        struct plan_request request = {.hosts = &hosts,
                                       .apps = &line->apps,
                                       .np = line->apps.count > 1 ? 0 : (int)settings->np,
                                       .oversubscribe = settings->oversubscribe};
        plan = plan_create(&request, err);
    }
    hosts_destroy(&hosts);
    if (plan == NULL)
        return NULL;
    if (check_rank(settings, OPT_stdin_, settings->stdin_, plan->size, err) < 0 ||
        check_rank(settings, OPT_pty, settings->pty, plan->size, err) < 0) {
        plan_destroy(plan);
        return NULL;
    }
    return plan;
}

int place_elastic_hosts(const struct command_line *line, struct host_list *hosts, struct error *err)
{
    const struct settings *settings = &line->settings;
    if (line->apps.count > 1)
        return error_status(err, STATUS_USAGE, "an elastic job runs one program, not %zu",
                            line->apps.count);
    if (settings->oversubscribe)
        return error_status(err, STATUS_USAGE,
                            "%s: an elastic job has as many workers as its hosts have slots; give "
                            "them more slots",
                            settings_place(settings, OPT_oversubscribe));
    if (settings->pty >= 0)
        return error_status(err, STATUS_USAGE,
                            "%s: the workers of an elastic job come and go, and cannot have the "
                            "terminal",
                            settings_place(settings, OPT_pty));
    if (settings->host_discovery_script != NULL || settings->hosts_watch != NULL)
        return 0;
    return read_hosts(line, hosts, err);
}

int place_output_folder(const struct settings *settings, struct error *err)
{
    if (settings->output_filename == NULL)
        return 0;
    char *path AUTO_FREE = mem_strdup(settings->output_filename);
    char *pattern = strchr(path, '%');
    if (pattern != NULL) { /* a pattern: what stands before its first changing part */
        *pattern = '\0';
        char *slash = strrchr(path, '/');
        path[slash == NULL ? 0 : slash - path] = '\0';
    }
    for (char *end = path; *end != '\0';) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        char kept = *end;
        *end = '\0';
        int errnum = mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : errno;
        if (errnum != 0) {
            error_errno(err, errnum, "cannot make the folder %s for --output-filename", path);
            err->status = STATUS_USAGE;
            return -1;
        }
        *end = kept;
    }
    return 0;
}

char *place_modules(void)
{
    char path[PATH_ROOM];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[length > 0 ? length : 0] = '\0';
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
    const char *pwd = getenv("PWD"); /* the name that the user sees, through links */
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
