/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "features/warm/holder.h"
#include "features/warm/warm_agent.h"
#include "io/reaper.h"
#include "node/proc_state.h"

/* Limits are counted in ticks: what freezes a host freezes them, too. */
#define TICK_MS 2000
#define IMPORT_TICKS 60
#define FORK_TICKS 15     /* the machine may be busy */
#define WAKE_TICKS 3      /* a new one would be as good */
#define HELD_TICKS 2      /* in a row: she is stopped for good */
#define IDLE_MS 1000      /* without a rank that waits, if no more are expected */
#define BATCH_MAX 32      /* ranks; their descriptors are in one message */
#define COLD_MAX 32       /* ranks that start in one turn of the loop */
#define STARTS_MAX 16     /* in a row: each module that does not fit costs one */
#define FILES_OF_A_RANK 4 /* at most */

_Static_assert(2 + BATCH_MAX * FILES_OF_A_RANK <= WARM_FILES_MAX, "a batch is one message");

enum state { AWAY, IMPORTS, IDLE, FORKS, COLD };

struct mother {
    struct mother_config config;
    struct warm_kind kind;
    const sigset_t *mask;
    enum state state;
    int ticks, held_ticks;            /* of the state; of those, the last ones while she was held */
    struct warm_ranks waiting, batch; /* of the batch: those that she forks now */
    size_t batch_count;
    int64_t since_ms;     /* of the state */
    struct strv left_out; /* pairs for mother.py: a module, and what to import in its place */
    int starts;
    bool keep;
    bool rests, wakes; /* she is of an earlier job: not asked yet whether she is fit; asked now */
    int64_t born_ms, used_ms;
    bool used; /* by this job */
    struct mother_process process;
    int go;            /* for the batch, as in struct held; -1 */
    struct held *held; /* ranks whose pids are known */
    size_t held_count;
    struct loop_timer *timer; /* the tick, or the end of IDLE */
    struct loop_timer *soon;  /* go_on() */
};

/* Ranks that wait for a byte of this pipe. All go on at the same time: those that run would take
 * the processors from her while she forks the others. */
struct held {
    int go;
    size_t count;
};

static void start(struct mother *mother);

static void enter(struct mother *mother, enum state state)
{
    mother->state = state;
    mother->since_ms = clock_mono_ms();
    mother->ticks = mother->held_ticks = 0;
    loop_timer_clear(mother->timer);
    if (state == IMPORTS || state == FORKS)
        loop_timer_set(mother->timer, TICK_MS);
}

static void release(struct mother *mother)
{
    static const char bytes[BATCH_MAX] = {[0 ... BATCH_MAX - 1] = 'g'};
    for (size_t i = 0; i < mother->held_count; i++) {
        fd_write_all(mother->held[i].go, bytes, mother->held[i].count);
        fd_close(&mother->held[i].go);
    }
    mother->held_count = 0;
}

/* Ranks that she has forked, and whose pids are not known, end with her or by the end of `go`. */
static void end_process(struct mother *mother)
{
    fd_close(&mother->go);
    release(mother);
    mother_process_end(&mother->process);
}

/* The batch first. */
static struct warm_rank *take_next(struct mother *mother)
{
    struct warm_ranks *list = TAILQ_EMPTY(&mother->batch) ? &mother->waiting : &mother->batch;
    struct warm_rank *rank = TAILQ_FIRST(list);
    if (rank != NULL)
        TAILQ_REMOVE(list, rank, at);
    return rank;
}

static void go_cold(struct mother *mother, const char *why)
{
    end_process(mother);
    enter(mother, COLD);
    log_notice(mother->config.log, "ranks here are not warm: %s", why);
    loop_timer_set(mother->soon, 0);
}

/* In the usual way, and some in each turn, so that the agent does its other work between them. */
static void start_cold(struct mother *mother)
{
    struct warm_rank *rank = take_next(mother);
    for (int i = 1; rank != NULL && i < COLD_MAX; i++) {
        warm_rank_start(rank);
        rank = take_next(mother);
    }
    if (rank != NULL) {
        warm_rank_start(rank);
        loop_timer_set(mother->soon, 0);
    }
}

/* What an earlier job has left is of no use. */
static void begin_anew(struct mother *mother, const char *why)
{
    log_notice(mother->config.log,
               "the interpreter of an earlier job %s: modules are imported again", why);
    end_process(mother);
    mother->starts = 0;
    start(mother);
}

