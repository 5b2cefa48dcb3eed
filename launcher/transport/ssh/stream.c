/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/parts.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "io/helpers.h"
#include "io/loop.h"
#include "model/exit/signal_name.h"
#include "transport/boot/boot.h"
#include "transport/ssh/inside_test.h"
#include "transport/ssh_module/ssh_module.h"

/*
 * The pump passes bytes between an SSH session in SSH_STATE_OPEN and one end of a local socketpair.
 * So all code above sees an ordinary stream. Each direction has a buffer of PUMP_BUFFER bytes and
 * back-pressure: what the other side does not take is not read. The channel's stderr comes out as
 * lines.
 *
 * When the channel or the connection ends, what has arrived is passed on first. Then `ended` comes
 * once, and the owner closes the pump and with it the local end: its reader sees end of file. When
 * the local side ends, the channel gets end of file and the pump goes on reading.
 */

#define PUMP_BUFFER ((size_t)128 << 10)

enum {
    PASSES_PER_TURN = 16, /* then others have their turn */
    READ_SIZE = 32 << 10, /* a channel packet; what is idle has room for no more */
    READ_MAX = 128 << 10, /* where much comes: each read looks at the socket first */
    LAST_WORDS_MS = 300,  /* for the exit status after the output has ended */
};

struct pump {
    struct loop *loop;
    const struct ssh_module *module;
    struct ssh_session *session;
    struct loop_fd *ssh_watch, *local_watch;
    struct loop_timer *again; /* more to do at once */
    struct loop_timer *last_words;
    int local_fd;
    struct buf to_host, from_host;
    size_t read_size;
    struct stderr_lines lines;
    bool local_ended;                         /* nothing more to read from it */
    bool local_broken;                        /* its reader is gone */
    bool local_empty, local_full, host_empty; /* until the loop says otherwise */
    bool eof_sent, output_ended, session_ended, told;
    int exit_status; /* of the command: 0 to 255, 128 + N for signal N; -1: not known */
    char why[320];
    struct pump_events events;
    void *context;
};

static void tell_line(void *context, const char *line)
{
    struct pump *pump = context;
    if (pump->events.line != NULL)
        pump->events.line(pump->context, line);
}

/* The session cannot be used any more; `problem` NULL: it ended on its own. */
static void end_session(struct pump *pump, const char *problem)
{
    if (pump->session_ended)
        return;
    pump->session_ended = true;
    buf_clear(&pump->to_host);
    stderr_lines_end(&pump->lines, tell_line, pump);
    if (problem != NULL) {
        snprintf(pump->why, sizeof(pump->why), "%s",
                 problem[0] == '\0' ? "the ssh connection was lost" : problem);
        return;
    }
    int status = pump->module->exit_status(pump->session);
    pump->exit_status = status;
    const char *last = pump->lines.last;
    AUTO_BUF struct buf code = BUF_INIT(64);
    if (status >= 0) {
        buf_puts(&code, " with ");
        status_text(status, &code);
    }
    snprintf(pump->why, sizeof(pump->why), "the agent's ssh session ended%s%s%s", buf_text(&code),
             last[0] == '\0' ? "" : ": ", last);
}

static void broken(struct pump *pump)
{
    const char *problem = pump->module->problem(pump->session);
    end_session(pump, problem == NULL ? "" : problem);
}

static bool is_full(const struct buf *buf)
{
    return buf->length + READ_SIZE > PUMP_BUFFER;
}

/* True when something has moved. */
static bool read_host(struct pump *pump)
{
    if (pump->session_ended || pump->output_ended || pump->host_empty || is_full(&pump->from_host))
        return false;
    size_t room = pump->read_size;
    ssize_t got = pump->module->read(pump->session, SSH_CHANNEL_OUT,
                                     buf_reserve(&pump->from_host, room), room);
    if (got > 0) {
        if (!pump->local_broken)
            buf_commit(&pump->from_host, (size_t)got);
        if ((size_t)got == room && room < READ_MAX)
            pump->read_size = 2 * room;
    } else if (got == 0) {
        pump->output_ended = true;
        loop_timer_set(pump->last_words, LAST_WORDS_MS);
    } else if (errno == EAGAIN) {
        pump->host_empty = true;
    } else {
        broken(pump);
    }
    return got >= 0;
}

static bool read_stderr(struct pump *pump)
{
    char bytes[4096];
    if (pump->session_ended)
        return false;
    ssize_t got = pump->module->read(pump->session, SSH_CHANNEL_ERR, bytes, sizeof(bytes));
    if (got > 0)
        stderr_lines_feed(&pump->lines, bytes, (size_t)got, tell_line, pump);
    else if (got < 0 && errno != EAGAIN)
        broken(pump);
    return got > 0;
}

