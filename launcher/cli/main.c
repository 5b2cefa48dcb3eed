/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvdrun: command line in, exit status out. It checks everything that it can before it starts the
 * first process. It forks the agents before it makes anything that a fork would break.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/agent_config.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/status.h"
#include "base/strv.h"
#include "cli/command_line.h"
#include "cli/control.h"
#include "cli/features.h"
#include "cli/first_word.h"
#include "cli/forks.h"
#include "cli/place.h"
#include "cli/sources.h"
#include "cli/texts.h"
#include "driver/control/folder.h"
#include "driver/driver.h"
#include "driver/reach/ways.h"
#include "driver/tell/json_text.h"
#include "driver/tell/tell.h"
#include "model/env/horovod.h"
#include "model/env/scrub.h"
#include "model/exit/signal_rules.h"
#include "model/settings/settings.h"
#include "node/facts.h"
#include "transport/transport.h"

#define TEXT_MAX ((size_t)1 << 30)

extern char **environ;

static int fail(const struct error *err)
{
    if (err->text[0] != '\0') /* otherwise another process of this job prints the error */
        fprintf(stderr, "hvdrun: %s\n", err->text);
    return err->status != 0 ? err->status : STATUS_LAUNCHER;
}

/* Returns the exit status. -1: an error. */
static int print_text(const struct buf *text)
{
    bool written = fd_write_all(STDOUT_FILENO, buf_text(text), text->length) == 0;
    if (!written && errno != EPIPE) {
        fprintf(stderr, "hvdrun: cannot write: %s\n", strerror(errno));
        return STATUS_LAUNCHER;
    }
    return 0;
}

static int dry_run(const struct command_line *line, struct place *place, struct error *err)
{
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);
    struct plan *plan = place_plan(line, place, false, err);
    if (plan == NULL)
        return -1;
    int result = line->settings.dry_run == SET_DRY_RUN_JSON
                     ? dry_run_json(plan, &line->apps, &text)
                     : dry_run_table(plan, &line->apps, &text);
    plan_destroy(plan);
    return result < 0 ? error_set(err, "the plan is too large to print") : print_text(&text);
}

/* What main knows about the job to start. */
struct launch {
    int64_t begun_ns;
    char *const *argv;
    const struct command_line *line;
    struct place *place;
};

struct agent_start {
    const char *module_dir;
    const sigset_t *mask;
    struct process_title title;
};

/* Without a title of its own, ps shows the agent as a second launcher. */
static int agent_main(void *context, const char *host, int fd)
{
    struct agent_start *start = context;
    char *title AUTO_FREE = mem_printf("hvdrun: agent of %s", host);
    process_title_set(&start->title, title);
    struct agent_config config = {.read_fd = fd,
                                  .write_fd = fd,
                                  .module_dir = start->module_dir,
                                  .mask = start->mask,
                                  .driver_pid = getppid(),
                                  .keeper_fd = -1};
    return agent_run(&config);
}

/* Starts the agents on this machine. The driver's transports start the others. */
static int start_agents(const struct settings *settings, const struct allocation *allocation,
                        const struct plan *plan, struct agent_start *start,
                        struct transport_stream *streams, struct error *err)
{
    struct local_agent local = {agent_main, start};
    bool asked = false;
    for (int i = 0; i < plan->node_count; i++) {
        streams[i] = (struct transport_stream){.read_fd = -1, .write_fd = -1};
        const struct plan_node *node = &plan->nodes[i];
        if (!way_is_here(settings, allocation, node->name, &node->traits))
            continue;
        bool taken = !asked && features_agent_here(settings, start->module_dir, &streams[i]);
        asked = true; /* it is one agent */
        if (!taken && local_fork(&local, node->name, &streams[i], err) < 0)
            return -1;
    }
    return 0;
}

/* What workers of this host, or of others, get of our environment (model/env/scrub.h). */
static void inherit(const struct settings *settings, bool same_host, struct strv *out)
{
    env_scrub(environ, same_host, settings->no_env, out);
    if (settings->keep_scheduler_env)
        env_scrub_scheduler(environ, out);
}

/* An elastic job has no plan, and starts its agents when it needs them. `late`: the driver must
 * plan again with place->request. */
