/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions of `hvdrun debug` and `hvdrun shell` (debug_driver.h). */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"
#include "driver/control/request.h"
#include "driver/job/ask.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/run/run.h"
#include "driver/tell/events.h"
#include "features/debug/debug_driver.h"
#include "features/debug/session_wire.h"

#define SESSIONS_MAX 8 /* a debugger is for one user's eyes */
#define OPEN_MS 8000   /* less than a command waits for an answer */
#define CLOSE_MS 10000
#define FOREVER_MS ((int64_t)10 * 365 * 86400 * 1000) /* the link says that a node is lost */
#define LOOK_MS 1000
#define OUT_MAX (4 * SESSION_BODY_MAX)

struct session {
    LIST_ENTRY(session) others;
    struct debug *debug;
    struct control_later *later; /* the answer to the request; NULL once it is given */
    uint32_t number;
    struct debug_target on;
    char *by;
    int fd; /* -1: it is not open yet */
    struct loop_fd *ready;
    struct loop_timer *look; /* whether the client is still there */
    struct buf in, out;      /* from and for the client */
    bool reads, writes;      /* a question is under way */
    bool greeted;            /* a piece has come: the client has read our answer */
    bool over;               /* `out` has the last piece */
};

struct debug {
    struct job *job;
    LIST_HEAD(, session) sessions;
    size_t count;
    uint32_t number; /* of the last session */
};

static void look_at_clock(struct debug *debug)
{
    const struct session *session;
    struct job *job = debug->job;
    bool on = debug_holds_any(job);
    LIST_FOREACH (session, &debug->sessions, others)
        on = on || (session->on.of_debugger && !session->over &&
                    job->ranks.records[session->on.seat].state == RANK_RUNNING);
    on = on && job->state == JOB_RUNNING;
    if (on != job->times.debugged)
        suspension_debugged(job, on);
}

static void destroy(struct session *session)
{
    struct debug *debug = session->debug;
    ask_forget(debug->job, session);
    LIST_REMOVE(session, others);
    debug->count--;
    loop_fd_destroy(session->ready);
    loop_timer_destroy(session->look);
    fd_close(&session->fd);
    buf_destroy(&session->in);
    buf_destroy(&session->out);
    free(session->by);
    free(session);
    look_at_clock(debug);
}

/* Questions to the agent */

static const struct question question = {&topic_session, NULL, .keep = true};

/* With NULL as `done`, the answer is not needed, and the session may be gone by then. */
static void ask(struct session *session, Hvdrun__SessionRequest *request, int64_t limit_ms,
                ask_done *done)
{
    request->session = session->number;
    struct ask *ask =
        ask_begin(session->debug->job, &question, limit_ms, done, done == NULL ? NULL : session);
    ask_node(ask, session->on.node, &request->base);
}

/* NULL: the host is lost, or has not answered in time. */
static const Hvdrun__SessionAnswer *answer_of(const struct ask *ask)
{
    bool has = ask->count == 1 && ask->answers[0].state == ASK_ANSWERED;
    return has ? (const Hvdrun__SessionAnswer *)ask->answers[0].message : NULL;
}

static void advance(struct session *session);

/* The user has gone, or the job ends. */
static void close_at_agent(struct session *session)
{
    Hvdrun__SessionRequest request = HVDRUN__SESSION_REQUEST__INIT;
    request.action = HVDRUN__SESSION_ACTION__SESSION_CLOSE;
    ask(session, &request, CLOSE_MS, NULL);
}

static void say_left(const struct session *session, const char *what)
{
    if (session->on.of_debugger)
        log_notice(&session->debug->job->log, "the debugger has left rank %d on %s%s",
                   session->on.rank, session->on.node->host, what);
}

static void leave(struct session *session)
{
    if (!session->over) {
        close_at_agent(session);
        say_left(session, "");
    }
    destroy(session);
}

/* Sends a last piece; nothing is wanted from the agent any more. */
static void end(struct session *session)
{
    session->over = true;
    ask_forget(session->debug->job, session);
    look_at_clock(session->debug);
    advance(session);
}

static void break_off(struct session *session, const char *why)
{
    session_put(&session->out, SESSION_BROKEN, why, strlen(why));
    say_left(session, "");
    end(session);
}

static void lost(struct session *session)
{
    char *why AUTO_FREE = mem_printf("lost the host %s", session->on.node->host);
    break_off(session, why);
}

static void has_read(void *context, const struct ask *asked)
{
    struct session *session = context;
    const Hvdrun__SessionAnswer *answer = answer_of(asked);
    session->reads = false;
    if (answer == NULL) {
        lost(session);
        return;
    }
    if (answer->data.len > SESSION_BODY_MAX || answer->status > UINT8_MAX) {
        break_off(session, "the agent sent what is too long");
        return;
    }
    if (answer->data.len > 0)
        session_put(&session->out, SESSION_DATA, answer->data.data, answer->data.len);
    if (!answer->over) {
        advance(session);
        return;
    }
    char *remark AUTO_FREE =
        answer->continued
            ? mem_printf("rank %d was still stopped, and goes on now", session->on.rank)
            : mem_strdup("");
    session_put_status(&session->out, (uint8_t)answer->status, remark);
    say_left(session, answer->continued ? ", which was still stopped, and goes on now" : "");
    end(session);
}