static void heard_ready(struct mother *mother, const char *seconds, const char *modules)
{
    if (mother->wakes)
        log_info(mother->config.log,
                 "process %d of an earlier job has %s modules; ranks are forked from there",
                 (int)mother->process.pid, modules);
    else
        log_info(mother->config.log,
                 "%s modules were imported in %s s; ranks are forked from there", modules, seconds);
    mother->wakes = false;
    enter(mother, IDLE);
}

static void heard_bad(struct mother *mother, const char *module, const char *reason,
                      const char *instead)
{
    log_info(mother->config.log, "each rank imports %s itself: %s", module, reason);
    strv_add(&mother->left_out, module);
    strv_add(&mother->left_out, instead);
    end_process(mother);
    start(mother);
}

/* No module is at fault. */
static void heard_unfit(struct mother *mother, const char *reason)
{
    char *why AUTO_FREE = mem_printf("before any module is imported: %s", reason);
    go_cold(mother, why);
}

static void heard_stale(struct mother *mother, const char *file)
{
    log_info(mother->config.log, "%s has changed: modules are imported again", file);
    TAILQ_CONCAT(&mother->batch, &mother->waiting, at);
    TAILQ_CONCAT(&mother->waiting, &mother->batch, at);
    mother->batch_count = 0;
    end_process(mother);
    start(mother);
}

static void take_pid(struct mother *mother, struct warm_rank *rank, pid_t pid)
{
    if (!rank->cancelled) {
        rank->done(rank->context, pid, NULL);
        mother->config.forked(mother->config.context, pid);
    } else if (reaper_has(pid)) {
        kill(pid, SIGKILL);
    }
    warm_rank_destroy(rank);
}

static void heard_forked(struct mother *mother, struct field_reader *pids)
{
    struct held held = {mother->go, 0};
    size_t count = 0;
    mother->go = -1;
    while (!TAILQ_EMPTY(&mother->batch)) {
        struct warm_rank *rank = take_next(mother);
        int64_t pid = 0;
        parse_int(fields_next(pids), 2, INT32_MAX, &pid, NULL);
        count += pid > 0;
        held.count += pid > 0; /* one that was killed may still take its byte */
        if (pid > 0)
            take_pid(mother, rank, (pid_t)pid);
        else /* no more processes: the usual way says why */
            warm_rank_start(rank);
    }
    log_info(mother->config.log, "%zu rank%s forked in %.2f s", count, count == 1 ? "" : "s",
             (double)(clock_mono_ms() - mother->since_ms) / 1000);
    mother->batch_count = 0;
    mother->starts = 0;
    mother->used = true;
    MEM_ADD(mother->held, mother->held_count) = held;
    enter(mother, IDLE);
}

/* The descriptors of a batch, in the order in which mother.py takes them. */
static size_t list_descriptors(const struct mother *mother, int go, int *fds)
{
    const struct warm_rank *rank;
    size_t count = 1; /* behind that of the text */
    fds[count++] = go;
    TAILQ_FOREACH (rank, &mother->batch, at) {
        for (int i = 0; i < FILES_OF_A_RANK && rank->fds[i] >= 0; i++)
            fds[count++] = rank->fds[i];
    }
    return count;
}

static int begin_batch(struct mother *mother)
{
    AUTO_BUF struct buf text = BUF_INIT((size_t)1 << 30);
    int fds[2 + BATCH_MAX * FILES_OF_A_RANK], go[2] AUTO_FD_PAIR = {-1, -1};
    while (mother->batch_count < BATCH_MAX && !TAILQ_EMPTY(&mother->waiting)) {
        struct warm_rank *rank = TAILQ_FIRST(&mother->waiting);
        TAILQ_REMOVE(&mother->waiting, rank, at);
        TAILQ_INSERT_TAIL(&mother->batch, rank, at);
        mother->batch_count++;
        warm_rank_write(rank, &text);
    }
    if (fd_pipe(go) < 0 ||
        mother_process_send(&mother->process, mother->batch_count, mother->held_count == 0, &text,
                            fds, list_descriptors(mother, go[0], fds)) < 0)
        return -1;
    mother->go = go[1];
    go[1] = -1;
    enter(mother, FORKS);
    return 0;
}

