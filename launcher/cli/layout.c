/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/layout.h"

#include "base/buf.h"
#include "base/status.h"
#include "cli/text_file.h"
#include "model/plan/rankfile.h"

#define RANKFILE_MAX ((size_t)512 << 20)

static int read_rankfile(const struct settings *settings, struct mapping *out, struct error *err)
{
    const char *path = settings->rankfile;
    AUTO_BUF struct buf bytes = BUF_INIT(RANKFILE_MAX);
    if (text_file_read(path, settings->start_timeout, &bytes, err) < 0)
        return error_wrap(err, "%s", settings_place(settings, OPT_rankfile));
    return rankfile_parse(buf_text(&bytes), bytes.length, path, &out->list, err);
}

/* Only one option may say where each rank goes. */
static int check_one(const struct settings *settings, const struct mapping *mapping,
                     struct error *err)
{
    if (settings->rankfile == NULL || mapping->rule == MAP_SLOT)
        return 0;
    return error_status(
        err, STATUS_USAGE, "%s and %s both say where each rank runs; give one of them",
        settings_place(settings, OPT_map_by), settings_place(settings, OPT_rankfile));
}

int layout_read(const struct settings *settings, struct mapping *out, struct error *err)
{
    if (settings->map_by != NULL && mapping_parse(settings->map_by, out, err) < 0)
        return error_wrap(err, "%s", settings_place(settings, OPT_map_by));
    if (check_one(settings, out, err) < 0)
        return -1;
    if (out->cpus_per_proc > 0 && settings->cpus_per_proc > 0 &&
        out->cpus_per_proc != settings->cpus_per_proc)
        return error_status(err, STATUS_USAGE,
                            "%s sets %d cores for each worker, but %s sets %lld; give one of them",
                            settings_place(settings, OPT_map_by), out->cpus_per_proc,
                            settings_place(settings, OPT_cpus_per_proc),
                            (long long)settings->cpus_per_proc);
    if (settings->rankfile == NULL)
        return 0;
    out->rule = MAP_LIST;
    return read_rankfile(settings, out, err);
}

bool layout_hosts(const struct mapping *mapping, struct host_list *hosts)
{
    if (mapping->rule == MAP_PPR)
        hosts_add(hosts, "localhost", mapping->per_node, true);
    for (size_t i = 0; mapping->rule == MAP_LIST && i < mapping->list.names.count; i++) {
        const struct host *host = &mapping->list.names.items[i];
        hosts_add(hosts, host->name, host->slots, true);
    }
    return hosts->count > 0;
}

int layout_check_elastic(const struct settings *settings, struct error *err)
{
    struct mapping mapping = {.rule = MAP_SLOT};
    int result = layout_read(settings, &mapping, err);
    bool other = result == 0 && (mapping.rule != MAP_SLOT || mapping.cpus_per_proc > 0);
    enum option_id option = settings->rankfile != NULL ? OPT_rankfile : OPT_map_by;
    if (other)
        result = error_status(
            err, STATUS_USAGE,
            "%s: the workers of an elastic job always fill the slots of its hosts in order; use "
            "--map-by slot (with --cpus-per-proc for cores), or leave the option out",
            settings_place(settings, option));
    mapping_destroy(&mapping);
    return result;
}