static void has_written(void *context, const struct ask *asked)
{
    struct session *session = context;
    session->writes = false;
    if (answer_of(asked) == NULL)
        lost(session);
    else
        advance(session);
}

/* The connection */

/* Hands one piece of the client on, if there is one. -1: what came is none. */
static int pass_on(struct session *session)
{
    struct session_piece piece;
    size_t used = 0;
    int result = session_take(buf_text(&session->in), session->in.length, false, &piece, &used);
    Hvdrun__SessionRequest request = HVDRUN__SESSION_REQUEST__INIT;
    if (result <= 0)
        return result;
    if (piece.kind == SESSION_SIZE) {
        request.action = HVDRUN__SESSION_ACTION__SESSION_RESIZE;
        request.rows = piece.rows;
        request.columns = piece.columns;
    } else {
        request.action = HVDRUN__SESSION_ACTION__SESSION_WRITE;
        request.data = (ProtobufCBinaryData){piece.length, (uint8_t *)piece.body};
    }
    session->greeted = true;
    session->writes = true;
    ask(session, &request, FOREVER_MS, has_written);
    buf_consume(&session->in, used);
    return 0;
}

/* -1: the client has gone. */
static int flush(struct session *session)
{
    while (session->out.length > 0) {
        ssize_t put = send(session->fd, buf_text(&session->out), session->out.length, MSG_NOSIGNAL);
        if (put < 0 && errno == EAGAIN)
            return 0;
        if (put < 0 && errno != EINTR)
            return -1;
        if (put > 0)
            buf_consume(&session->out, (size_t)put);
    }
    return 0;
}

/* Does what can be done now, and waits for the rest. May destroy the session. */
static void advance(struct session *session)
{
    Hvdrun__SessionRequest request = HVDRUN__SESSION_REQUEST__INIT;
    bool broken = !session->over && !session->writes && pass_on(session) < 0;
    if (broken || flush(session) < 0 || (session->over && session->out.length == 0)) {
        leave(session);
        return;
    }
    if (session->greeted && !session->over && !session->reads && session->out.length == 0) {
        request.action = HVDRUN__SESSION_ACTION__SESSION_READ;
        session->reads = true;
        ask(session, &request, FOREVER_MS, has_read);
    }
    bool hears = !session->over && !session->writes;
    loop_fd_watch(session->ready,
                  (hears ? LOOP_READ : 0) | (session->out.length > 0 ? LOOP_WRITE : 0));
}

static void ready(void *context, int what)
{
    struct session *session = context;
    char bytes[SESSION_BODY_MAX];
    bool hears = (what & LOOP_READ) != 0 && !session->over && !session->writes;
    ssize_t got = hears ? fd_read(session->fd, bytes, sizeof(bytes)) : -1;
    if (hears && (got == 0 || (got < 0 && errno != EAGAIN))) {
        leave(session);
        return;
    }
    if (got > 0)
        buf_append(&session->in, bytes, (size_t)got);
    advance(session);
}

/* A program that does not read what was typed must not hide that its user has gone. */
static void look(void *context)
{
    struct session *session = context;
    struct pollfd entry = {.fd = session->fd, .events = 0};
    if (poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLERR)) != 0)
        leave(session);
    else
        loop_timer_set(session->look, LOOK_MS);
}

static void refuse(struct session *session, const char *why)
{
    json_t *reply = json_pack("{s:s}", "error", why);
    control_later_answer(session->later,
                         reply != NULL ? reply : json_pack("{s:s}", "error", "it was refused"));
    destroy(session);
}

static void has_opened(void *context, const struct ask *asked)
{
    struct session *session = context;
    struct job *job = session->debug->job;
    const Hvdrun__SessionAnswer *answer = answer_of(asked);
    char *why AUTO_FREE = answer == NULL
                              ? mem_printf("the host %s did not answer", session->on.node->host)
                              : mem_strdup(answer->problem);
    if (why[0] != '\0') {
        if (answer == NULL)
            close_at_agent(session); /* it may come up later */
        if (answer == NULL && session->on.of_debugger)
            debug_holds_release(job, session->on.seat,
                                NULL); /* which then holds the rank no more */
        refuse(session, why);
        return;
    }
    if (session->on.of_debugger)
        debug_holds_forget(job, session->on.seat);
    json_t *reply = json_pack("{s:b, s:s}", "ok", 1, "host", session->on.node->host);
    session->fd = control_later_take_over(session->later, reply);
    session->later = NULL;
    if (session->fd < 0) {
        leave(session);
        return;
    }
    session->ready = loop_fd_create(job->loop, session->fd, ready, session);
    session->look = loop_timer_create(job->loop, look, session);
    loop_timer_set(session->look, LOOK_MS);
    char *text AUTO_FREE =
        session->on.of_debugger
            ? mem_printf("%s attaches to rank %d on %s: time limits stand still until it leaves",
                         session->by, session->on.rank, session->on.node->host)
            : mem_printf("%s opens a shell on %s", session->by, session->on.node->host);
    log_notice(&job->log, "%s", text);
    events_text(job, session->on.of_debugger ? "debugger_attached" : "shell_opened", text);
    advance(session);
}

