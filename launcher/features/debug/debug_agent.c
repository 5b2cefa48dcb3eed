/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debuggers and shells on this node: each is a child of the agent below a terminal of its own. The
 * driver reads and writes that terminal with questions about the topic "session". It asks for more
 * only when the user has taken what came before, so a program that prints without end waits here.
 *
 *   state     OPEN      the program has ended     READ has told it     CLOSE
 *   (none)    RUNNING
 *   RUNNING             ENDED                                          CLOSING
 *   ENDED                                         (none)               (none)
 *   CLOSING             (none)
 *
 * CLOSE, or the end of the agent, never leaves a worker stopped: a debugger that gets HUP detaches.
 * The kernel does that for one that gets KILL. What still is stopped then is continued.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent_state.h"
#include "agent/ending.h"
#include "base/fd.h"
#include "base/mem.h"
#include "features/debug/session_program_agent.h"
#include "features/debug/session_wire.h"
#include "io/child.h"
#include "io/loop.h"
#include "io/proc.h"
#include "io/pty.h"

#define HANGUP_MS 5000               /* a debugger reads symbols before it looks at its signals */
#define LATE_MAX ((size_t)256 << 10) /* what it has left in a pipe, not what others put there */
#define KILL_AGAIN_MS 20
#define KILLS_MAX 250

struct session {
    LIST_ENTRY(session) others;
    struct debug_desk *desk;
    uint32_t number;
    pid_t group; /* its session, too */
    bool runs;   /* the first process of the group, which is the child */
    bool ended;  /* and nobody else is left to wait for */
    int status, kills;
    bool closing;
    bool of_debugger;
    bool was_stopped, continued; /* its worker: before the debugger came, and when it had gone */
    uint32_t seat;
    pid_t worker; /* 0: none */
    int master;   /* of the terminal, or the end of a pipe; -1: nothing more is wanted */
    int input;    /* of what is typed: the terminal again, or another pipe; -1: it is closed */
    bool drained; /* nothing more comes from it */
    bool at_end;  /* nothing more is typed */
    size_t late;  /* bytes that came after the program had ended */
    struct loop_fd *ready, *writable;
    struct loop_timer *patience; /* until KILL */
    struct asked reader, writer; /* whose questions wait for an answer, if post is not NULL */
    struct buf in;               /* of the writer, for the terminal */
};

struct debug_desk {
    struct agent *agent;
    LIST_HEAD(, session) sessions;
};

static struct session *find(const struct debug_desk *desk, uint32_t number)
{
    struct session *session = desk == NULL ? NULL : LIST_FIRST(&desk->sessions);
    while (session != NULL && session->number != number)
        session = LIST_NEXT(session, others);
    return session;
}

static void answer(struct asked *asked, const Hvdrun__SessionAnswer *message)
{
    if (asked->post != NULL)
        asked_answer(asked, &message->base);
    asked->post = NULL;
}

static void answer_empty(struct asked *asked)
{
    const Hvdrun__SessionAnswer message = HVDRUN__SESSION_ANSWER__INIT;
    answer(asked, &message);
}

static void destroy(struct session *session)
{
    answer_empty(&session->writer);
    answer_empty(&session->reader);
    LIST_REMOVE(session, others);
    loop_fd_destroy(session->ready);
    loop_fd_destroy(session->writable);
    loop_timer_destroy(session->patience);
    fd_close(&session->input);
    fd_close(&session->master);
    buf_destroy(&session->in);
    free(session);
}

/* The terminal, or the pipes */

static void arm(struct session *session)
{
    bool reads = session->reader.post != NULL && !session->drained;
    if (session->ready != NULL)
        loop_fd_watch(session->ready, reads ? LOOP_READ : 0);
    if (session->writable != NULL)
        loop_fd_watch(session->writable, session->in.length > 0 ? LOOP_WRITE : 0);
}

static bool is_live(const struct session *session)
{
    uint32_t seat;
    return crews_seat_of(session->desk->agent->crews, session->worker, &seat) &&
           seat == session->seat;
}

/* A worker that the debugger has left stopped: true. One that is about to stop, because the signal
 * for that has not reached it yet, goes on as well. Not one that was stopped before, or that
 * somebody else traces, and not while all of them are stopped. */
