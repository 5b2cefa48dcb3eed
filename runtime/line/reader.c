/* SPDX-License-Identifier: Apache-2.0 */
#include "line/reader.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/thread.h"
#include "line/line.h"

/* The thread uses `line` for reading only. line_send() is one system call on the same descriptor,
 * which other threads may make at the same time. */
struct line_reader {
    struct line *line;
    const struct line_reader_ops *ops;
    void *context;
    uint32_t least_epoch, epoch; /* 0: the agent has not named it yet */
    bool over;
    int stop[2]; /* a byte ends the thread; to close the write end is not enough, because forked
                    children have copies */
    pthread_t thread;
};

static void take_epoch(struct line_reader *reader, uint32_t epoch)
{
    bool first = reader->epoch == 0;
    if (epoch < reader->least_epoch || epoch == reader->epoch)
        return;
    reader->epoch = epoch;
    reader->over = !first;
    if (!first)
        reader->ops->left(reader->context);
}

static void describe(const struct line_ended *rank, char text[64])
{
    if (rank->how == LINE_EXITED)
        snprintf(text, 64, "it exited with status %d", rank->code);
    else if (rank->how == LINE_KILLED)
        snprintf(text, 64, "it was killed by signal %d", rank->code);
    else
        snprintf(text, 64, "its host was lost");
}

static void take_ended(struct line_reader *reader, const struct line_packet *packet)
{
    for (size_t i = 0; packet->epoch == reader->epoch && i < packet->ended_count; i++) {
        const struct line_ended *rank = &packet->ended[i];
        char text[64];
        describe(rank, text);
        bool failed = rank->how != LINE_EXITED || rank->code != 0;
        reader->ops->ended(reader->context, rank->rank, failed, text);
    }
}

/* false: the line or the epoch is over. */
static bool read_line(struct line_reader *reader)
{
    struct line_packet packet;
    int result = line_receive(reader->line, &packet, NULL);
    for (; result > 0 && !reader->over; result = line_receive(reader->line, &packet, NULL)) {
        if (packet.type == LINE_EPOCH)
            take_epoch(reader, packet.epoch);
        else if (packet.type == LINE_ENDED)
            take_ended(reader, &packet);
        else if (packet.type == LINE_ASK && reader->ops->asked != NULL)
            reader->ops->asked(reader->context);
        else if (packet.type == LINE_ASK_WAITS && reader->ops->asked_waits != NULL)
            reader->ops->asked_waits(reader->context, packet.round);
    }
    return result >= 0 && !reader->over;
}

static void *run(void *context)
{
    struct line_reader *reader = context;
    struct pollfd wait[] = {{.fd = line_fd(reader->line), .events = POLLIN},
                            {.fd = reader->stop[0], .events = POLLIN}};
    while (read_line(reader)) {
        int ready = poll(wait, 2, -1);
        if ((ready < 0 && errno != EINTR) || (ready > 0 && wait[1].revents != 0))
            break;
    }
    return NULL;
}

static void dispose(struct line_reader *reader)
{
    line_close(reader->line);
    fd_close(&reader->stop[0]);
    fd_close(&reader->stop[1]);
    free(reader);
}

struct line_reader *line_reader_create(const char *address, uint32_t least_epoch,
                                       const struct line_reader_ops *ops, void *context,
                                       struct error *err)
{
    struct line_reader *reader = mem_alloc(sizeof(*reader));
    *reader = (struct line_reader){.ops = ops,
                                   .context = context,
                                   .least_epoch = least_epoch,
                                   .stop = {-1, -1},
                                   .line = line_open(address, err)};
    if (reader->line == NULL) {
        dispose(reader);
        return NULL;
    }
    int errnum =
        fd_pipe(reader->stop) < 0 ? errno : thread_start(&reader->thread, "hvd-line", run, reader);
    if (errnum == 0)
        return reader;
    error_errno(err, errnum, "cannot read the line to the agent");
    dispose(reader);
    return NULL;
}

void line_reader_destroy(struct line_reader *reader)
{
    if (reader == NULL)
        return;
    ssize_t done = fd_write(reader->stop[1], "", 1);
    (void)done; /* the pipe is empty */
    pthread_join(reader->thread, NULL);
    dispose(reader);
}

int line_reader_send(struct line_reader *reader, const struct line_packet *packet)
{
    return reader == NULL ? 0 : line_send(reader->line, packet);
}