/* Requests */

static int check_room(const struct debug *debug, const struct debug_target *target,
                      struct error *err)
{
    const struct session *other;
    if (debug->job->state != JOB_RUNNING)
        return error_set(err, "the job does not run");
    if (debug->count >= SESSIONS_MAX)
        return error_set(err, "this job has %d debuggers and shells already", SESSIONS_MAX);
    LIST_FOREACH (other, &debug->sessions, others) {
        if (target->of_debugger && other->on.of_debugger && other->on.seat == target->seat)
            return error_set(err, "rank %d already has a debugger", target->rank);
    }
    return 0;
}

static const char *text_of(const struct control_asked *asked, const char *key)
{
    const char *text = json_string_value(json_object_get(asked->request, key));
    return text == NULL ? "" : text;
}

static uint32_t size_of(const struct control_asked *asked, const char *key)
{
    json_int_t size = json_integer_value(json_object_get(asked->request, key));
    return size > 0 && size <= UINT16_MAX ? (uint32_t)size : 0;
}

static void open_at_agent(struct session *session, const struct control_asked *asked)
{
    const json_t *words = json_object_get(asked->request, "argv");
    const struct job *job = session->debug->job;
    size_t count = json_array_size(words);
    char **argv AUTO_FREE = mem_array(count + 1, sizeof(*argv));
    Hvdrun__SessionRequest request = HVDRUN__SESSION_REQUEST__INIT;
    for (size_t i = 0; i < count; i++)
        argv[i] = (char *)json_string_value(json_array_get(words, i));
    request.action = HVDRUN__SESSION_ACTION__SESSION_OPEN;
    request.of_rank = session->on.seat >= 0;
    if (request.of_rank) {
        request.seat = (uint32_t)session->on.seat;
        request.pid = (uint32_t)job->ranks.records[session->on.seat].pid;
    }
    request.debugger = session->on.of_debugger;
    request.with = (char *)text_of(asked, "with");
    request.term = (char *)text_of(asked, "term");
    request.host = session->on.node->host;
    request.argv = argv;
    request.n_argv = count;
    request.rows = size_of(asked, "rows");
    request.columns = size_of(asked, "columns");
    ask(session, &request, OPEN_MS, has_opened);
}

int debug_open(struct job *job, const struct debug_target *target,
               const struct control_asked *asked, struct error *err)
{
    struct debug *debug = job_part(job, debug);
    if (check_room(debug, target, err) < 0)
        return -1;
    struct session *session = MEM_NEW((struct session){.debug = debug, .on = *target, .fd = -1});
    session->number = ++debug->number;
    session->by = control_asker_text(&asked->asker);
    buf_init(&session->in, 2 * (SESSION_HEADER + SESSION_BODY_MAX));
    buf_init(&session->out, OUT_MAX);
    LIST_INSERT_HEAD(&debug->sessions, session, others);
    debug->count++;
    session->later = asked->later;
    control_later_take(session->later);
    look_at_clock(debug);
    open_at_agent(session, asked);
    return 0;
}

/* The part */

int debug_begin(struct job *job, struct error *err)
{
    (void)err;
    if (!job->kind->has_workers)
        return 0;
    struct debug *debug = mem_alloc(sizeof(*debug));
    debug->job = job;
    job->own[PART_debug] = debug;
    return 0;
}

static void finish(struct session *session)
{
    close_at_agent(session);
    if (session->later != NULL)
        refuse(session, "the job has ended");
    else
        break_off(session, "the job ends");
}

void debug_ending(struct job *job)
{
    struct debug *debug = job_part(job, debug);
    if (debug == NULL)
        return;
    for (struct session *session = LIST_FIRST(&debug->sessions), *next; session != NULL;
         session = next) {
        next = LIST_NEXT(session, others);
        if (!session->over)
            finish(session);
    }
    look_at_clock(debug);
}

void debug_close(struct job *job)
{
    struct debug *debug = job_part(job, debug);
    while (!LIST_EMPTY(&debug->sessions)) {
        struct session *session = LIST_FIRST(&debug->sessions);
        if (session->later != NULL)
            refuse(session, "the job has ended");
        else
            destroy(session);
    }
    free(debug);
}

void debug_ranks_changed(struct job *job)
{
    if (job_part(job, debug) != NULL)
        look_at_clock(job_part(job, debug));
}
