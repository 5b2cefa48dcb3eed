/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/end/warning.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/strv.h"
#include "driver/end/teardown.h"
#include "driver/job/job_kind.h"
#include "driver/job/job_nodes.h"
#include "driver/job/part.h"
#include "driver/tell/events.h"
#include "driver/tell/json_text.h"
#include "model/allocation/allocation.h"
#include "model/exit/signal_rules.h"

#define OUTPUT_MAX ((size_t)1 << 20)

/* Its times then have the same format everywhere (model/allocation/slurm.h). */
static void set_environment(struct strv *env)
{
    for (char **one = environ; *one != NULL; one++) {
        if (strncmp(*one, "TZ=", 3) != 0 && strncmp(*one, "SLURM_TIME_FORMAT=", 18) != 0)
            strv_add(env, *one);
    }
    strv_add(env, "TZ=UTC0");
    strv_add(env, "SLURM_TIME_FORMAT=standard");
}

struct program *scontrol_start(struct job *job, const char *const *words, int64_t limit_ms,
                               void (*done)(void *context, const struct program_result *result),
                               void *context)
{
    struct strv argv AUTO_STRV = STRV_INIT, env AUTO_STRV = STRV_INIT;
    strv_add(&argv, "scontrol");
    for (; *words != NULL; words++)
        strv_add(&argv, *words);
    strv_add(&argv, job->request->allocation->job_id);
    set_environment(&env);
    const struct program_spec spec = {.loop = job->loop,
                                      .helpers = job_part(job, helpers),
                                      .log = &job->log,
                                      .argv = argv.items,
                                      .envp = env.items,
                                      .output_max = OUTPUT_MAX,
                                      .time_max_ms = limit_ms};
    return program_start(&spec, done, context);
}

#define ASK_LIMIT_MS 5000
#define ASK_AGAIN_MS 30000  /* between two questions about a signal that does not end the job */
#define SECOND_LOOK_MS 1000 /* after a TERM of which Slurm knows nothing yet */

struct warning {
    struct job *job;
    struct signal_rules rules;
    struct program *question;
    int asked_about;  /* signal; 0: the agent of an elastic job */
    bool asked_twice; /* about this TERM */
    struct loop_timer *second_look;
    int64_t answered_ms; /* monotonic; 0: never */
    struct loop_timer *workers_time;
    struct warning_times times;
    int signal; /* the warning signal that ends the job; 0: none yet */
    bool user_ends;
};

static bool in_slurm(const struct job *job)
{
    const struct allocation *allocation = job->request->allocation;
    return allocation != NULL && allocation->kind == ALLOCATION_SLURM && allocation->job_id != NULL;
}

const struct signal_rules *warning_rules(const struct warning *warning)
{
    return &warning->rules;
}

/* Time until the end of the Slurm job; INT64_MAX: unknown. */
static int64_t time_left_ms(const struct warning *warning, const struct slurm_job *slurm)
{
    const struct allocation *allocation = warning->job->request->allocation;
    int64_t end_s = slurm != NULL ? slurm->end_s : 0;
    if (end_s == 0 && allocation != NULL)
        end_s = allocation->end_s;
    return end_s == 0 ? INT64_MAX : end_s * 1000 - clock_wall_ns() / 1000000;
}

static void send_deadline(struct job *job, int64_t within_ms, int signal)
{
    Hvdrun__Deadline message = HVDRUN__DEADLINE__INIT;
    char *why AUTO_FREE = mem_printf("warning signal SIG%s", signal_short_name(signal));
    message.within_ms = (uint64_t)within_ms;
    message.why = why;
    job_send_all(job, FRAME_DEADLINE, &message.base);
}

void warning_pass_on(const struct warning *warning, int signal)
{
    Hvdrun__Signal message = HVDRUN__SIGNAL__INIT;
    message.signal = signal_rules_sent(&warning->rules, signal);
    job_send_all(warning->job, FRAME_SIGNAL, &message.base);
}

