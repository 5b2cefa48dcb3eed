/* SPDX-License-Identifier: Apache-2.0 */
#include "line/line.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"

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
    ssize_t length;
    do
        length = recv(fd, bytes, LINE_PACKET_MAX, MSG_TRUNC | MSG_DONTWAIT);
    while (length < 0 && errno == EINTR);
    return length;
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
    ssize_t sent;
    do
        sent = send(line->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return 1;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? 0 : -1;
}