static bool continue_worker(const struct session *session)
{
    struct proc_stat stat;
    bool may = session->of_debugger && !session->was_stopped && is_live(session) &&
               !session->desk->agent->liveness.suspended;
    if (!may || proc_read_stat(session->worker, 0, &stat) < 0 || stat.state == 't')
        return false;
    return kill(session->worker, SIGCONT) == 0 && stat.state == 'T';
}

static void tell_end(struct session *session)
{
    Hvdrun__SessionAnswer message = HVDRUN__SESSION_ANSWER__INIT;
    message.over = true;
    message.status = (uint32_t)(WIFSIGNALED(session->status) ? 128 + WTERMSIG(session->status)
                                                             : WEXITSTATUS(session->status));
    message.continued = session->continued;
    answer(&session->reader, &message);
    destroy(session);
}

/* Answers READ, if there is something to say. May destroy the session. */
static void serve_reader(struct session *session)
{
    uint8_t bytes[SESSION_BODY_MAX];
    if (session->reader.post == NULL)
        return;
    bool enough = session->drained || session->late > LATE_MAX;
    ssize_t got = enough ? 0 : fd_read(session->master, bytes, sizeof(bytes));
    if (got > 0) {
        session->late += session->ended ? (size_t)got : 0;
        Hvdrun__SessionAnswer message = HVDRUN__SESSION_ANSWER__INIT;
        message.data = (ProtobufCBinaryData){(size_t)got, bytes};
        answer(&session->reader, &message);
    } else if (got == 0 || errno != EAGAIN) { /* EIO: no process has the terminal any more */
        session->drained = true;
    }
    if (got <= 0 && session->ended)
        tell_end(session);
}

static void close_input(struct session *session)
{
    loop_fd_destroy(session->writable);
    session->writable = NULL;
    fd_close(&session->input);
}

static void serve_writer(struct session *session)
{
    while (session->in.length > 0) {
        ssize_t put = fd_write(session->input, buf_text(&session->in), session->in.length);
        if (put < 0 && errno == EAGAIN)
            return;
        buf_consume(&session->in, put > 0 ? (size_t)put : session->in.length);
    }
    if (session->at_end)
        close_input(session);
    answer_empty(&session->writer);
}

static void may_write(void *context, int what)
{
    struct session *session = context;
    (void)what;
    serve_writer(session);
    arm(session);
}

static void may_read(void *context, int what)
{
    struct session *session = context;
    struct debug_desk *desk = session->desk;
    uint32_t number = session->number;
    (void)what;
    serve_reader(session);
    session = find(desk, number);
    if (session != NULL)
        arm(session);
}

static int open_terminal(struct session *session, const Hvdrun__SessionRequest *request,
                         int given[3])
{
    int ends[2];
    if (pty_open(ends, (int)request->rows, (int)request->columns) < 0)
        return -1;
    session->master = ends[0];
    session->input = fcntl(ends[0], F_DUPFD_CLOEXEC, 3);
    for (int i = 0; i < 3; i++)
        given[i] = fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
    close(ends[1]);
    return given[0] < 0 || given[1] < 0 || given[2] < 0 ? -1 : 0;
}

/* For a user without a terminal: what the program prints is for a file or a program. */
static int open_pipes(struct session *session, int given[3])
{
    int in[2], out[2];
    if (fd_pipe(in) < 0)
        return -1;
    given[0] = in[0];
    session->input = in[1];
    if (fd_pipe(out) < 0)
        return -1;
    session->master = out[0];
    given[1] = out[1];
    given[2] = fcntl(out[1], F_DUPFD_CLOEXEC, 3);
    return given[2] < 0 ? -1 : 0;
}

/* `given`: what the program gets as 0 to 2; the caller closes them. */
static int open_ends(struct session *session, const Hvdrun__SessionRequest *request, int given[3])
{
    bool terminal = request->term[0] != '\0';
    int result = terminal ? open_terminal(session, request, given) : open_pipes(session, given);
    return result < 0 || session->master < 0 || session->input < 0 ||
                   fd_nonblock(session->master) < 0 || fd_nonblock(session->input) < 0
               ? -1
               : 0;
}

/* What is started */