static void say_deadline(const struct warning *warning, int signal, int64_t left_ms)
{
    char end[DAY_TIME_SIZE];
    day_time_text(clock_wall_ns() + left_ms * 1000000, end);
    log_notice(&warning->job->log, "warning signal SIG%s: the job's time ends at %s, in %lld s",
               signal_short_name(signal), end, (long long)(left_ms / 1000));
}

static void say_end(const struct warning *warning, int signal, int64_t left_ms)
{
    char end[DAY_TIME_SIZE];
    bool known = left_ms != INT64_MAX && left_ms > 0;
    day_time_text(clock_wall_ns() + (known ? left_ms : 0) * 1000000, end);
    log_notice(&warning->job->log, "warning signal SIG%s: the workers have %.0f s to exit%s%s%s",
               signal_short_name(signal), (double)warning->times.workers_ms / 1000,
               warning->rules.requeue ? "; then hvdrun requeues the job" : "",
               known ? "; the job's time ends at " : "", known ? end : "");
}

/* The warning ends the job: from here on every exit is a consequence. As always, the signal goes
 * to the workers alone; the end itself begins without a signal. */
static void begin_end(struct warning *warning, int signal, int64_t left_ms)
{
    struct job *job = warning->job;
    if (warning->signal != 0) { /* a second warning, with less time */
        warning->times = warning_times_share(left_ms, job->settings->grace);
        loop_timer_set(warning->workers_time, warning->times.workers_ms);
        return;
    }
    warning->signal = signal;
    warning->times = warning_times_share(left_ms, job->settings->grace);
    exit_outside_interrupted(&job->outside, signal, clock_mono_ns());
    events_signal(job, signal);
    say_end(warning, signal, left_ms);
    send_deadline(job, warning->times.workers_ms, signal);
    warning_pass_on(warning, signal);
    loop_timer_set(warning->workers_time, warning->times.workers_ms);
    teardown_begin(job, 0, warning->times.workers_ms + warning->times.term_ms);
}

static void workers_time_over(void *context)
{
    struct warning *warning = context;
    struct job *job = warning->job;
    if (job->state >= JOB_CLOSING)
        return;
    log_notice(&job->log, "the workers' time is over: sending SIGTERM to those that still run%s",
               warning->times.term_ms > 0 ? ", then SIGKILL" : "");
    teardown_begin(job, SIGTERM, warning->times.term_ms);
}

static void answer_term(struct warning *warning, const struct slurm_job *slurm)
{
    bool slurms = slurm == NULL ? warning->signal != 0 : slurm_job_is_ousted(slurm);
    if (slurms)
        begin_end(warning, SIGTERM, time_left_ms(warning, slurm));
    else if (warning->asked_about != 0)
        PARTS_TELL(warning->job, user_ends, SIGTERM);
}

static void answer_warning(struct warning *warning, int signal, const struct slurm_job *slurm)
{
    int64_t left_ms = time_left_ms(warning, slurm);
    if (warning->rules.warn_ends) {
        begin_end(warning, signal, left_ms);
    } else if (left_ms != INT64_MAX && left_ms > 0) {
        send_deadline(warning->job, left_ms, signal);
        say_deadline(warning, signal, left_ms);
    }
}

/* Warns while there is still time to change the setting. */
static void check_way_back(const struct job *job, const struct slurm_job *slurm)
{
    if (!slurm->batch)
        log_warning(
            &job->log,
            "Slurm will not requeue this job: it has no batch script; submit it with sbatch");
    else if (!slurm->requeue)
        log_warning(&job->log,
                    "Slurm will not requeue this job: requeuing is off for it (--no-requeue, or "
                    "JobRequeue=0 in slurm.conf); 'scontrol update jobid=%s requeue=1' turns it on",
                    job->request->allocation->job_id);
}

static bool is_about_term(const struct warning *warning)
{
    return warning->asked_about == 0 ||
           (warning->asked_about == SIGTERM && warning->rules.warn != SIGTERM);
}