static int run_job(const struct launch *launch, const struct plan *plan, bool late,
                   struct error *err)
{
    const struct command_line *line = launch->line;
    const struct settings *settings = &line->settings;
    const struct place *place = launch->place;
    int lock_fd AUTO_FD = -1, started_fd AUTO_FD = -1, status = 0;
    if (settings->detach && job_folder_check(err) < 0)
        return error_wrap(err,
                          "--detach needs a folder for the log and the record of the job (TMPDIR "
                          "sets it)");
    if (settings->detach) {
        enum detach_side side = detach_fork(&started_fd, &status, err);
        if (side != DETACH_CHILD)
            return side == DETACH_PARENT ? status : -1;
    }
    if (job_files_open(settings, !line->check.wanted, &lock_fd, err) < 0)
        return -1;
    char *module_dir AUTO_FREE = place_modules();
    struct transport_stream *streams AUTO_FREE =
        mem_array(plan == NULL ? 0 : (size_t)plan->node_count, sizeof(*streams));
    bool allocated = place->allocation.kind != ALLOCATION_NONE;
    const struct allocation *allocation = allocated ? &place->allocation : NULL;
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    struct agent_start start = {module_dir, &mask, process_title_of(launch->argv, environ)};
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* before the first agent, for all of them (D6) */
    /* Before everything that only the driver needs, so that the agents start meanwhile. */
    if (plan != NULL && start_agents(settings, allocation, plan, &start, streams, err) < 0)
        return -1;
    struct strv base AUTO_STRV = STRV_INIT, away AUTO_STRV = STRV_INIT, knobs AUTO_STRV = STRV_INIT;
    inherit(settings, true, &base);
    inherit(settings, false, &away);
    horovod_env_build(settings, &knobs);
    horovod_env_package(settings, module_dir, &knobs);
    char *agent_path AUTO_FREE = mem_printf("%s/hvdrun-agent", module_dir);
    char *ssh_module AUTO_FREE = mem_printf("%s/hvdrun-ssh.so", module_dir);
    char *tls_module AUTO_FREE = mem_printf("%s/hvdrun-tls.so", module_dir);
    char *here AUTO_FREE = place_here();
    char *job_id AUTO_FREE = place_job_id();
    struct check_request check = {.net = line->check.net,
                                  .json = line->check.json,
                                  .gpu = line->check.gpu,
                                  .python = line->check.python};
    struct job_request request = {.settings = settings,
                                  .apps = &line->apps,
                                  .check = line->check.wanted ? &check : NULL,
                                  .plan = plan,
                                  .late = late ? &place->request : NULL,
                                  .hosts = &place->hosts,
                                  .copy = line->nodes.copy,
                                  .bad_hosts = place->bad_hosts,
                                  .gather_ms = line->nodes.last_call_ms,
                                  .allocation = allocation,
                                  .base_env = &base,
                                  .away_env = &away,
                                  .knobs = &knobs,
                                  .warnings = &line->warnings,
                                  .job_id = job_id,
                                  .argv = launch->argv,
                                  .streams = plan == NULL ? NULL : streams,
                                  .agent_path = agent_path,
                                  .ssh_module = ssh_module,
                                  .tls_module = tls_module,
                                  .wdir = here,
                                  .begun_ns = launch->begun_ns,
                                  .started_fd = started_fd};
    started_fd = -1; /* the driver closes it */
    return driver_run(&request, err);
}

/* Prints --help, --version, --check-build or --show-config. -1: the command line has none of them.
 */
static int about(const struct command_line *line)
{
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);
    if (line->settings.help && line->check.wanted)
        check_words_help(&text);
    else if (line->settings.help && line->line_help != NULL)
        (void)buf_puts(&text, line->line_help);
    else if (line->settings.help && line->help_all)
        help_text(&text);
    else if (line->settings.help)
        help_short(&text);
    else if (line->settings.check_build)
        check_build_text(&text);
    else if (line->settings.show_config)
        show_config_text(&line->settings, &text);
    else if (line->settings.version || (line->apps.count == 0 && !line->check.wanted)) {
        char *module_dir AUTO_FREE = place_modules();
        version_text(module_dir, &text);
    } else {
        return -1;
    }
    /* The warnings may explain why an option does not have the value that the user expects. */
    for (size_t i = 0; line->settings.show_config && i < line->warnings.count; i++)
        fprintf(stderr, "hvdrun: %s\n", line->warnings.items[i]);
    return print_text(&text);
}

