/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of torchrun, deepspeed and accelerate launch: the clock, the hosts and the names of this
 * machine.
 *
 * Copies of one line, which a scheduler or the user starts on each host, become one job. The copy
 * at the meeting address is the driver, as if its line had --transport dial with all hosts. The
 * others become agents that dial in (agent_main/dial_out.h). They first look at the line as the
 * driver does, so that each copy says at once what is wrong with it.
 *
 * A copy is such a one if nothing names hosts: no option, and no scheduler but a step of srun with
 * several tasks. Of several copies on the machine of the address, the first is the driver.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/status.h"
#include "cli/command_line.h"
#include "cli/features.h"
#include "cli/place.h"
#include "features/torchrun/translation.h"
#include "io/dial_ends.h"
#include "model/allocation/slurm.h"
#include "model/plan/mapping.h"
#include "node/facts.h"
#include "node/gpus.h"

const char torchrun_feature[] = "lines of torchrun, deepspeed and accelerate launch";

line_translate torchrun_line;
line_hosts torchrun_hosts;
line_meet torchrun_meet;

enum {
    JOIN_SECONDS = 600, /* as torchrun's join_timeout */
    LOOKUP_MS = 8000,
    AGAIN_MS = 1000,
    LAST_CALL_MS = 30000, /* as its last_call_timeout */
};

#define ID_USUAL "none" /* as torchrun's */

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

/* The copies of one line */

static bool may_meet(const struct settings *settings, char *const *env)
{
    const char *file = NULL;
    bool named = settings->hosts != NULL || settings->hostfile != NULL ||
                 settings->rankfile != NULL || settings->host_discovery_script != NULL ||
                 settings->hosts_watch != NULL;
    bool other = settings->launch_agent != NULL || (settings->transport != SET_TRANSPORT_AUTO &&
                                                    settings->transport != SET_TRANSPORT_DIAL);
    return !named && !other &&
           (settings->scheduler == SET_SCHEDULER_NONE || allocation_slurm_twin(env) >= 0 ||
            allocation_detect(env, &file) == ALLOCATION_NONE);
}

/* What the line says, or the user of hvdrun. */
static int64_t join_seconds(const struct command_line *line)
{
    if (line->nodes.join_seconds > 0)
        return line->nodes.join_seconds;
    if (settings_is_set(&line->settings, OPT_start_timeout))
        return (line->settings.start_timeout + 999) / 1000;
    return JOIN_SECONDS;
}

/* "HOST:PORT"; the caller frees it. */
static char *server_of(const struct line_nodes *nodes)
{
    return mem_printf(strchr(nodes->meeting_host, ':') == NULL ? "%s:%d" : "[%s]:%d",
                      nodes->meeting_host, nodes->meeting_port);
}

static const char *id_of(const struct command_line *line)
{
    const char *id = line->nodes.meeting_id;
    if (line->settings.dial_id != NULL)
        return line->settings.dial_id;
    return id != NULL ? id : ID_USUAL;
}

/* Is one of these this machine? They are "10.0.0.1:4000" or "[fd00::1]:4000". */
static bool has_own(const struct strv *addresses)
{
    for (size_t i = 0; i < addresses->count; i++) {
        const char *text = addresses->items[i], *colon = strrchr(text, ':');
        bool bracketed = text[0] == '[';
        size_t length = colon == NULL ? strlen(text) : (size_t)(colon - text);
        char *address AUTO_FREE = mem_strndup(text + bracketed, length - 2 * (size_t)bracketed);
        if (is_local_obviously(address) == LOCAL_YES)
            return true;
    }
    return false;
}

/* The name of a pod exists only when it runs, so a look-up that fails is done again. 1 or 0. -1: it
 * has no address for so long. */
static int is_here(const struct command_line *line, struct error *err)
{
    char *server AUTO_FREE = server_of(&line->nodes);
    const int64_t until = clock_mono_ms() + join_seconds(line) * 1000;
    bool told = line->settings.quiet;
    enum local_answer answer = is_local_obviously(line->nodes.meeting_host);
    if (answer != LOCAL_UNKNOWN)
        return answer == LOCAL_YES;
    for (;;) {
        struct strv found AUTO_STRV = STRV_INIT;
        struct error why = ERROR_INIT;
        int64_t left = until - clock_mono_ms();
        if (dial_lookup(server, left < LOOKUP_MS ? left : LOOKUP_MS, &found, &why) == 0)
            return has_own(&found);
        if (clock_mono_ms() + AGAIN_MS >= until)
            return error_status(err, STATUS_LAUNCHER,
                                "%s; the copies of this line meet there, so all hosts must know it",
                                why.text);
        if (!told)
            fprintf(stderr, "hvdrun: waiting for the host of the driver: %s\n", why.text);
        told = true;
        poll(NULL, 0, AGAIN_MS);
    }
}