static bool write_host(struct pump *pump)
{
    if (pump->session_ended || pump->output_ended)
        return false;
    if (pump->to_host.length == 0) {
        if (!pump->local_ended || pump->eof_sent)
            return false;
        pump->eof_sent = pump->module->send_eof(pump->session) == 0;
        if (!pump->eof_sent && errno != EAGAIN)
            broken(pump);
        return pump->eof_sent;
    }
    ssize_t put =
        pump->module->write(pump->session, buf_text(&pump->to_host), pump->to_host.length);
    if (put > 0)
        buf_consume(&pump->to_host, (size_t)put);
    else if (put < 0 && errno != EAGAIN)
        broken(pump);
    return put > 0;
}

static bool read_local(struct pump *pump)
{
    if (pump->local_ended || pump->local_empty || pump->session_ended || is_full(&pump->to_host))
        return false;
    ssize_t got = fd_read(pump->local_fd, buf_reserve(&pump->to_host, READ_SIZE), READ_SIZE);
    pump->local_empty = got < READ_SIZE;
    if (got > 0) {
        buf_commit(&pump->to_host, (size_t)got);
        return true;
    }
    if (got == 0 || errno != EAGAIN)
        pump->local_ended = true;
    return got == 0;
}

static bool write_local(struct pump *pump)
{
    if (pump->from_host.length == 0 || pump->local_broken || pump->local_full)
        return false;
    size_t all = pump->from_host.length;
    ssize_t put = fd_write(pump->local_fd, buf_text(&pump->from_host), all);
    pump->local_full = put < (ssize_t)all;
    if (put > 0) {
        buf_consume(&pump->from_host, (size_t)put);
        return true;
    }
    if (put < 0 && errno != EAGAIN) {
        pump->local_broken = pump->local_ended = true;
        buf_clear(&pump->from_host);
        return true;
    }
    return false;
}

static void pump_arm(struct pump *pump, bool more)
{
    int local = 0, ssh = pump->session_ended ? 0 : pump->module->wants(pump->session);
    if (!pump->local_ended && !pump->session_ended && !is_full(&pump->to_host))
        local |= LOOP_READ;
    if (pump->from_host.length > 0)
        local |= LOOP_WRITE;
    if (is_full(&pump->from_host)) /* what nobody takes stays where it is */
        ssh &= ~LOOP_READ;
    loop_fd_watch(pump->local_watch, local);
    loop_fd_watch(pump->ssh_watch, ssh);
    if (more)
        loop_timer_set(pump->again, 0);
}

/* The output has ended; the exit status comes a little later, or never. Mostly it has come with
 * the end of the output, and only advance() finds it there. */
static void hear_last_words(struct pump *pump)
{
    if (pump->module->advance(pump->session) != SSH_STATE_OPEN)
        broken(pump);
    else if (pump->module->exit_status(pump->session) >= 0 || !loop_timer_is_set(pump->last_words))
        end_session(pump, NULL);
}

/* What has nothing to pass on needs no memory. One that much has come through keeps it. */
static void rest(struct buf *buf)
{
    if (buf->length == 0 && buf->room <= 2 * READ_SIZE)
        buf_destroy(buf);
}

static void pump_run(void *context)
{
    struct pump *pump = context;
    bool moved = true;
    if (pump->told)
        return;
    pump->host_empty = false;
    if (!pump->session_ended && pump->module->advance(pump->session) != SSH_STATE_OPEN)
        broken(pump);
    for (int pass = 0; moved && pass < PASSES_PER_TURN; pass++) {
        moved = read_local(pump);
        while (read_host(pump)) { /* news of room to write come with what is read: so first */
            moved = true;
            if (pump->local_broken) /* and nothing fills it */
                break;
        }
        moved |= read_stderr(pump);
        if (write_host(pump)) {
            moved = true;
            pump->host_empty = false;
        }
        moved |= write_local(pump);
    }
    if (!moved && pump->output_ended && !pump->session_ended)
        hear_last_words(pump);
    pump_arm(pump, moved);
    rest(&pump->to_host);
    rest(&pump->from_host);
    if (!pump->session_ended || pump->from_host.length > 0)
        return;
    pump->told = true;
    loop_timer_clear(pump->again);
    loop_timer_clear(pump->last_words);
    loop_fd_watch(pump->local_watch, 0);
    loop_fd_destroy(pump->ssh_watch); /* the owner may close its descriptor in the callback */
    pump->ssh_watch = NULL;
    pump->events.ended(pump->context, pump->why);
}

static void ssh_ready(void *context, int what)
{
    (void)what;
    pump_run(context);
}

static void local_ready(void *context, int what)
{
    struct pump *pump = context;
    if ((what & LOOP_READ) != 0)
        pump->local_empty = false;
    if ((what & LOOP_WRITE) != 0)
        pump->local_full = false;
    pump_run(pump);
}

