/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of torchrun, deepspeed and accelerate launch: the clock and the names of this machine. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/status.h"
#include "cli/features.h"
#include "features/torchrun/meeting_cli.h"
#include "features/torchrun/role.h"
#include "features/torchrun/translation.h"
#include "node/facts.h"

const char torchrun_feature[] = "lines of torchrun, deepspeed and accelerate launch";

line_translate torchrun_line;
line_hosts torchrun_hosts;

static bool has_file(const char *path)
{
    return access(path, R_OK) == 0;
}

int torchrun_line(char *const *words, char *const *envp, struct line *out, struct error *err)
{
    char text[64] = "";
    struct tm parts;
    struct buf stamp AUTO_BUF = BUF_INIT(sizeof(text) + 32);
    time_t now = time(NULL);
    if (localtime_r(&now, &parts) != NULL)
        strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &parts);
    buf_printf(&stamp, "%s-%d", text, (int)getpid());
    struct line_machine machine = {buf_text(&stamp), has_file};
    return translate_line(words, envp, &machine, out, err);
}

static int refuse_copies(const struct line_nodes *nodes, size_t hosts, struct error *err)
{
    return error_status(err, STATUS_USAGE,
                        "the line wants %d hosts, and hvdrun knows %zu, so it does not wait for "
                        "others at %s:%d; name all hosts, or none with --scheduler none",
                        nodes->max, hosts, nodes->meeting_host, nodes->meeting_port);
}

int torchrun_hosts(const struct command_line *line, struct host_list *hosts, struct error *err)
{
    const struct line_nodes *nodes = &line->nodes;
    size_t count = hosts->count;
    if (nodes->max == 0 || count == 0)
        return 0; /* the job looks for them while it runs */
    if (line->dials)
        return meeting_go(line, err);
    bool here = nodes->meeting_host != NULL && is_local_obviously(nodes->meeting_host) == LOCAL_YES;
    switch (role_of(nodes, count, here)) {
    case ROLE_DRIVER:
    case ROLE_DIAL: return refuse_copies(nodes, count, err);
    case ROLE_WRONG:
        return error_status(err, STATUS_USAGE,
                            "the line wants %d host%s, and hvdrun knows %zu; name them before the "
                            "launcher, with -H or --hostfile%s",
                            nodes->min, nodes->min == 1 ? "" : "s", count,
                            strcmp(nodes->launcher, "torchrun") != 0
                                ? ""
                                : "; or give --rdzv-endpoint HOST:PORT, and start the line on "
                                  "each host");
    case ROLE_ALONE: break;
    }
    if (nodes->rank > 0 && nodes->is_first <= 0)
        return error_status(err, STATUS_USAGE,
                            "the line is that of host %d: start hvdrun once, for all hosts, with "
                            "rank 0 or none; or on each host, without -H and with --scheduler "
                            "none",
                            nodes->rank);
    if (nodes->min == nodes->max && !nodes->reserve)
        hosts_keep(hosts, (size_t)nodes->max);
    return 0;
}
