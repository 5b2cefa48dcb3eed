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

/* What workers get of our environment and of the options: see model/env/scrub.h and horovod.h. */

struct worker_environment {
    struct strv base;  /* for workers of this machine */
    struct strv away;  /* for workers of other machines */
    struct strv knobs; /* HOROVOD_* of options */
};

#define AUTO_WORKER_ENVIRONMENT __attribute__((cleanup(worker_environment_clear)))

static void inherit(const struct settings *settings, bool same_host, struct strv *out)
{
    env_scrub(environ, same_host, settings->no_env, out);
    if (settings->keep_scheduler_env)
        env_scrub_scheduler(environ, out);
}

/* `env` is all zero before. `module_dir`: of hvdrun. */
static void worker_environment_fill(const struct settings *settings, const char *module_dir,
                                    struct worker_environment *env)
{
    inherit(settings, true, &env->base);
    inherit(settings, false, &env->away);
    horovod_env_build(settings, &env->knobs);
    horovod_env_package(settings, module_dir, &env->knobs);
}

static void worker_environment_clear(struct worker_environment *env)
{
    strv_destroy(&env->base);
    strv_destroy(&env->away);
    strv_destroy(&env->knobs);
}

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

static int dry_run(const struct settings *settings, const struct plan *plan,
                   const struct app_list *apps)
{
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);
    int result = settings->dry_run == SET_DRY_RUN_JSON ? dry_run_json(plan, apps, &text)
                                                       : dry_run_table(plan, apps, &text);
    if (result < 0) {
        fprintf(stderr, "hvdrun: the plan is too large to print\n");
        return STATUS_LAUNCHER;
    }
    return print_text(&text);
}

static int dry_run_plan(const struct command_line *line, struct place *place, struct error *err)
{
    struct plan *plan = place_plan(line, place, false, err);
    int result = plan == NULL ? -1 : dry_run(&line->settings, plan, &line->apps);
    plan_destroy(plan);
    return result;
}

