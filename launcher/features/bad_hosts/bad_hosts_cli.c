/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves the hosts of --bad-hosts out of a host list before the job is planned. The driver does so
 * with hosts that it discovers. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/features.h"
#include "cli/sources.h"
#include "features/bad_hosts/bad_hosts.h"

#define SHOWN_MAX 5

hosts_leave bad_hosts_leave_out; /* cli/features.c names it */

/* Nothing was remembered yet. But a folder that does not exist is a mistake. */
static int check_folder(const char *path, const char *place, struct error *err)
{
    const char *slash = strrchr(path, '/');
    char *folder AUTO_FREE =
        slash == NULL ? mem_strdup(".") : mem_strndup(path, (size_t)(slash - path) + 1);
    if (access(folder, F_OK) == 0)
        return 0;
    return error_usage(err, "%s: the folder of %s does not exist", place, path);
}

static int read_list(const struct settings *settings, char **file, struct bad_host_list *out,
                     struct error *err)
{
    const char *path = settings->bad_hosts, *place = settings_place(settings, OPT_bad_hosts);
    struct buf text AUTO_BUF = BUF_INIT(BAD_HOSTS_FILE_MAX);
    struct error why = ERROR_INIT;
    if (text_file_read(path, settings->start_timeout, &text, &why) < 0) {
        if (why.errnum == ENOENT)
            return check_folder(path, place, err);
        return error_status(err, why.status, "%s: %s", place, why.text);
    }
    if (bad_hosts_parse(buf_text(&text), text.length, path, clock_wall_ns() / 1000000000, out,
                        err) < 0)
        return error_wrap(err, "%s", place);
    *file = buf_take(&text);
    return 0;
}

struct leaving {
    const struct bad_host_list *bad;
    struct buf *told;
    int count;
};

static bool is_bad(void *context, const char *name)
{
    struct leaving *leaving = context;
    const struct bad_host *host = bad_hosts_find(leaving->bad, name);
    if (host == NULL)
        return false;
    if (leaving->count < SHOWN_MAX) {
        buf_puts(leaving->told, leaving->count > 0 ? ", " : "");
        bad_hosts_describe(host, leaving->told);
    }
    leaving->count++;
    return true;
}

int bad_hosts_leave_out(const struct settings *settings, struct host_list *hosts, char **file,
                        struct buf *told, struct error *err)
{
    struct bad_host_list bad = {.count = 0};
    if (settings->bad_hosts == NULL)
        return 0;
    int result = read_list(settings, file, &bad, err);
    struct leaving leaving = {.bad = &bad, .told = told};
    if (result == 0 && bad.count > 0) {
        buf_printf(told, "%s leaves out ", settings->bad_hosts);
        hosts_leave_out(hosts, is_bad, &leaving);
    }
    if (leaving.count > SHOWN_MAX)
        buf_printf(told, " and %d more", leaving.count - SHOWN_MAX);
    if (leaving.count == 0)
        buf_clear(told);
    bad_hosts_destroy(&bad);
    return result;
}