/* A wrong answer here loses the job, so the user waits for one more second. */
static bool looks_again(struct warning *warning, const struct slurm_job *slurm)
{
    bool doubtful = is_about_term(warning) && slurm_job_runs(slurm) && !slurm->preempted &&
                    !warning->asked_twice;
    if (doubtful)
        loop_timer_set(warning->second_look, SECOND_LOOK_MS);
    return doubtful;
}

static void answered(void *context, const struct program_result *result)
{
    struct warning *warning = context;
    struct job *job = warning->job;
    struct slurm_job slurm;
    struct error err = ERROR_INIT;
    warning->question = NULL;
    warning->answered_ms = clock_mono_ms();
    bool known =
        result->why == NULL && slurm_job_parse(result->text, result->length, &slurm, &err) == 0;
    if (!known)
        log_warning(&job->log, "cannot ask Slurm how much time the job has left: %s",
                    result->why != NULL ? result->why : err.text);
    else if (warning->rules.requeue)
        check_way_back(job, &slurm);
    if (known)
        log_info(&job->log, "Slurm reports the state of the job: %s, reason %s%s", slurm.state,
                 slurm.reason, slurm.preempted ? ", preempted" : "");
    if (known && looks_again(warning, &slurm))
        return;
    if (is_about_term(warning))
        answer_term(warning, known ? &slurm : NULL);
    else
        answer_warning(warning, warning->asked_about, known ? &slurm : NULL);
    job_advance(job); /* the end of the job has waited for the answer */
}

static void stop_asking(struct warning *warning)
{
    program_cancel(warning->question);
    warning->question = NULL;
    loop_timer_clear(warning->second_look);
}

static void start_question(struct warning *warning)
{
    static const char *const words[] = {"show", "job", "-o", NULL};
    warning->question = scontrol_start(warning->job, words, ASK_LIMIT_MS, answered, warning);
}

static void second_look(void *context)
{
    struct warning *warning = context;
    warning->asked_twice = true;
    start_question(warning);
}

static bool is_asking(const struct warning *warning)
{
    return warning->question != NULL || loop_timer_is_set(warning->second_look);
}

static void ask(struct warning *warning, int signal)
{
    stop_asking(warning); /* cancels an older question */
    warning->asked_about = signal;
    warning->asked_twice = false;
    start_question(warning);
}

/* A signal that warns, but does not end the job. */
static void only_warns(struct warning *warning, int signal)
{
    events_signal(warning->job, signal);
    warning_pass_on(warning, signal);
    int64_t now = clock_mono_ms();
    bool lately = warning->answered_ms != 0 && now - warning->answered_ms < ASK_AGAIN_MS;
    if (in_slurm(warning->job) && !is_asking(warning) && !lately &&
        warning->job->state <= JOB_RUNNING)
        ask(warning, signal);
}

/* Slurm may have sent the signal to the workers too, and their exits may have arrived before it. */
static bool comes_in_time(const struct job *job)
{
    bool only_epoch = job->kind->has_workers && !job->kind->many_epochs;
    if (only_epoch && job->ranks.finished == job->plan->size)
        return false; /* all is well, whatever the state */
    bool just_now = teardown_age_ms(job) < SIGNAL_ROUND_MS;
    return job->state <= JOB_RUNNING || (job->state == JOB_ENDING && just_now);
}

/* A warning that ends the job. A second one, and one that comes too late, is only passed on. */
static bool warned(struct warning *warning, int signal)
{
    bool first = warning->signal == 0 && !is_asking(warning) && !warning->user_ends &&
                 comes_in_time(warning->job);
    if (!first && signal_wants_end(signal))
        return false;
    if (!first)
        warning_pass_on(warning, signal);
    else if (in_slurm(warning->job))
        ask(warning, signal);
    else
        answer_warning(warning, signal, NULL);
    return true;
}