static void wake(struct mother *mother)
{
    mother->rests = false;
    mother->wakes = true;
    enter(mother, IMPORTS);
    if (mother_process_tell(&mother->process, "wake") < 0)
        begin_anew(mother, "has ended");
}

static void go_on(struct mother *mother)
{
    bool waits = !TAILQ_EMPTY(&mother->waiting);
    if (mother->state == COLD) {
        start_cold(mother);
    } else if (mother->state == AWAY && waits) {
        mother->starts = 0;
        start(mother);
    } else if (mother->state == IDLE && waits && mother->rests) {
        wake(mother);
    } else if (mother->state == IDLE && !waits) {
        release(mother);
        if (!mother->keep)
            loop_timer_set(mother->timer, IDLE_MS);
    } else if (mother->state == IDLE && begin_batch(mother) < 0) {
        char *why AUTO_FREE =
            mem_printf("cannot send them to their interpreter: %s", strerror(errno));
        go_cold(mother, why);
    }
}

static void lost(void *context)
{
    struct mother *mother = context;
    if (mother->state == IDLE) {
        end_process(mother);
        enter(mother, AWAY);
        go_on(mother);
    } else if (mother->wakes) {
        begin_anew(mother, "has ended");
    } else {
        go_cold(mother,
                mother->state == IMPORTS
                    ? "the interpreter that imports their modules has ended (-v shows its output)"
                    : "the interpreter that forks them has ended");
    }
}

static void heard(void *context, const char *bytes, const char *end)
{
    struct mother *mother = context;
    struct field_reader fields = {bytes, end};
    const char *text = fields_next(&fields);
    struct field_reader pids = fields;
    const char *first = fields_next(&fields), *second = fields_next(&fields);
    if (strcmp(text, "ready") == 0 && mother->state == IMPORTS)
        heard_ready(mother, first, second);
    else if (strcmp(text, "bad") == 0 && mother->state == IMPORTS)
        heard_bad(mother, first, second, fields_next(&fields));
    else if (strcmp(text, "unfit") == 0 && mother->state == IMPORTS)
        heard_unfit(mother, first);
    else if (strcmp(text, "stale") == 0 && (mother->state == FORKS || mother->wakes))
        heard_stale(mother, first);
    else if (strcmp(text, "forked") == 0 && mother->state == FORKS)
        heard_forked(mother, &pids);
    else
        go_cold(mother, "the interpreter that forks them says what it should not");
    go_on(mother);
}

static void start(struct mother *mother)
{
    struct error err = ERROR_INIT;
    if (++mother->starts > STARTS_MAX) {
        go_cold(mother, "their interpreter was started 16 times in vain (-v shows why)");
        return;
    }
    mother->rests = mother->wakes = false;
    mother->born_ms = clock_mono_ms();
    enter(mother, IMPORTS);
    if (mother_process_start(&mother->process, &mother->kind, mother->mask, &mother->left_out,
                             &err) < 0)
        go_cold(mother, err.text);
}

/* In IMPORTS or FORKS. */
static int limit_ticks(const struct mother *mother)
{
    if (mother->wakes)
        return WAKE_TICKS;
    return mother->state == FORKS ? FORK_TICKS : IMPORT_TICKS;
}

static void tick(struct mother *mother)
{
    char *held AUTO_FREE = proc_state_held(mother->process.pid);
    mother->held_ticks = held == NULL ? 0 : mother->held_ticks + 1;
    mother->ticks++;
    if (mother->held_ticks < HELD_TICKS && mother->ticks < limit_ticks(mother)) {
        loop_timer_set(mother->timer, TICK_MS);
        return;
    }
    bool stopped = mother->held_ticks == HELD_TICKS;
    char *is AUTO_FREE = stopped ? mem_printf("is %s", held) : mem_strdup("does not answer");
    char *which AUTO_FREE =
        mem_printf("the interpreter that %s %s",
                   mother->state == IMPORTS ? "imports their modules" : "forks them", is);
    if (mother->wakes)
        begin_anew(mother, is);
    else
        go_cold(mother, stopped || mother->state == FORKS
                            ? which
                            : "their modules were not imported in two minutes");
}

static void timer_fired(void *context)
{
    struct mother *mother = context;
    if (mother->state == IMPORTS || mother->state == FORKS) {
        tick(mother);
    } else if (mother->state == IDLE && TAILQ_EMPTY(&mother->waiting) && !mother->keep) {
        end_process(mother);
        enter(mother, AWAY);
    }
}

