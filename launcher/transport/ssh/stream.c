/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/mem.h"
#include "transport/boot/boot.h"
#include "transport/boot/login_end.h"
#include "transport/ssh/pump.h"

struct ssh_stream {
    struct pump *pump; /* NULL: the session has ended */
    struct boot *boot; /* NULL: the agent is up */
    int far_fd;        /* of the pump; until the agent is up */
    char *unique;
    char *ended; /* why the session ended before the agent was up; NULL: it has not */
    int status;  /* of the command then; -1: not known */
    char *said;  /* the last line of its stderr then */
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
    bool cut = boot_was_cut(stream->boot) && stream->ended != NULL;
    const char *last = stream->pump == NULL ? "" : pump_last_line(stream->pump);
    if (cut && last[0] == '\0')
        last = boot_noise(stream->boot);
    AUTO_FREE char *line = NULL;
    if (cut && !boot_has_answered(stream->boot) && login_end_is_plain(stream->status))
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
        stream->status = pump_exit_status(pump);
        stream->said = mem_strdup(pump_last_line(pump));
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
    struct ssh_stream *stream = mem_alloc(sizeof(*stream));
    *stream = (struct ssh_stream){.far_fd = ends[1],
                                  .unique = mem_printf("%s-%d", room->job_id, node),
                                  .events = events,
                                  .context = context};
    stream->pump = pump_create(room->loop, module, session, ssh_fd, ends[0], &pump_events, stream);
    const struct boot_config config = {.loop = room->loop,
                                       .fd = stream->far_fd,
                                       .image = room->image,
                                       .unique = stream->unique,
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
    free(stream->unique);
    free(stream->ended);
    free(stream->said);
    free(stream);
}
