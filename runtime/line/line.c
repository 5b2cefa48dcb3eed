/* SPDX-License-Identifier: Apache-2.0 */
#include "line/line.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/thread.h"

#define PREFIX (offsetof(struct sockaddr_un, sun_path) + 1) /* the NUL of an abstract name */

static int line_address_get(const char *text, struct sockaddr_un *name, socklen_t *length,
                            struct error *err)
{
    size_t bytes = strlen(text);
    if (bytes < 2 || text[0] != '@' || bytes > sizeof(name->sun_path) ||
        !name_is_safe(text + 1, bytes - 1))
        return error_set(err, "'%.40s' is not the address of a line", text);
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(name->sun_path + 1, text + 1, bytes - 1);
    *length = (socklen_t)(PREFIX + bytes - 1);
    return 0;
}

char *line_address_text(const struct sockaddr_un *name, socklen_t length)
{
    if (length <= PREFIX || name->sun_path[0] != '\0' ||
        !name_is_safe(name->sun_path + 1, length - PREFIX))
        return NULL;
    return mem_printf("@%.*s", (int)(length - PREFIX), name->sun_path + 1);
}

struct line {
    int fd;
};

struct line *line_open(const char *address, struct error *err)
{
    struct sockaddr_un name;
    socklen_t length = 0;
    if (line_address_get(address, &name, &length, err) < 0)
        return NULL;
    /* Children must not keep it open after this process. */
    AUTO_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&name, length) < 0) {
        error_errno(err, errno, "cannot connect to the agent at %s", address);
        return NULL;
    }
    struct line *line = mem_alloc(sizeof(*line));
    line->fd = fd;
    fd = -1;
    return line;
}

void line_close(struct line *line)
{
    if (line == NULL)
        return;
    shutdown(line->fd, SHUT_RDWR); /* forked children may have copies of it */
    fd_close(&line->fd);
    free(line);
}

int line_fd(const struct line *line)
{
    return line->fd;
}

/* As recv(), and without EINTR. The true length of a packet that is too long. */
static ssize_t receive(int fd, uint8_t bytes[LINE_PACKET_MAX])
{
    return TEMP_FAILURE_RETRY(recv(fd, bytes, LINE_PACKET_MAX, MSG_TRUNC | MSG_DONTWAIT));
}

int line_receive(struct line *line, struct line_packet *packet, struct error *err)
{
    uint8_t bytes[LINE_PACKET_MAX];
    do {
        ssize_t length = receive(line->fd, bytes);
        if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (length < 0)
            return error_errno(err, errno, "the line to the agent has failed");
        if (length == 0)
            return error_set(err, "the agent has closed the line");
        if (line_packet_get(bytes, (size_t)length, packet, err) < 0)
            return error_wrap(err, "a packet from the agent cannot be read");
    } while (packet->type == LINE_UNKNOWN);
    return 1;
}

int line_send(struct line *line, const struct line_packet *packet)
{
    uint8_t bytes[LINE_PACKET_MAX];
    size_t length = line_packet_put(packet, bytes);
    ssize_t sent = TEMP_FAILURE_RETRY(send(line->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT));
    if (sent >= 0)
        return 1;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? 0 : -1;
}

/* ---- The reader ------------------------------------------------------------------------------ */

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
    struct line_reader *reader = MEM_NEW((struct line_reader){.ops = ops,
                                                              .context = context,
                                                              .least_epoch = least_epoch,
                                                              .stop = {-1, -1},
                                                              .line = line_open(address, err)});
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