static void soon(void *context)
{
    go_on(context);
}

struct mother *mother_create(const struct mother_config *config, struct warm_kind *kind,
                             const sigset_t *mask)
{
    struct mother *mother =
        MEM_NEW((struct mother){.config = *config, .kind = *kind, .mask = mask, .go = -1});
    mother->process = (struct mother_process){.config = &mother->config,
                                              .heard = heard,
                                              .lost = lost,
                                              .context = mother,
                                              .socket = -1,
                                              .output = STDERR_PIPE_INIT};
    *kind = (struct warm_kind){0};
    TAILQ_INIT(&mother->waiting);
    TAILQ_INIT(&mother->batch);
    mother->timer = loop_timer_create(config->loop, timer_fired, mother);
    mother->soon = loop_timer_create(config->loop, soon, mother);
    return mother;
}

void mother_destroy(struct mother *mother)
{
    if (mother == NULL)
        return;
    end_process(mother);
    for (struct warm_rank *rank = take_next(mother); rank != NULL; rank = take_next(mother))
        warm_rank_destroy(rank);
    loop_timer_destroy(mother->timer);
    loop_timer_destroy(mother->soon);
    strv_destroy(&mother->left_out);
    free(mother->held);
    warm_kind_destroy(&mother->kind);
    free(mother);
}

struct mother *mother_adopt(const struct mother_config *config, struct warm_kept *kept,
                            const sigset_t *mask)
{
    struct mother *mother = mother_create(config, &kept->kind, mask);
    mother_process_adopt(&mother->process, kept->pid, kept->socket);
    mother->born_ms = kept->born_ms;
    mother->used_ms = kept->used_ms;
    mother->rests = mother->keep = true;
    enter(mother, IDLE);
    warm_kept_destroy(kept);
    return mother;
}

bool mother_release(struct mother *mother, struct warm_kept *out)
{
    bool fit = mother->state == IDLE && TAILQ_EMPTY(&mother->waiting) &&
               mother_process_tell(&mother->process, "rest") == 0;
    *out = (struct warm_kept){.socket = -1};
    if (fit) {
        *out = (struct warm_kept){.kind = mother->kind,
                                  .born_ms = mother->born_ms,
                                  .used_ms = mother->used ? clock_mono_ms() : mother->used_ms};
        mother->kind = (struct warm_kind){0};
        release(mother);
        mother_process_release(&mother->process, &out->pid, &out->socket);
    }
    mother_destroy(mother);
    return fit;
}

const struct warm_kind *mother_kind(const struct mother *mother)
{
    return &mother->kind;
}

bool mother_is_cold(const struct mother *mother)
{
    return mother->state == COLD;
}

void mother_add(struct mother *mother, struct warm_rank *rank)
{
    TAILQ_INSERT_TAIL(&mother->waiting, rank, at);
    loop_timer_set(mother->soon, 0); /* what has collected then is one batch */
}

static void drop(struct mother *mother, struct warm_ranks *list, const void *context)
{
    struct warm_rank *rank;
    TAILQ_FOREACH (rank, list, at) {
        if (rank->context == context)
            break;
    }
    if (rank == NULL)
        return;
    if (list == &mother->batch) { /* she may have forked it: known when she answers */
        rank->cancelled = true;
        rank->context = NULL;
        return;
    }
    TAILQ_REMOVE(list, rank, at);
    warm_rank_destroy(rank);
}

void mother_cancel(struct mother *mother, const void *context)
{
    drop(mother, &mother->waiting, context);
    drop(mother, &mother->batch, context);
}

void mother_keep(struct mother *mother, bool keep)
{
    mother->keep = keep;
    if (!keep && mother->state == IDLE && TAILQ_EMPTY(&mother->waiting))
        loop_timer_set(mother->timer, IDLE_MS);
}

bool mother_forks(const struct mother *mother)
{
    return mother->state == FORKS;
}

bool mother_rests(const struct mother *mother)
{
    return mother->rests;
}

bool mother_is_idle(const struct mother *mother)
{
    return mother->state != IMPORTS && mother->state != FORKS && TAILQ_EMPTY(&mother->waiting) &&
           TAILQ_EMPTY(&mother->batch);
}
