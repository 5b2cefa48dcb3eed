/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvdrun-agent: the agent on other hosts. It needs only libc, contains its own modules, and sends
 * and receives frames on its standard streams. Its command line has no data of the job.
 *
 *   hvdrun-agent [--marker WORD]   prints WORD before the first frame (transport/boot/script.h)
 *   hvdrun-agent --dial            for a scheduler: makes a connection for the frames itself
 *                                  (agent_main/dial_out.h)
 *   hvdrun-agent --dial HOST:PORT  the same for a user (agent_main/dial_out.h)
 *   hvdrun-agent --gpus            a helper of an agent (agent/gpu_sampler.h)
 *   hvdrun-agent --stacks NUMBER   another one (features/stacks/stack_helper_agent.h)
 *   hvdrun-agent --warm NUMBER     the holder of `hvdrun warm` (features/warm/holder_agent.c)
 *   hvdrun-agent --version
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_config.h"
#include "agent/gpu_health.h"
#include "agent/gpu_sampler.h"
#include "agent/keeper.h"
#include "agent/modules.h"
#include "agent_main/dial_out.h"
#include "base/fd.h"
#include "base/status.h"
#include "io/child.h"
#include "io/dial_ends.h"
#include "io/module_open.h"

#define MARKER_MAX 64

static const char usage[] =
    "hvdrun starts hvdrun-agent; do not start it yourself, except for --transport dial:\n"
    "hvdrun-agent --dial HOST:PORT --dial-secret FILE [--dial-id ID] [--name NAME|auto]\n"
    "             [--start-timeout TIME] [--grace TIME]\n";

static int agent_main(void *context, int line_fd)
{
    struct agent_config *config = context;
    config->keeper_fd = line_fd;
    return agent_run(config);
}

static int cannot_start(const char *what)
{
    fprintf(stderr, "hvdrun-agent: %s: %s\n", what, strerrordesc_np(errno));
    return -1;
}

/* The agent does not use stdin and stdout here. stderr stays open for the line that says why it
 * fails. */
static int leave_streams(void)
{
    int null_fd = fd_open("/dev/null", O_RDWR | O_CLOEXEC, 0);
    if (null_fd < 0 || fd_dup2(null_fd, STDIN_FILENO) < 0 || fd_dup2(null_fd, STDOUT_FILENO) < 0)
        return cannot_start("cannot open /dev/null for reading and writing");
    if (fcntl(STDERR_FILENO, F_GETFD) < 0)
        fd_dup2(null_fd, STDERR_FILENO);
    fd_close(&null_fd);
    return 0;
}

/* Moves the stream away from descriptors 0 and 1, so that no other code writes to it. 2 still leads
 * to the transport. */
static int move_stream(struct agent_config *agent)
{
    agent->read_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    agent->write_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (agent->read_fd < 0 || agent->write_fd < 0)
        return cannot_start("its standard input and output must be a stream to hvdrun");
    return leave_streams();
}

static int print_marker(const char *marker)
{
    char line[MARKER_MAX + 16];
    int printed = snprintf(line, sizeof(line), "%.*s agent\n", MARKER_MAX, marker);
    if (fd_write_all(STDOUT_FILENO, line, (size_t)printed) < 0)
        return cannot_start("cannot write to the stream to hvdrun");
    return 0;
}

/* The keeper gets a copy of the stream, only to notice when the driver closes it. */
static int run_kept(struct agent_config *agent)
{
    struct error err = ERROR_INIT;
    int watched = fcntl(agent->read_fd, F_DUPFD_CLOEXEC, 3);
    struct keeper_config config = {.stream_fd = watched,
                                   .agent_fds = {agent->read_fd, agent->write_fd},
                                   .mask = agent->mask,
                                   .agent = agent_main,
                                   .context = agent};
    int status = keeper_run(&config, &err);
    if (status < 0) {
        fprintf(stderr, "hvdrun-agent: %s\n", err.text);
        return STATUS_LAUNCHER;
    }
    return status;
}