static int run_elastic(const struct launch *launch, struct error *err)
{
    const struct settings *settings = &launch->line->settings;
    if (settings->dry_run != SET_DRY_RUN_NO && launch->place->hosts.count == 0)
        return error_usage(err,
                           "%s: hvdrun learns the hosts of this job only when the job runs; name "
                           "them with -H or --hostfile",
                           settings_place(settings, OPT_dry_run));
    if (settings->dry_run != SET_DRY_RUN_NO) /* the plan with all hosts up */
        return dry_run(launch->line, launch->place, err);
    return run_job(launch, NULL, false, err);
}

/* `hvdrun check`: its hosts need not be enough for a job. */
static int run_check(const struct launch *launch, struct error *err)
{
    if (launch->place->hosts.count > 0)
        return run_job(launch, NULL, false, err);
    return error_usage(err,
                       "hvdrun check does not read --host-discovery-script or --hosts-watch: name "
                       "the hosts with -H or --hostfile");
}

static int run_static(const struct launch *launch, struct error *err)
{
    const struct command_line *line = launch->line;
    if (line->settings.dry_run != SET_DRY_RUN_NO)
        return dry_run(line, launch->place, err);
    bool late = place_is_vague(launch->place) || line->nodes.copy != NULL;
    int result = -1;
    struct plan *plan = place_plan(line, launch->place, late, err);
    if (plan != NULL)
        result = run_job(launch, plan, late, err);
    plan_destroy(plan);
    return result;
}

#define NAME_MAX_LENGTH 64

static int check_name(const struct settings *settings, struct error *err)
{
    const char *name = settings->job_name;
    size_t length = name == NULL ? 0 : strlen(name);
    if (name == NULL || (length <= NAME_MAX_LENGTH && name_is_safe(name, length)))
        return 0;
    return error_usage(err,
                       "%s: '%s' is not a name for a job: expected at most %d letters, digits and "
                       "._:-",
                       settings_place(settings, OPT_job_name), name, NAME_MAX_LENGTH);
}

/* A detached job has neither a terminal for its result nor one for a rank. */
static int check_detach(const struct command_line *line, struct error *err)
{
    const struct settings *settings = &line->settings;
    if (settings->detach && (line->check.wanted || settings->pty >= 0))
        return error_usage(err, "--detach cannot be combined with %s",
                           line->check.wanted ? "hvdrun check" : "--pty RANK");
    if (settings->detach && settings->log_size <= 0)
        return error_usage(err, "--detach: a detached job needs a log, so --log-size cannot be 0");
    return 0;
}

/* --local-addr of torchrun is for the machine on which torchrun was started. */
static void take_own_address(struct command_line *line, const struct host_list *hosts)
{
    const char *address = line->own_address;
    if (address != NULL && hosts->count > 0 &&
        is_local_obviously(hosts->items[0].name) == LOCAL_YES &&
        strv_env_get(&line->settings.env, "MASTER_ADDR") == NULL)
        strv_env_set(&line->settings.env, "MASTER_ADDR", address);
}

static int run_tool(tool_run *tool, char *const *words, struct error *err)
{
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);
    if (tool(words, &text, err) < 0)
        return -1;
    int failed = print_text(&text);
    return failed < 0 ? 0 : failed;
}

static int check_now(void *context, const struct command_line *line, struct error *err)
{
    const struct launch *launch = context;
    return run_check(&(struct launch){launch->begun_ns, launch->argv, line, launch->place}, err);
}

static int leave_out_ill(struct launch *launch, struct buf *told, struct error *err)
{
    const struct settings *settings = &launch->line->settings;
    if (!settings->leave_out_bad || settings->dry_run != SET_DRY_RUN_NO)
        return 0;
    if (settings->transport == SET_TRANSPORT_DIAL)
        return error_usage(err,
                           "%s: an agent that dials in does so once, for the job and not for a "
                           "check before it",
                           settings_place(settings, OPT_leave_out_bad));
    if (launch->place->hosts.count > 0)
        return preflight_leave_out(launch->line, check_now, launch, &launch->place->hosts, told,
                                   err);
    return error_usage(err,
                       "%s: hvdrun learns the hosts of this job only when the job runs; name them "
                       "with -H or --hostfile",
                       settings_place(settings, OPT_leave_out_bad));
}

