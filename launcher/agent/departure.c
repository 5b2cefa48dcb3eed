/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/departure.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/room_test.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/plain.h"
#include "base/strv.h"
#include "base/text.h"
#include "io/program.h"

/*
 * The preemption probe: a program of the user that runs again and again, to find out whether this
 * host will soon be preempted.
 *
 * Contract of a probe: status 0 means yes. The first word on stdout can be the remaining seconds
 * (digits, perhaps with a fraction; without it the deadline is unknown). The rest of that line is
 * the reason. Status 1 means no. Any other end is a warning, once for each distinct text, and the
 * probe runs again. So is a probe that takes longer than PREEMPT_LIMIT_MS: its whole process group
 * is killed.
 *
 * One probe runs at a time; a period lies between the end of one and the start of the next. It runs
 * without a shell, in a session of its own, with an empty stdin (io/program.h). After a notice with
 * a deadline it does not run again. After a notice without one it does, to learn the deadline.
 */

enum { PREEMPT_LIMIT_MS = 10000 };

#define STDOUT_MAX ((size_t)4096)
#define WARNINGS_MAX 16 /* distinct ones, then no more */
#define WHY_MAX 200
#define SECONDS_MAX 31536000.0

struct preempt {
    struct loop *loop;
    struct helpers *helpers;
    struct loop_timer *timer; /* the next question */
    struct program *program;  /* the probe that runs; NULL */
    struct strv words;
    int64_t period_ms, limit_ms;
    const struct log *log;
    void (*notice)(void *context, bool has_deadline, int64_t within_ms, const char *why);
    void *context;
    bool noticed; /* a notice without a deadline was given */
    struct strv warned;
};

void preempt_destroy(struct preempt *preempt)
{
    if (preempt == NULL)
        return;
    program_cancel(preempt->program);
    loop_timer_destroy(preempt->timer);
    strv_destroy(&preempt->words);
    strv_destroy(&preempt->warned);
    free(preempt);
}

/* Once for each text; a probe that puts the time into it must not fill the log either. */
static void warn(struct preempt *preempt, const char *text)
{
    if (preempt->warned.count >= WARNINGS_MAX || strv_has(&preempt->warned, text))
        return;
    strv_add(&preempt->warned, text);
    log_warning(preempt->log, "preemption probe %s: %s; hvdrun runs it again every %.3g s",
                preempt->words.items[0], text, (double)preempt->period_ms / 1000);
    if (preempt->warned.count == WARNINGS_MAX)
        log_warning(preempt->log, "preemption probe %s: further warnings are not shown",
                    preempt->words.items[0]);
}

/* A part of the probe's output, without control bytes and not too long. The caller frees it. */
static char *clean(const char *text, size_t length)
{
    text_trim(&text, &length);
    char *line = mem_strndup(text, length < WHY_MAX ? length : WHY_MAX);
    for (char *at = line; *at != '\0'; at++) {
        if (*at == '\t')
            *at = ' ';
        else if ((unsigned char)*at < ' ' || (unsigned char)*at >= 0x7f)
            *at = '?';
    }
    return line;
}

/* "SECONDS reason" or "reason": true when the first word is a number of seconds. */
static bool take_seconds(const char *line, int64_t *within_ms, size_t *length)
{
    double seconds = 0;
    *length = strcspn(line, " ");
    if (*length == 0 || strspn(line, "0123456789.") != *length)
        return false;
    char *word AUTO_FREE = mem_strndup(line, *length);
    if (parse_double(word, 0, SECONDS_MAX, &seconds, NULL) < 0)
        return false;
    *within_ms = (int64_t)(seconds * 1000);
    return true;
}

/* `notice` may destroy us, so nothing is touched after it. */
static void take_notice(struct preempt *preempt, const char *text)
{
    char *line AUTO_FREE = clean(text, strcspn(text, "\n"));
    int64_t within_ms = 0;
    size_t word = 0;
    bool has_deadline = take_seconds(line, &within_ms, &word);
    char *why AUTO_FREE = has_deadline ? clean(line + word, strlen(line + word)) : mem_strdup(line);
    if (!has_deadline)
        loop_timer_set(preempt->timer, preempt->period_ms);
    if (preempt->noticed && !has_deadline)
        return;
    preempt->noticed = true;
    preempt->notice(preempt->context, has_deadline, within_ms,
                    why[0] != '\0' ? why : "the preemption probe reported a notice");
}

static void answered(void *context, const struct program_result *result)
{
    struct preempt *preempt = context;
    preempt->program = NULL;
    if (result->why == NULL) {
        take_notice(preempt, result->text);
        return;
    }
    if (result->status != 1)
        warn(preempt, result->why);
    loop_timer_set(preempt->timer, preempt->period_ms);
}

static void run_probe(void *context)
{
    struct preempt *preempt = context;
    const struct program_spec spec = {.loop = preempt->loop,
                                      .helpers = preempt->helpers,
                                      .argv = strv_items(&preempt->words),
                                      .name = "it",
                                      .output_max = STDOUT_MAX,
                                      .drops_excess = true,
                                      .time_max_ms = preempt->limit_ms};
    preempt->program = program_start(&spec, answered, preempt);
}

void preempt_set_limit(struct preempt *preempt, int64_t limit_ms)
{
    preempt->limit_ms = limit_ms;
}

struct preempt *preempt_create(struct loop *loop, struct helpers *helpers, char *const *words,
                               size_t count, int64_t period_ms, const struct log *log,
                               void (*notice)(void *context, bool has_deadline, int64_t within_ms,
                                              const char *why),
                               void *context)
{
    struct preempt *preempt = MEM_NEW((struct preempt){.loop = loop,
                                                       .helpers = helpers,
                                                       .period_ms = period_ms,
                                                       .limit_ms = PREEMPT_LIMIT_MS,
                                                       .log = log,
                                                       .notice = notice,
                                                       .context = context});
    for (size_t i = 0; i < count; i++)
        strv_add(&preempt->words, words[i]);
    preempt->timer = loop_timer_create(loop, run_probe, preempt);
    loop_timer_set(preempt->timer, 0);
    return preempt;
}

