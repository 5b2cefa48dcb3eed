/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/run.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "driver/control/request.h"
#include "driver/end/end.h"
#include "driver/end/teardown.h"
#include "driver/end/warning.h"
#include "driver/job/job_kind.h"
#include "driver/job/job_nodes.h"
#include "driver/job/part.h"
#include "driver/tell/events.h"
#include "model/allocation/allocation.h"
#include "model/exit/record.h"
#include "model/exit/signal_name.h"
#include "model/exit/signal_rules.h"
#include "output/terminal.h"

/* isatty(3) fails for a terminal that is gone already. */
static bool may_be_terminal(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISCHR(info.st_mode);
}

int hangup_leave(bool output_too)
{
    int null AUTO_FD = fd_open("/dev/null", O_RDWR | O_CLOEXEC, 0);
    int result = null < 0 ? -1 : 0;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && result == 0; fd++) {
        bool leaves = may_be_terminal(fd) || (output_too && fd != STDIN_FILENO);
        result = leaves && fd_dup2(null, fd) < 0 ? -1 : 0;
    }
    return result;
}

static bool takes(struct job *job, bool output_too, const char *what)
{
    if (job->settings->on_hangup != SET_HANGUP_DETACH || job_part(job, job_control) == NULL)
        return false;
    if (hangup_leave(output_too) < 0)
        return false;
    job->left_terminal = true;
    log_notice(&job->log, "the %s is gone, and the job goes on without it", what);
    return true;
}

/* HUP has come. True: the job has left its terminal, and the signal means nothing more. The shell
 * and the kernel each send a HUP when a terminal closes. */
static bool hangup_takes(struct job *job)
{
    if (job->left_terminal)
        return true;
    return takes(job, false, "terminal");
}

bool hangup_takes_reader(struct job *job)
{
    return takes(job, true, "reader of the output");
}

/* Slurm ends a job with TERM. After KillWait (30 s) it kills everything in the job, including
 * the launcher, which could not clean up then. */
#define GRACE_IN_SLURM_MS 20000

/* The request to end that kills the workers. The next one does not wait for agents. */
#define KILLED_AT 3

#define SIGNAL_TEXT_MAX ((size_t)64)

struct user_signals {
    struct loop_signals *watch;
    int asked; /* how often the user asked for the end */
    struct signal_rounds rounds;
};

/* The signal that workers get for the n-th request to end. */
static int escalated(int signal, int asked)
{
    if (asked <= 1)
        return signal;
    return asked < KILLED_AT ? SIGTERM : SIGKILL;
}

/* Whether Slurm ends the job: then every process of the job gets the signal. */
static bool is_slurms(const struct job *job, int signal)
{
    const struct allocation *allocation = job->request->allocation;
    return signal == SIGTERM && allocation != NULL && allocation->kind == ALLOCATION_SLURM;
}

static int64_t usual_grace(const struct job *job, int signal)
{
    return teardown_grace(job, is_slurms(job, signal) ? GRACE_IN_SLURM_MS : GRACE_AFTER_SIGNAL_MS);
}

static void say_end(struct job *job, const char *stopped, int64_t grace_ms)
{
    double grace_s = (double)grace_ms / 1000;
    if (stopped != NULL)
        log_notice(&job->log, "%s: the workers have %.3g s to exit", stopped, grace_s);
    else
        log_notice(&job->log,
                   "interrupted: the workers have %.3g s to exit; a second Ctrl-C sends SIGTERM, a "
                   "third one SIGKILL",
                   grace_s);
}

/* `stopped`: the request of another command that has the effect of the signal; NULL: none.
 * `grace_ms`: -1: the usual one. */
static void end_job(struct job *job, int signal, int64_t grace_ms, const char *stopped)
{
    struct user_signals *signals = job_part(job, user_signals);
    if (requeue_is_under_way(job))
        return; /* Slurm sends it because of our own requeue */
    if (job->state >= JOB_FLUSHING) {
        loop_stop(job->loop); /* only a stuck reader of the output keeps us here */
        return;
    }
    warning_user_ends(job_part(job, warning));
    signals->asked++;
    if (signals->asked > (job->kind->has_workers ? KILLED_AT : 1)) {
        teardown_give_up(job);
        return;
    }
    int mapped = signal_rules_sent(warning_rules(job_part(job, warning)), signal);
    int sent = escalated(mapped, signals->asked);
    if (stopped != NULL)
        exit_outside_stopped(&job->outside, signal, clock_mono_ns(), stopped);
    else
        exit_outside_interrupted(&job->outside, signal, clock_mono_ns());
    if (is_slurms(job, signal))
        job->outside.interrupted.round_ns = SIGNAL_ROUND_MS * INT64_C(1000000);
    bool now = sent == SIGKILL || !job->kind->has_workers;
    int64_t usual = grace_ms < 0 ? usual_grace(job, signal) : grace_ms;
    int64_t grace = now ? 0 : usual;
    if (signals->asked == 1 && signal == SIGINT && job->kind->has_workers)
        say_end(job, stopped, grace);
    if (stopped != NULL)
        events_text(job, "stop", stopped);
    else
        events_signal(job, signal);
    teardown_begin(job, sent, grace);
}