static int connect_out(const struct dial_out *dial, struct tls_end *end, struct error *err)
{
    struct modules *modules = modules_create("");
    const char *path = modules_find(modules, "hvdrun-tls.so", err);
    const struct tls_module *module = path == NULL ? NULL : module_open(path, TLS_MODULE_KIND, err);
    int result = module == NULL ? -1 : dial_out_connect(dial, module, end, err);
    modules_destroy(modules);
    return result;
}

static void leave(int signal)
{
    _exit(128 + signal);
}

/* Until the keeper takes care of them. The first process of a container would ignore them. */
static void leave_at_signals(bool leaves)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    const struct sigaction action = {.sa_handler = leaves ? leave : SIG_DFL};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        sigaction(signals[i], &action, NULL);
}

/* Connects to the driver, and then runs as always. `words` are those of a user; NULL: srun started
 * it. srun would end the agents of all other nodes for a status that is not 0, so there is none
 * after the connection: the driver learns about a failure from the link. */
static int run_dialed(char *const *words, const sigset_t *mask)
{
    struct dial_out dial;
    struct tls_end end;
    struct error err = ERROR_INIT;
    bool is_user = words != NULL;
    int result = is_user ? dial_words_read(words, &dial, &err) : dial_out_read(&dial, &err);
    int failed = is_user && result < 0 ? STATUS_USAGE : STATUS_LAUNCHER;
    leave_at_signals(true);
    if (result == 0)
        result = connect_out(&dial, &end, &err);
    if (result < 0 && is_user)
        fprintf(stderr, "hvdrun-agent: %s\n", err.text);
    else if (result < 0)
        fprintf(stderr, DIAL_BACK_CANNOT "%s: %s\n", dial.node, err.text);
    if (result < 0) {
        dial_out_clear(&dial);
        return failed;
    }
    leave_at_signals(false);
    explicit_bzero(dial.key, sizeof(dial.key));
    struct agent_config agent = {.read_fd = end.fd,
                                 .write_fd = -1,
                                 .tls = &end,
                                 .ends_as_job = is_user,
                                 .term_grace_ms = dial.term_grace_ms,
                                 .slots = dial.slots,
                                 .line = dial.line,
                                 .module_dir = "",
                                 .mask = mask};
    int status = run_kept(&agent);
    end.module->destroy(end.session); /* this process's copy of it */
    dial_out_clear(&dial);
    return is_user ? status : 0;
}

/* Of features (launcher/features), which a build may leave out. */
extern const struct helper_program stack_helper __attribute__((weak));
extern const struct helper_program warm_holder_program __attribute__((weak));

static const struct helper_program *find_helper(int argc, char *const *argv)
{
    static const struct helper_program *const helpers[] = {&gpu_helper, &gpu_health_helper,
                                                           &stack_helper, &warm_holder_program};
    for (size_t i = 0; argc > 1 && i < sizeof(helpers) / sizeof(helpers[0]); i++) {
        const struct helper_program *helper = helpers[i];
        if (helper != NULL && argc == (helper->has_operand ? 3 : 2) &&
            strcmp(argv[1], helper->word) == 0)
            return helper;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    sigset_t mask;
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("hvdrun-agent %s\n", HVDRUN_VERSION);
        return fflush(stdout) == 0 ? 0 : STATUS_LAUNCHER;
    }
    const struct helper_program *helper = find_helper(argc, argv);
    if (helper != NULL)
        return helper->run(argv[2]);
    bool marked = argc == 3 && strcmp(argv[1], "--marker") == 0;
    bool is_user = dial_words_are_ours(argc, argv);
    bool dials = is_user || (argc == 2 && strcmp(argv[1], "--dial") == 0);
    if (!marked && !dials && argc != 1) {
        fputs(usage, stderr);
        return STATUS_USAGE;
    }
    setsid(); /* fails if this process already leads a session */
    child_ignore_signals();
    sigprocmask(SIG_SETMASK, NULL, &mask);
    if (dials)
        return leave_streams() < 0 ? STATUS_LAUNCHER : run_dialed(is_user ? argv + 1 : NULL, &mask);
    struct agent_config agent = {.module_dir = "", .mask = &mask};
    if ((marked && print_marker(argv[2]) < 0) || move_stream(&agent) < 0)
        return STATUS_LAUNCHER;
    return run_kept(&agent);
}