/*
 * The deadline of this node: a spot machine is reclaimed then, or a node is drained until then.
 * Workers find it in the file that HVDRUN_DEADLINE_FILE names. The file exists only while there is
 * a deadline. It has one line: seconds since 1970 (UTC, three decimals), a blank, and the reason.
 */

static int write_file(const char *path, const char *text)
{
    int fd = fd_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    int result = fd_write_all(fd, text, strlen(text));
    fd_close(&fd);
    return result;
}

#define DEADLINE_MAX_MS (INT64_C(10) * 365 * 86400 * 1000)

struct departure {
    struct loop *loop;
    struct helpers *helpers;
    const struct post *post;
    const struct crews *crews;
    struct strv probe; /* its words; none: there is no probe */
    int64_t period_ms;
    struct preempt *preempt;   /* NULL: it is not asked now */
    struct loop_timer *resume; /* set: it is asked again after a pause */
    char *why;                 /* of the deadline, one line; NULL: there is none */
    int64_t deadline_ms;       /* since 1970 */
};

void departure_destroy(struct departure *departure)
{
    if (departure == NULL)
        return;
    departure_pause(departure);
    loop_timer_destroy(departure->resume);
    strv_destroy(&departure->probe);
    free(departure->why);
    free(departure);
}

/* A reader sees all of the file or nothing. Without a deadline there is none. A failure is a
 * warning. */
static void write_into(void *context, const char *folder)
{
    const struct departure *departure = context;
    int64_t at_ms = departure->deadline_ms;
    char *path AUTO_FREE = mem_printf("%s/" DEADLINE_FILE_NAME, folder);
    if (departure->why == NULL) {
        unlink(path);
        return;
    }
    char *draft AUTO_FREE = mem_printf("%s/." DEADLINE_FILE_NAME, folder);
    char *text AUTO_FREE =
        mem_printf("%" PRId64 ".%03d %s\n", at_ms / 1000, (int)(at_ms % 1000), departure->why);
    if (write_file(draft, text) == 0 && rename(draft, path) == 0)
        return;
    log_warning(&departure->post->log,
                "cannot write the deadline of this host for the workers: %s: %s", path,
                strerror(errno));
    unlink(draft);
}

/* NULL: there is no deadline any more. A later call replaces it. */
static void set_deadline(struct departure *departure, uint64_t within_ms, const char *why)
{
    int64_t within = within_ms < DEADLINE_MAX_MS ? (int64_t)within_ms : DEADLINE_MAX_MS;
    mem_replace(&departure->why, why);
    departure->deadline_ms = clock_wall_ns() / 1000000 + within;
    if (departure->why != NULL)
        plain_line(departure->why, ' ');
    crews_walk_folders(departure->crews, write_into, departure);
}

static void notice(void *context, bool has_deadline, int64_t within_ms, const char *why)
{
    struct departure *departure = context;
    Hvdrun__Terminate message = HVDRUN__TERMINATE__INIT;
    message.has_deadline = has_deadline;
    message.within_ms = has_deadline && within_ms > 0 ? (uint64_t)within_ms : 0;
    message.why = (char *)(why == NULL ? "" : why); /* protobuf-c only reads it */
    if (has_deadline)
        set_deadline(departure, message.within_ms,
                     message.why[0] != '\0' ? message.why : "SIGTERM");
    post_message(departure->post, FRAME_TERMINATE, &message.base);
}

static void ask(void *context)
{
    struct departure *departure = context;
    departure->preempt = preempt_create(departure->loop, departure->helpers, departure->probe.items,
                                        departure->probe.count, departure->period_ms,
                                        &departure->post->log, notice, departure);
}

struct departure *departure_create(struct loop *loop, struct helpers *helpers,
                                   const struct post *post, const struct crews *crews)
{
    struct departure *departure =
        MEM_NEW((struct departure){.loop = loop, .helpers = helpers, .post = post, .crews = crews});
    departure->resume = loop_timer_create(loop, ask, departure);
    return departure;
}

void departure_welcome(struct departure *departure, const Hvdrun__Welcome *welcome)
{
    if (welcome->n_preempt_probe == 0 || departure->probe.count > 0)
        return;
    for (size_t i = 0; i < welcome->n_preempt_probe; i++)
        strv_add(&departure->probe, welcome->preempt_probe[i]);
    departure->period_ms = welcome->preempt_period_ms;
    ask(departure);
}

void departure_pause(struct departure *departure)
{
    loop_timer_clear(departure->resume);
    preempt_destroy(departure->preempt);
    departure->preempt = NULL;
}

void departure_resume(struct departure *departure)
{
    if (departure->probe.count > 0 && departure->preempt == NULL)
        loop_timer_set(departure->resume, departure->period_ms);
}

void departure_sigterm(struct departure *departure, int64_t grace_ms)
{
    /* a second signal brings no later one */
    bool is_news = grace_ms > 0 && (departure->why == NULL ||
                                    clock_wall_ns() / 1000000 + grace_ms < departure->deadline_ms);
    notice(departure, is_news, grace_ms, "");
}

void departure_deadline(struct departure *departure, const Hvdrun__Deadline *message)
{
    set_deadline(departure, message->within_ms, message->none ? NULL : message->why);
}

void departure_inform(struct departure *departure, const struct crew *crew)
{
    if (crew_folder(crew) != NULL)
        write_into(departure, crew_folder(crew));
}