/* A dry run starts no driver, which would print the warnings. */
static int leave_out(struct launch *launch, struct command_line *line, struct error *err)
{
    struct place *place = launch->place;
    struct buf told AUTO_BUF = BUF_INIT(TEXT_MAX);
    int before = hosts_slots(&place->hosts);
    if (features_leave_out(&line->settings, &place->hosts, &place->bad_hosts, &told, err) < 0)
        return -1;
    place->remedy =
        told.length > 0 ? "delete the lines of hosts that are well again" : "mend these hosts";
    if (leave_out_ill(launch, &told, err) < 0)
        return -1;
    place->left_out = told.length > 0 ? buf_take(&told) : NULL;
    if (place_suffices(line, place, before, err) < 0)
        return -1;
    if (place->left_out != NULL && line->settings.dry_run != SET_DRY_RUN_NO)
        fprintf(stderr, "hvdrun: %s\n", place->left_out);
    else if (place->left_out != NULL)
        strv_add(&line->warnings, place->left_out);
    return 0;
}

/* Finds the hosts, and checks what depends on them before anything starts. */
static int settle(struct launch *launch, struct command_line *line, struct error *err)
{
    struct place *place = launch->place;
    struct signal_rules rules; /* the driver makes its own */
    if (place_open(line, environ, place, err) < 0 ||
        features_line_hosts(line, &place->hosts, err) < 0 ||
        (!line->check.wanted && leave_out(launch, line, err) < 0))
        return -1;
    take_own_address(line, &place->hosts);
    return signal_rules_from(&line->settings, place->allocation.kind == ALLOCATION_SLURM, &rules,
                             err);
}

static int run(int64_t begun_ns, int argc, char **argv, struct command_line *line,
               struct error *err)
{
    bool own = launcher_line_name(argv[0]) == NULL;
    int skipped = own && argc > 1 && strcmp(argv[1], "run") == 0; /* as without that word */
    tool_run *tool = NULL;
    if (own && argc > 1 && features_tool(argv[1], &tool, err) < 0)
        return -1;
    if (tool != NULL)
        return run_tool(tool, argv + 2, err);
    if ((own && first_word_check(argc - skipped, argv + skipped, getenv("PATH"), err) < 0) ||
        command_line_parse(argc - skipped, argv + skipped, environ, line, err) < 0 ||
        features_check_options(&line->settings, err) < 0 ||
        (line->check.wanted && features_allow_check(err) < 0) ||
        check_name(&line->settings, err) < 0 || check_detach(line, err) < 0)
        return -1;
    int result = about(line);
    if (result >= 0)
        return result;
    if (features_line_meet(line, environ, err) < 0)
        return -1;
    bool elastic = settings_is_elastic(&line->settings) && !line->check.wanted;
    if (elastic && place_check_elastic(line, err) < 0)
        return -1;
    struct place place = {.allocated = false};
    struct launch launch = {begun_ns, argv, line, &place};
    result = settle(&launch, line, err);
    if (result == 0)
        result = line->check.wanted ? run_check(&launch, err)
                 : elastic          ? run_elastic(&launch, err)
                                    : run_static(&launch, err);
    place_close(&place);
    return result;
}

/* If stdin, stdout or stderr is closed, a descriptor of our own must not get its number. */
static void open_standard_streams(void)
{
    int fd;
    do {
        fd = fd_open("/dev/null", O_RDWR, 0);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    int64_t begun_ns = clock_mono_ns();
    open_standard_streams();
    json_memory_init();
    char *help[4];
    struct error err = ERROR_INIT;
    bool own = argc > 0 && launcher_line_name(argv[0]) == NULL;
    if (own && first_word_help(&argc, &argv, help, &err) < 0)
        return fail(&err);
    int status = own ? control_command(argc, argv) : -1;
    if (status >= 0)
        return status;
    struct command_line line = {.warnings = STRV_INIT, .more = STRV_INIT};
    int result = run(begun_ns, argc, argv, &line, &err);
    result = result < 0 ? fail(&err) : result;
    for (size_t i = 0; i < line.more.count && err.text[0] != '\0'; i++)
        fprintf(stderr, "hvdrun: %s\n", line.more.items[i]);
    command_line_destroy(&line);
    return result;
}