/* The kernel lets one copy on this machine have the name, until that one ends. The port itself is
 * opened only later. Its scope is that of ports, too: the network namespace. */
static bool is_first_here(int port, const char *id)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int length =
        snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "hvdrun-meeting-%d-%lu-%016llx",
                 port, (unsigned long)geteuid(), (unsigned long long)hash_of_bytes(id, strlen(id)));
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (fd < 0 || bind(fd, (struct sockaddr *)&name, size) == 0 || errno != EADDRINUSE)
        return true; /* the descriptor stays open */
    fd_close(&fd);
    return false;
}

/* What each copy says of itself */

#define COPY_MAX 1000

/* No file here lists GPUs, but there is a driver: the agent asks nvidia-smi. */
static bool agent_counts(enum map_each each)
{
    struct device_list gpus;
    gpus_list("", &gpus);
    bool unlisted = gpus.count == 0;
    device_list_destroy(&gpus);
    return each != MAP_EACH_CPU && unlisted && gpus_have_control("");
}

/* How many ranks the line wants on this host. 0: only its agent knows. */
static int read_slots(struct command_line *line, struct mapping *mapping, struct error *err)
{
    const struct settings *settings = &line->settings;
    if (settings->map_by != NULL && mapping_parse(settings->map_by, mapping, err) < 0)
        return -1;
    line->nodes.slots = mapping->per_node;
    if (mapping->each == MAP_EACH_NUMBER || agent_counts(mapping->each))
        return 0;
    line->nodes.slots = place_count(mapping->each);
    return line->nodes.slots == 0 && settings->dry_run == SET_DRY_RUN_NO
               ? error_status(err, STATUS_NO_SLOTS,
                              "%s: this machine has no GPU that hvdrun can see; write a number",
                              settings_place(settings, OPT_map_by))
               : 0;
}

/* The hosts and the program. A long text is cut, and ends with a hash of the whole. */
static char *copy_of(const struct command_line *line)
{
    const struct line_nodes *nodes = &line->nodes;
    struct buf text AUTO_BUF = BUF_INIT((size_t)8 << 20);
    buf_printf(&text, nodes->min < nodes->max ? "--nnodes %d:%d" : "--nnodes %d", nodes->min,
               nodes->max);
    for (size_t i = 0; line->apps.count > 0 && i < line->apps.items[0].argv.count; i++)
        buf_printf(&text, " %s", line->apps.items[0].argv.items[i]);
    if (text.length <= COPY_MAX)
        return mem_strdup(buf_text(&text));
    return mem_printf("%.*s... (%016llx)", COPY_MAX, buf_text(&text),
                      (unsigned long long)hash_of_bytes(buf_text(&text), text.length));
}

/* The driver */

__attribute__((format(printf, 4, 5))) static int
give(struct command_line *line, enum option_id option, struct error *err, const char *format, ...)
{
    va_list args;
    struct buf text AUTO_BUF = BUF_INIT(4096);
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    return settings_set(&line->settings, option, buf_text(&text), SOURCE_FLAG, line->nodes.launcher,
                        err);
}

/* A word such as "gpu" is counted on each host; the copies there say so before the last plan. */
static int set_hosts(struct command_line *line, const struct mapping *mapping, struct error *err)
{
    struct settings *settings = &line->settings;
    int slots = line->nodes.slots, others = line->nodes.max - 1;
    bool alike = mapping->each == MAP_EACH_NUMBER || settings->dry_run != SET_DRY_RUN_NO;
    if (settings_is_elastic(settings) || slots == 0)
        return give(line, OPT_hosts, err, "localhost,node-[1-%d]", others);
    settings_reset(settings, OPT_map_by);
    if (mapping->cpus_per_proc > 0 &&
        give(line, OPT_map_by, err, "slot:PE=%d", mapping->cpus_per_proc) < 0)
        return -1;
    return alike ? give(line, OPT_hosts, err, "localhost:%d,node-[1-%d]:%d", slots, others, slots)
                 : give(line, OPT_hosts, err, "localhost:%d,node-[1-%d]", slots, others);
}