struct pump *pump_create(struct loop *loop, const struct ssh_module *module,
                         struct ssh_session *session, int ssh_fd, int local_fd,
                         const struct pump_events *events, void *context)
{
    struct pump *pump = MEM_NEW((struct pump){.loop = loop,
                                              .module = module,
                                              .session = session,
                                              .local_fd = local_fd,
                                              .read_size = READ_SIZE,
                                              .exit_status = -1,
                                              .events = *events,
                                              .context = context});
    fd_nonblock(local_fd);
    buf_init(&pump->to_host, 2 * PUMP_BUFFER);
    buf_init(&pump->from_host, 2 * PUMP_BUFFER);
    pump->ssh_watch = loop_fd_create(loop, ssh_fd, ssh_ready, pump);
    pump->local_watch = loop_fd_create(loop, local_fd, local_ready, pump);
    pump->again = loop_timer_create(loop, pump_run, pump);
    pump->last_words = loop_timer_create(loop, pump_run, pump);
    loop_timer_set(pump->again, 0);
    return pump;
}

void pump_destroy(struct pump *pump)
{
    if (pump == NULL)
        return;
    loop_fd_destroy(pump->ssh_watch);
    loop_fd_destroy(pump->local_watch);
    loop_timer_destroy(pump->again);
    loop_timer_destroy(pump->last_words);
    fd_close(&pump->local_fd);
    buf_destroy(&pump->to_host);
    buf_destroy(&pump->from_host);
    free(pump);
}

/* The stream: the boot over a pump, then the pump alone. */

struct ssh_stream {
    struct pump *pump; /* NULL: the session has ended */
    struct boot *boot; /* NULL: the agent is up */
    int far_fd;        /* of the pump; until the agent is up */
    char *ended;       /* why the session ended before the agent was up; NULL: it has not */
    int status;        /* of the command then; -1: not known */
    char *said;        /* the last line of its stderr then */
    const struct ssh_stream_events *events;
    void *context;
};

static void boot_stage(void *context, enum transport_stage stage)
{
    struct ssh_stream *stream = context;
    stream->events->stage(stream->context, stage);
}

static void boot_up(void *context)
{
    struct ssh_stream *stream = context;
    int fd = stream->far_fd;
    stream->far_fd = -1;
    boot_destroy(stream->boot);
    stream->boot = NULL;
    stream->events->up(stream->context, fd);
}

static void boot_failed(void *context, enum transport_stage stage, const char *why)
{
    struct ssh_stream *stream = context;
    bool cut = boot_heard(stream->boot)->cut && stream->ended != NULL;
    const char *last = stream->pump == NULL ? "" : stream->pump->lines.last;
    if (cut && last[0] == '\0')
        last = boot_heard(stream->boot)->noise;
    AUTO_FREE char *line = NULL;
    if (cut && !boot_heard(stream->boot)->answered && login_end_is_plain(stream->status))
        line = login_end_text(stream->status, stream->said[0] == '\0' ? last : stream->said);
    else
        line = mem_printf("%s%s%s", cut ? stream->ended : why,
                          last[0] == '\0' ? "" : "; its last output: ", last);
    stream->events->failed(stream->context, stage, line);
}

static void pump_line(void *context, const char *line)
{
    struct ssh_stream *stream = context;
    stream->events->line(stream->context, line);
}

/* Before the agent is up the boot dialogue sees the end of its stream, after what came before it,
 * and says what it means; later the caller gets `lost` first and sees the end then. */
static void pump_ended(void *context, const char *why)
{
    struct ssh_stream *stream = context;
    struct pump *pump = stream->pump;
    stream->pump = NULL;
    if (stream->boot == NULL) {
        stream->events->lost(stream->context, why);
    } else {
        stream->ended = mem_strdup(why); /* it ends once */
        stream->status = pump->exit_status;
        stream->said = mem_strdup(pump->lines.last);
    }
    pump_destroy(pump);
}

struct ssh_stream *ssh_stream_create(const struct transport_room *room,
                                     const struct ssh_module *module, struct ssh_session *session,
                                     int ssh_fd, int node, const struct ssh_stream_events *events,
                                     void *context, struct error *err)
{
    static const struct pump_events pump_events = {.line = pump_line, .ended = pump_ended};
    static const struct boot_events boot_events = {
        .stage = boot_stage, .up = boot_up, .failed = boot_failed};
    int ends[2];
    if (fd_socketpair(ends) < 0) {
        error_errno(err, errno, "cannot create the local end of the connection");
        return NULL;
    }
    struct ssh_stream *stream =
        MEM_NEW((struct ssh_stream){.far_fd = ends[1], .events = events, .context = context});
    stream->pump = pump_create(room->loop, module, session, ssh_fd, ends[0], &pump_events, stream);
    char *unique AUTO_FREE = mem_printf("%s-%d", room->job_id, node);
    const struct boot_config config = {.loop = room->loop,
                                       .fd = stream->far_fd,
                                       .image = room->image,
                                       .unique = unique,
                                       .limit_ms = room->limit_ms};
    stream->boot = boot_create(&config, &boot_events, stream);
    return stream;
}

void ssh_stream_destroy(struct ssh_stream *stream)
{
    if (stream == NULL)
        return;
    boot_destroy(stream->boot);
    pump_destroy(stream->pump);
    fd_close(&stream->far_fd);
    free(stream->ended);
    free(stream->said);
    free(stream);
}