static int spawn(struct session *session, const Hvdrun__SessionRequest *request, const int given[3],
                 struct error *err)
{
    const struct session_worker worker = {session->worker, session->was_stopped};
    struct session_program program;
    struct rlimit limit; /* as the worker has it; ours is a higher one */
    struct child_limit files = {.resource = RLIMIT_NOFILE};
    bool is_known =
        session->worker != 0 && prlimit(session->worker, RLIMIT_NOFILE, NULL, &limit) == 0;
    if (is_known)
        files.soft = limit.rlim_cur;
    if (session_program_make(request, &worker, &program, err) == 0) {
        struct child_spec spec = {.path = program.path,
                                  .argv = strv_items(&program.argv),
                                  .envp = strv_items(&program.env),
                                  .wdir = program.wdir,
                                  .fds = {given[0], given[1], given[2]},
                                  .keep_fd = -1,
                                  .controlling_terminal = request->term[0] != '\0',
                                  .mask = session->desk->agent->config->mask,
                                  .limits = &files,
                                  .limit_count = is_known ? 1 : 0,
                                  .script_shell = "/bin/sh"};
        session->group = child_spawn(&spec, NULL, err);
        session->runs = session->group > 0;
    }
    session_program_destroy(&program);
    return session->runs ? 0 : -1;
}

/* The end */

static void kill_group(const struct session *session)
{
    if (session->group > 0)
        kill(-session->group, SIGKILL);
}

/* A debugger may be a child of a shell that has ended. What a user has left behind with a shell may
 * go on, as after a logout. May destroy the session. */
static void settle(void *context)
{
    struct session *session = context;
    bool ends = session->of_debugger || session->closing;
    if (session->runs || (ends && kill(-session->group, 0) == 0 && session->kills < KILLS_MAX)) {
        session->kills++;
        kill_group(session);
        if (!session->runs)
            loop_timer_set(session->patience, KILL_AGAIN_MS);
        return;
    }
    session->ended = true;
    session->continued = continue_worker(session);
    if (session->closing)
        destroy(session);
    else
        serve_reader(session);
}

static void close_session(struct session *session)
{
    if (session->closing)
        return;
    session->closing = true;
    if (session->ended) {
        destroy(session);
        return;
    }
    loop_fd_destroy(session->ready);
    session->ready = NULL;
    session->drained = true;
    close_input(session);
    buf_clear(&session->in);
    answer_empty(&session->writer);
    answer_empty(&session->reader);
    kill(-session->group, SIGHUP);
    kill(-session->group, SIGCONT);
    fd_close(&session->master); /* HUP to what is in front of the terminal */
    loop_timer_set(session->patience, HANGUP_MS);
}

/* Its debugger or shell is no more. */
static void stranger(struct agent *agent, const struct reaper_exit *exit)
{
    struct session *session = LIST_FIRST(&agent_own(agent, debug_desk)->sessions);
    while (session != NULL && (!session->runs || session->group != exit->pid))
        session = LIST_NEXT(session, others);
    if (session == NULL)
        return;
    session->runs = false;
    session->status = exit->wait_status;
    if (!loop_timer_is_set(session->patience) || kill(-session->group, 0) < 0)
        settle(session); /* else others of the group have got HUP, and may still detach */
}

/* Requests */

static int open_session(struct session *session, const Hvdrun__SessionRequest *request,
                        struct error *err)
{
    struct proc_stat stat;
    int given[3] = {-1, -1, -1}, result = 0;
    if (session->worker != 0 && !is_live(session))
        return error_set(err, "the rank has just ended");
    session->was_stopped =
        session->worker != 0 && proc_read_stat(session->worker, 0, &stat) == 0 && stat.state == 'T';
    if (open_ends(session, request, given) < 0)
        result = error_errno(err, errno, "cannot open a terminal on %s", request->host);
    else
        result = spawn(session, request, given, err);
    for (int i = 0; i < 3; i++)
        fd_close(&given[i]);
    if (result < 0)
        return -1;
    if (session->of_debugger && crews_release(session->desk->agent->crews, session->seat, false))
        session->was_stopped = false; /* it waited at its start: now the debugger holds it */
    return 0;
}