static int set_driver(struct command_line *line, struct error *err)
{
    struct settings *settings = &line->settings;
    const struct line_nodes *nodes = &line->nodes;
    struct mapping mapping = {.rule = MAP_SLOT};
    enum option_id wait = settings_is_elastic(settings) ? OPT_elastic_timeout : OPT_start_timeout;
    if (read_slots(line, &mapping, err) < 0 || set_hosts(line, &mapping, err) < 0)
        return -1;
    line->nodes.copy = copy_of(line);
    if (nodes->last_call_ms == 0)
        line->nodes.last_call_ms = LAST_CALL_MS;
    if (give(line, OPT_transport, err, "dial") < 0 || give(line, OPT_scheduler, err, "none") < 0 ||
        give(line, OPT_dial_port, err, "%d", nodes->meeting_port) < 0 ||
        give(line, OPT_dial_id, err, "%s", id_of(line)) < 0)
        return -1;
    if ((!settings_is_set(settings, wait) || nodes->join_seconds > 0) &&
        give(line, wait, err, "%llds", (long long)join_seconds(line)) < 0)
        return -1;
    if (settings->master_port == nodes->meeting_port) /* the agents come in there */
        settings_reset(settings, OPT_master_port);
    settings->dial_open = settings->dial_secret == NULL;
    if (settings->dial_open)
        strv_printf(&line->warnings,
                    "without a secret (HVDRUN_DIAL_SECRET=FILE), whoever knows the rendezvous id "
                    "(%s) and reaches port %d can join this job",
                    id_of(line), nodes->meeting_port);
    return 0;
}

/* The others */

/* Returns only if there is no hvdrun-agent: -1. */
static int meeting_go(const struct command_line *line, struct error *err)
{
    const struct line_nodes *nodes = &line->nodes;
    const struct settings *settings = &line->settings;
    struct strv words AUTO_STRV = STRV_INIT;
    char *modules AUTO_FREE = place_modules(), *server AUTO_FREE = server_of(nodes);
    strv_printf(&words, "%s/hvdrun-agent", modules);
    strv_printf(&words, "--dial=%s", server);
    strv_printf(&words, "--dial-id=%s", id_of(line));
    strv_printf(&words, "--start-timeout=%llds", (long long)join_seconds(line));
    strv_printf(&words, "--line=%s", nodes->copy);
    if (nodes->slots > 0)
        strv_printf(&words, "--slots=%d", nodes->slots);
    if (nodes->rank > 0)
        strv_printf(&words, "--name=node-%d", nodes->rank);
    else
        strv_add(&words, "--name=auto");
    if (settings->dial_secret != NULL)
        strv_printf(&words, "--dial-secret=%s", settings->dial_secret);
    else
        strv_add(&words, "--no-secret");
    if (settings->dial_secret == NULL && !settings->quiet)
        fprintf(stderr,
                "hvdrun: without a secret (HVDRUN_DIAL_SECRET=FILE), whoever answers at %s and "
                "knows the rendezvous id (%s) can start programs here\n",
                server, id_of(line));
    execve(words.items[0], strv_items(&words), environ);
    return error_errno(err, errno, "cannot start %s", words.items[0]);
}

int torchrun_meet(struct command_line *line, char *const *env, struct error *err)
{
    const struct line_nodes *nodes = &line->nodes;
    enum role role = role_of(nodes, 1, true);
    if ((role != ROLE_DRIVER && role != ROLE_DIAL) || !may_meet(&line->settings, env))
        return 0;
    if (nodes->rank >= nodes->max)
        return error_usage(err, "%s: the line has hosts 0 to %d, and this is host %d",
                           nodes->launcher, nodes->max - 1, nodes->rank);
    bool shows = line->settings.dry_run != SET_DRY_RUN_NO;
    if (shows)
        return set_driver(line, err);
    if (role_of(nodes, 1, false) != role) { /* the address says it */
        int here = is_here(line, err);
        if (here < 0)
            return -1;
        role =
            here > 0 && is_first_here(nodes->meeting_port, id_of(line)) ? ROLE_DRIVER : ROLE_DIAL;
    }
    line->dials = role == ROLE_DIAL;
    return set_driver(line, err);
}

/* The hosts that hvdrun knows */

static int refuse_copies(const struct line_nodes *nodes, size_t hosts, struct error *err)
{
    return error_usage(err,
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
        return error_usage(err,
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
        return error_usage(err,
                           "the line is that of host %d: start hvdrun once, for all hosts, with "
                           "rank 0 or none; or on each host, without -H and with --scheduler "
                           "none",
                           nodes->rank);
    if (nodes->min == nodes->max && !nodes->reserve)
        hosts_keep(hosts, (size_t)nodes->max);
    return 0;
}