struct agent_start {
    char *module_dir;
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

/* An elastic job has no plan, and starts its agents when it needs them. `late`: the driver must
 * plan again with place->request. */
static int run_job(int64_t begun_ns, char *const *argv, const struct command_line *line,
                   const struct place *place, const struct plan *plan, bool late, struct error *err)
{
    int lock_fd AUTO_FD = -1, started_fd AUTO_FD = -1, status = 0;
    if (line->settings.detach && job_folder_check(err) < 0)
        return error_wrap(err,
                          "--detach needs a folder for the log and the record of the job (TMPDIR "
                          "sets it)");
    if (line->settings.detach) {
        enum detach_side side = detach_fork(&started_fd, &status, err);
        if (side != DETACH_CHILD)
            return side == DETACH_PARENT ? status : -1;
    }
    if (job_files_open(&line->settings, !line->check.wanted, &lock_fd, err) < 0)
        return -1;
    char *module_dir AUTO_FREE = place_modules();
    struct transport_stream *streams AUTO_FREE =
        mem_array(plan == NULL ? 0 : (size_t)plan->node_count, sizeof(*streams));
    bool allocated = place->allocation.kind != ALLOCATION_NONE;
    const struct allocation *allocation = allocated ? &place->allocation : NULL;
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    struct agent_start start = {module_dir, &mask, process_title_of(argv, environ)};
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* before the first agent, for all of them (D6) */
    /* Before everything that only the driver needs, so that the agents start meanwhile. */
    if (plan != NULL && start_agents(&line->settings, allocation, plan, &start, streams, err) < 0)
        return -1;
    struct worker_environment env AUTO_WORKER_ENVIRONMENT = {.base = STRV_INIT};
    worker_environment_fill(&line->settings, module_dir, &env);
    char *agent_path AUTO_FREE = mem_printf("%s/hvdrun-agent", module_dir);
    char *ssh_module AUTO_FREE = mem_printf("%s/hvdrun-ssh.so", module_dir);
    char *tls_module AUTO_FREE = mem_printf("%s/hvdrun-tls.so", module_dir);
    char *here AUTO_FREE = place_here();
    char *job_id AUTO_FREE = place_job_id();
    struct check_request check = {.net = line->check.net,
                                  .json = line->check.json,
                                  .gpu = line->check.gpu,
                                  .python = line->check.python};
    struct job_request request = {.settings = &line->settings,
                                  .apps = &line->apps,
                                  .check = line->check.wanted ? &check : NULL,
                                  .plan = plan,
                                  .late = late ? &place->request : NULL,
                                  .hosts = &place->hosts,
                                  .copy = line->nodes.copy,
                                  .bad_hosts = place->bad_hosts,
                                  .gather_ms = line->nodes.last_call_ms,
                                  .allocation = allocation,
                                  .base_env = &env.base,
                                  .away_env = &env.away,
                                  .knobs = &env.knobs,
                                  .warnings = &line->warnings,
                                  .job_id = job_id,
                                  .argv = argv,
                                  .streams = plan == NULL ? NULL : streams,
                                  .agent_path = agent_path,
                                  .ssh_module = ssh_module,
                                  .tls_module = tls_module,
                                  .wdir = here,
                                  .begun_ns = begun_ns,
                                  .started_fd = started_fd};
    started_fd = -1; /* the driver closes it */
    return driver_run(&request, err);
}

static void put_version(struct buf *text)
{
    char *module_dir AUTO_FREE = place_modules();
    version_text(module_dir, text);
}

/* The warnings may explain why an option does not have the value that the user expects. */
static void put_config(const struct command_line *line, struct buf *text)
{
    for (size_t i = 0; i < line->warnings.count; i++)
        fprintf(stderr, "hvdrun: %s\n", line->warnings.items[i]);
    show_config_text(&line->settings, text);
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
        put_config(line, &text);
    else if (line->settings.version || (line->apps.count == 0 && !line->check.wanted))
        put_version(&text);
    else
        return -1;
    return print_text(&text);
}

static int run_elastic(int64_t begun_ns, char *const *argv, const struct command_line *line,
                       struct place *place, struct error *err)
{
    if (line->settings.dry_run != SET_DRY_RUN_NO && place->hosts.count == 0)
        return error_status(err, STATUS_USAGE,
                            "%s: hvdrun learns the hosts of this job only when the job runs; name "
                            "them with -H or --hostfile",
                            settings_place(&line->settings, OPT_dry_run));
    if (line->settings.dry_run != SET_DRY_RUN_NO) /* the plan with all hosts up */
        return dry_run_plan(line, place, err);
    return run_job(begun_ns, argv, line, place, NULL, false, err);
}

/* `hvdrun check`: its hosts need not be enough for a job. */
static int run_check(int64_t begun_ns, char *const *argv, const struct command_line *line,
                     const struct place *place, struct error *err)
{
    if (place->hosts.count > 0)
        return run_job(begun_ns, argv, line, place, NULL, false, err);
    return error_status(err, STATUS_USAGE,
                        "hvdrun check does not read --host-discovery-script or --hosts-watch: name "
                        "the hosts with -H or --hostfile");
}

static int run_static(int64_t begun_ns, char *const *argv, const struct command_line *line,
                      struct place *place, struct error *err)
{
    if (line->settings.dry_run != SET_DRY_RUN_NO)
        return dry_run_plan(line, place, err);
    bool late = place_is_vague(place) || line->nodes.copy != NULL;
    int result = -1;
    struct plan *plan = place_plan(line, place, late, err);
    if (plan != NULL)
        result = run_job(begun_ns, argv, line, place, plan, late, err);
    plan_destroy(plan);
    return result;
}

/* Checks the signal options before anything starts. The driver later makes its own rules from them.
 */
static int check_signals(const struct settings *settings, const struct place *place,
                         struct error *err)
{
    struct signal_rules rules;
    return signal_rules_from(settings, place->allocation.kind == ALLOCATION_SLURM, &rules, err);
}

#define NAME_MAX_LENGTH 64

static int check_name(const struct settings *settings, struct error *err)
{
    const char *name = settings->job_name;
    size_t length = name == NULL ? 0 : strlen(name);
    if (name == NULL || (length <= NAME_MAX_LENGTH && name_is_safe(name, length)))
        return 0;
    return error_status(err, STATUS_USAGE,
                        "%s: '%s' is not a name for a job: expected at most %d letters, digits and "
                        "._:-",
                        settings_place(settings, OPT_job_name), name, NAME_MAX_LENGTH);
}

/* `hvdrun run` is the same as `hvdrun`. */
static bool says_run(int argc, char *const *argv)
{
    return argc > 1 && strcmp(argv[1], "run") == 0;
}

/* A detached job has neither a terminal for its result nor one for a rank. */
static int check_detach(const struct command_line *line, struct error *err)
{
    const struct settings *settings = &line->settings;
    if (!settings->detach || (!line->check.wanted && settings->pty < 0 && settings->log_size > 0))
        return 0;
    const char *with = line->check.wanted ? "hvdrun check" : settings->pty >= 0 ? "--pty RANK" : "";
    if (with[0] == '\0')
        return error_status(err, STATUS_USAGE,
                            "--detach: a detached job needs a log, so --log-size "
                            "cannot be 0");
    return error_status(err, STATUS_USAGE, "--detach cannot be combined with %s", with);
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

struct check_run {
    int64_t begun_ns;
    char *const *argv;
    const struct place *place;
};

static int check_now(void *context, const struct command_line *line, struct error *err)
{
    const struct check_run *run = context;
    return run_check(run->begun_ns, run->argv, line, run->place, err);
}

static int leave_out_ill(struct check_run *run, const struct command_line *line,
                         struct host_list *hosts, struct buf *told, struct error *err)
{
    if (!line->settings.leave_out_bad || line->settings.dry_run != SET_DRY_RUN_NO)
        return 0;
    if (line->settings.transport == SET_TRANSPORT_DIAL)
        return error_status(err, STATUS_USAGE,
                            "%s: an agent that dials in does so once, for the job and not for a "
                            "check before it",
                            settings_place(&line->settings, OPT_leave_out_bad));
    if (hosts->count > 0)
        return preflight_leave_out(line, check_now, run, hosts, told, err);
    return error_status(err, STATUS_USAGE,
                        "%s: hvdrun learns the hosts of this job only when the job runs; name them "
                        "with -H or --hostfile",
                        settings_place(&line->settings, OPT_leave_out_bad));
}

/* A dry run starts no driver, which would print the warnings. */
static int leave_out(struct check_run *check, struct command_line *line, struct place *place,
                     struct error *err)
{
    struct buf told AUTO_BUF = BUF_INIT(TEXT_MAX);
    int before = hosts_slots(&place->hosts);
    if (features_leave_out(&line->settings, &place->hosts, &place->bad_hosts, &told, err) < 0)
        return -1;
    place->remedy =
        told.length > 0 ? "delete the lines of hosts that are well again" : "mend these hosts";
    if (leave_out_ill(check, line, &place->hosts, &told, err) < 0)
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

static int run(int64_t begun_ns, int argc, char **argv, struct command_line *line,
               struct error *err)
{
    bool own = launcher_line_name(argv[0]) == NULL;
    int skipped = own && says_run(argc, argv) ? 1 : 0;
    tool_run *tool = NULL;
    if (own && argc > 1 && features_tool(argv[1], &tool, err) < 0)
        return -1;
    if (tool != NULL)
        return run_tool(tool, argv + 2, err);
    if ((own && first_word_check(argc - skipped, argv + skipped, getenv("PATH"), err) < 0) ||
        command_line_parse(argc - skipped, argv + skipped, environ, line, err) < 0 ||
        features_check_options(&line->settings, err) < 0 ||
        (line->check.wanted && features_allow_word(CHECK_WORD, err) < 0) ||
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
    result = place_open(line, environ, &place, err);
    if (result == 0)
        result = features_line_hosts(line, &place.hosts, err);
    if (result == 0 && !line->check.wanted)
        result = leave_out(&(struct check_run){begun_ns, argv, &place}, line, &place, err);
    if (result == 0)
        take_own_address(line, &place.hosts);
    if (result == 0)
        result = check_signals(&line->settings, &place, err);
    if (result == 0 && line->check.wanted)
        result = run_check(begun_ns, argv, line, &place, err);
    else if (result == 0 && elastic)
        result = run_elastic(begun_ns, argv, line, &place, err);
    else if (result == 0)
        result = run_static(begun_ns, argv, line, &place, err);
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