static int begin(struct debug_desk *desk, const Hvdrun__SessionRequest *request, struct error *err)
{
    struct loop *loop = desk->agent->loop;
    struct session *session =
        MEM_NEW((struct session){.desk = desk,
                                 .number = request->session,
                                 .of_debugger = request->debugger && request->of_rank,
                                 .seat = request->seat,
                                 .worker = request->of_rank ? (pid_t)request->pid : 0,
                                 .master = -1,
                                 .input = -1});
    buf_init(&session->in, SESSION_BODY_MAX);
    LIST_INSERT_HEAD(&desk->sessions, session, others);
    session->patience = loop_timer_create(loop, settle, session);
    if (open_session(session, request, err) < 0) {
        destroy(session);
        return -1;
    }
    session->ready = loop_fd_create(loop, session->master, may_read, session);
    session->writable = loop_fd_create(loop, session->input, may_write, session);
    return 0;
}

static void open_asked(struct agent *agent, const struct asked *asked,
                       const Hvdrun__SessionRequest *request)
{
    Hvdrun__SessionAnswer message = HVDRUN__SESSION_ANSWER__INIT;
    struct debug_desk *desk = agent_own(agent, debug_desk);
    struct error err = ERROR_INIT;
    if (desk == NULL) {
        desk = mem_alloc(sizeof(*desk));
        desk->agent = agent;
        agent->own[AGENT_PART_debug_desk] = desk;
    }
    if (!ending_is_idle(agent->ending))
        message.problem = (char *)"the job is ending";
    else if (begin(desk, request, &err) < 0)
        message.problem = err.text;
    asked_answer(asked, &message.base);
}

/* About a session that runs. A driver that asks again before the answer has broken a rule of its
 * own, and gets an empty answer to the first question. */
static void carry_out(struct session *session, const struct asked *asked,
                      const Hvdrun__SessionRequest *request)
{
    struct winsize size = {.ws_row = (unsigned short)request->rows,
                           .ws_col = (unsigned short)request->columns};
    struct asked now = *asked;
    switch (request->action) {
    case HVDRUN__SESSION_ACTION__SESSION_READ:
        answer_empty(&session->reader);
        session->reader = now;
        arm(session);
        if (session->ended)
            serve_reader(session);
        return;
    case HVDRUN__SESSION_ACTION__SESSION_WRITE:
        answer_empty(&session->writer);
        session->writer = now;
        session->at_end = session->at_end || request->data.len == 0;
        buf_append(&session->in, request->data.data, request->data.len);
        serve_writer(session);
        arm(session);
        return;
    case HVDRUN__SESSION_ACTION__SESSION_RESIZE:
        if (size.ws_row > 0) /* of a pipe, this does nothing */
            ioctl(session->master, TIOCSWINSZ, &size);
        break;
    case HVDRUN__SESSION_ACTION__SESSION_CLOSE: close_session(session); break;
    default: break;
    }
    answer_empty(&now);
}

static void release(struct agent *agent, const Hvdrun__SessionRequest *request)
{
    if (request->n_seats == 0)
        crews_release(agent->crews, -1, true);
    for (size_t i = 0; i < request->n_seats; i++)
        crews_release(agent->crews, request->seats[i], true);
}

static void asked_session(struct agent *agent, const struct asked *asked,
                          const ProtobufCMessage *message)
{
    const Hvdrun__SessionRequest *request = (const Hvdrun__SessionRequest *)message;
    struct session *session = find(agent_own(agent, debug_desk), request->session);
    if (request->action == HVDRUN__SESSION_ACTION__SESSION_OPEN) {
        open_asked(agent, asked, request);
    } else if (session != NULL && !session->closing) {
        carry_out(session, asked, request);
    } else {
        Hvdrun__SessionAnswer gone = HVDRUN__SESSION_ANSWER__INIT;
        gone.over = true;
        if (request->action == HVDRUN__SESSION_ACTION__SESSION_RELEASE)
            release(agent, request);
        asked_answer(asked, &gone.base);
    }
}

static void close_part(struct agent *agent)
{
    struct debug_desk *desk = agent_own(agent, debug_desk);
    while (!LIST_EMPTY(&desk->sessions)) {
        struct session *session = LIST_FIRST(&desk->sessions);
        kill_group(session);
        destroy(session);
    }
    free(desk);
}

static const struct ask_rule topics[] = {{&topic_session, asked_session}, {NULL}};

const struct agent_part debug_desk_agent_part = {
    .name = "debug_desk", .topics = topics, .close = close_part, .stranger = stranger};