static void user_ends(struct job *job, int signal)
{
    end_job(job, signal, -1, NULL);
}

static json_t *stop(void *context, const struct control_asked *asked, struct error *err)
{
    struct job *job = context;
    int64_t grace_ms;
    if (control_time(asked, "grace_s", &grace_ms, err) < 0)
        return NULL;
    char *by AUTO_FREE = control_asker_text(&asked->asker);
    char *stopped AUTO_FREE = mem_printf("stopped by %s", by);
    if (job->state < JOB_CLOSING) /* later, it would end the output instead */
        end_job(job, SIGINT, grace_ms, stopped);
    return control_accepted(0);
}

struct wanted {
    int *ranks;
    size_t count;
};

static void want(void *context, int64_t rank)
{
    struct wanted *wanted = context;
    MEM_ADD(wanted->ranks, wanted->count) = (int)rank;
}

/* The seat of the worker that has this rank now. A survivor of a change was started in an earlier
 * epoch. -1: none runs. */
static int running_seat(const struct job *job, int rank)
{
    for (int seat = 0; seat < job->ranks.size; seat++) {
        const struct rank_record *record = &job->ranks.records[seat];
        if (record->rank == rank && record->state == RANK_RUNNING)
            return seat;
    }
    return -1;
}

static void send_to_seat(const struct job *job, int seat, int signal, const char *by)
{
    struct rank_record *record = &job->ranks.records[seat];
    rank_requested(record, signal, by);
    uint32_t number = (uint32_t)seat;
    Hvdrun__Signal message = HVDRUN__SIGNAL__INIT;
    message.signal = signal;
    message.seats = &number;
    message.n_seats = 1;
    node_link_send(job->nodes[record->node], FRAME_SIGNAL, record->epoch, &message.base);
}

static void send_to_all(struct job *job, int signal, const char *by)
{
    Hvdrun__Signal message = HVDRUN__SIGNAL__INIT;
    message.signal = signal;
    for (int seat = 0; seat < job->ranks.size; seat++) {
        if (job->ranks.records[seat].state == RANK_RUNNING)
            rank_requested(&job->ranks.records[seat], signal, by);
    }
    job_send_all(job, FRAME_SIGNAL, &message.base);
}

static void say_sent(const struct job *job, int signal, const char *by, const char *ranks)
{
    struct buf name AUTO_BUF = BUF_INIT(SIGNAL_TEXT_MAX);
    exit_signal_name(signal, &name);
    char *whom AUTO_FREE =
        ranks == NULL ? mem_strdup("all ranks")
                      : mem_printf("rank%s %s", strpbrk(ranks, ",-") != NULL ? "s" : "", ranks);
    char *text AUTO_FREE = mem_printf("%s sends %s to %s", by, buf_text(&name), whom);
    log_notice(&job->log, "%s", text);
    events_text(job, "signal_sent", text);
}

/* To these ranks; NULL: to all. -1: one of them does not run, or does not exist. */
static int send_to(struct job *job, int signal, const char *by, const char *ranks,
                   struct error *err)
{
    struct wanted wanted = {.count = 0};
    if (job->ranks.running == 0)
        return error_set(err, "no rank runs");
    if (ranks == NULL) {
        say_sent(job, signal, by, NULL);
        send_to_all(job, signal, by);
        return 0;
    }
    int result = parse_ranks(ranks, job->plan->size - 1, want, &wanted, err);
    for (size_t i = 0; i < wanted.count && result == 0; i++) {
        if (running_seat(job, wanted.ranks[i]) < 0)
            result = error_set(err, "rank %d does not run", wanted.ranks[i]);
    }
    for (size_t i = 0; i < wanted.count && result == 0; i++)
        send_to_seat(job, running_seat(job, wanted.ranks[i]), signal, by);
    if (result == 0)
        say_sent(job, signal, by, ranks);
    free(wanted.ranks);
    return result;
}