bool warning_takes(struct warning *warning, int signal)
{
    if (signal == warning->rules.warn) {
        if (warning->rules.warn_ends)
            return warned(warning, signal);
        only_warns(warning, signal);
        return true;
    }
    bool perhaps_slurms = signal == SIGTERM && warning->rules.requeue && !warning->user_ends &&
                          (warning->signal != 0 || comes_in_time(warning->job)) &&
                          warning->job->state < JOB_CLOSING;
    if (!perhaps_slurms || (is_asking(warning) && warning->asked_about == SIGTERM))
        return false; /* a second TERM does not wait for the answer about the first */
    ask(warning, SIGTERM);
    return true;
}

void warning_node_term(struct warning *warning)
{
    if (warning->rules.requeue && warning->signal == 0 && !is_asking(warning) &&
        warning->job->state <= JOB_RUNNING)
        ask(warning, 0);
}

void warning_user_ends(struct warning *warning)
{
    warning->user_ends = true;
    stop_asking(warning);
}

/* An answer that decides on the kind of end is still due. */
static bool busy(struct job *job)
{
    const struct warning *warning = job_part(job, warning);
    return is_asking(warning) && (warning->rules.warn_ends || warning->rules.requeue);
}

bool warning_wants_requeue(const struct warning *warning)
{
    return warning->rules.requeue && warning->signal != 0 && !warning->user_ends;
}

void warning_verdict(const struct warning *warning, struct verdict *out)
{
    const struct job *job = warning->job;
    AUTO_BUF struct buf text = BUF_INIT(sizeof(out->explanation) - 1);
    if (warning->signal == 0 || warning->user_ends)
        return;
    if (warning->rules.requeue) {
        buf_printf(&text, "warning signal SIG%s: requeuing the Slurm job %s",
                   signal_short_name(warning->signal), job->request->allocation->job_id);
        verdict_set(out, STATUS_REQUEUED, CAUSE_REQUEUED, NULL);
    } else if (out->cause == CAUSE_INTERRUPTED) {
        buf_printf(&text, "warning signal SIG%s: not all workers exited with 0",
                   signal_short_name(warning->signal));
    } else {
        return;
    }
    memcpy(out->explanation, buf_text(&text), text.length + 1);
}

/* If Slurm cannot requeue the job, the user learns it at the start, not when the time is over. */
static int check_requeue(const struct job *job, struct error *err)
{
    if (!in_slurm(job))
        return error_usage(err, "%s: this Slurm job has no id (SLURM_JOB_ID is not set)",
                           settings_place(job->settings, OPT_slurm_requeue));
    char *path AUTO_FREE = child_in_path("scontrol");
    if (path == NULL)
        return error_usage(err,
                           "%s: cannot find Slurm's scontrol in PATH; start hvdrun outside the "
                           "container, or extend PATH",
                           settings_place(job->settings, OPT_slurm_requeue));
    return 0;
}

static int open_part(struct job *job, struct error *err)
{
    struct warning *warning = job_part(job, warning);
    const struct allocation *allocation = job->request->allocation;
    bool slurm = allocation != NULL && allocation->kind == ALLOCATION_SLURM;
    warning->job = job;
    warning->workers_time = loop_timer_create(job->loop, workers_time_over, warning);
    warning->second_look = loop_timer_create(job->loop, second_look, warning);
    if (signal_rules_from(job->settings, slurm, &warning->rules, err) < 0)
        return -1;
    return warning->rules.requeue ? check_requeue(job, err) : 0;
}

static void close_part(struct job *job)
{
    struct warning *warning = job_part(job, warning);
    stop_asking(warning);
    loop_timer_destroy(warning->workers_time);
    loop_timer_destroy(warning->second_look);
}

/* Only the verdict remains: no answer is awaited any longer. */
static void over(struct job *job)
{
    stop_asking(job_part(job, warning));
}

const struct driver_part warning_part = {.name = "warning",
                                         .size = sizeof(struct warning),
                                         .open = open_part,
                                         .close = close_part,
                                         .busy = busy,
                                         .over = over};