/* Those that stop or continue processes would do so behind the back of the job's time limits. */
static json_t *send_signal(void *context, const struct control_asked *asked, struct error *err)
{
    const char *name = control_text(asked, "signal", err), *ranks = NULL;
    if (name == NULL)
        return NULL;
    int number = signal_number(name);
    if (number == 0 || (signal_is_barred(number) && number != SIGKILL)) {
        error_set(err, number == 0
                           ? "no signal has that name"
                           : "hvdrun does not send signals that stop or continue processes");
        return NULL;
    }
    if (control_ranks(asked, "ranks", &ranks, err) < 0)
        return NULL;
    char *by AUTO_FREE = control_asker_text(&asked->asker);
    return control_accepted(send_to(context, number, by, ranks, err));
}

static void window_changed(struct job *job)
{
    Hvdrun__WindowSize message = HVDRUN__WINDOW_SIZE__INIT;
    terminal_size(&message.rows, &message.columns);
    if (job->settings->pty >= 0)
        job_send_all(job, FRAME_WINDOW_SIZE, &message.base);
}

static void news(struct job *job, int signal)
{
    if (warning_takes(job_part(job, warning), signal) || (signal == SIGHUP && hangup_takes(job)))
        return;
    if (signal_wants_end(signal)) {
        user_ends(job, signal);
        return;
    }
    events_signal(job, signal);
    warning_pass_on(job_part(job, warning), signal);
}

static void got_signal(void *context, int signal, int sender)
{
    (void)sender;
    struct job *job = context;
    switch (signal) {
    case SIGCHLD: reaper_collect(job->reaper); break;
    case SIGTSTP: suspension_begin(job); break;
    case SIGCONT: suspension_end(job); break;
    case SIGWINCH: window_changed(job); break;
    case SIGTTIN:
    case SIGTTOU: break; /* only blocked, so that a background job is not stopped */
    default:
        if (signal_rounds_is_news(&job_part(job, user_signals)->rounds, signal, false,
                                  clock_mono_ms()))
            news(job, signal);
        break;
    }
}

static void of_node(struct job *job, int signal)
{
    bool known = signal_wants_end(signal) || signal == SIGUSR1 || signal == SIGUSR2 ||
                 signal_rules_name(warning_rules(job_part(job, warning)), signal);
    if (known && signal_is_passed(signal) &&
        signal_rounds_is_news(&job_part(job, user_signals)->rounds, signal, true, clock_mono_ms()))
        news(job, signal);
}

int user_signals_terminate(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    (void)node, (void)frame;
    if (job->state < JOB_ENDING) /* one that follows is no further request: each pod gets its own */
        of_node(job, SIGTERM);
    return 0;
}

static int signalled(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    (void)node;
    const Hvdrun__Signalled *message = frame->message;
    of_node(job, message->signal);
    return 0;
}

/* The signals that any job watches, and those that the settings name. */
static bool is_wanted(const struct job *job, int signal)
{
    static const int always[] = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP,   SIGQUIT, SIGUSR1,
                                 SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH, SIGTTIN, SIGTTOU};
    bool wanted = signal_is_passed(signal) &&
                  signal_rules_name(warning_rules(job_part(job, warning)), signal);
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]) && !wanted; i++)
        wanted = always[i] == signal;
    struct sigaction action;
    bool ignored = sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
    return wanted && (!ignored || signal == SIGCHLD);
}

static int open_part(struct job *job, struct error *err)
{
    int list[SIGNAL_NUMBER_MAX + 1] = {0};
    size_t count = 0;
    for (int signal = 1; signal < SIGNAL_NUMBER_MAX; signal++) {
        if (is_wanted(job, signal))
            list[count++] = signal;
    }
    struct user_signals *signals = job_part(job, user_signals);
    signals->watch = loop_signals_create(job->loop, list, got_signal, job, err);
    return signals->watch == NULL ? -1 : 0;
}

static void close_part(struct job *job)
{
    loop_signals_destroy(job_part(job, user_signals)->watch);
}

static const struct part_frame frames[] = {
    {FRAME_SIGNALLED,
     {signalled, &hvdrun__signalled__descriptor, EPOCHS_ALL, NODE_STARTING, false}},
    {0}};

static const struct control_rule requests[] = {{"stop", stop}, {"signal", send_signal}, {NULL}};

const struct driver_part user_signals_part = {.name = "user_signals",
                                              .size = sizeof(struct user_signals),
                                              .open = open_part,
                                              .close = close_part,
                                              .frames = frames,
                                              .requests = requests,
                                              .user_ends = user_ends};
