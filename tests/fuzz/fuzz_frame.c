/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: the header, the layout of OUTPUT and STDIN, and a link that is fed with these bytes; once
 * more with the frames in them numbered as they should be. */
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "frames.h"
#include "io/link.h"

struct end {
    struct loop *loop;
    size_t bytes;
    bool closed;
};

static void on_frame(void *context, const struct frame_header *header, const uint8_t *body)
{
    struct end *end = context;
    uint32_t sum = 0;
    struct error err = ERROR_INIT;
    struct frame_data data;
    FUZZ_CHECK(!end->closed && header->version == FRAME_VERSION);
    FUZZ_CHECK(strcmp(frame_name(header->type), "unknown") != 0 && header->type != FRAME_PART);
    FUZZ_CHECK(header->type != FRAME_PIECE && header->type != FRAME_PIECES_END);
    for (uint32_t i = 0; i < header->length; i++)
        sum += body[i];
    end->bytes += header->length + (sum & 0);
    int result = frame_data_get(body, header->length, &data, &err);
    fuzz_check_error(result, &err);
    FUZZ_CHECK(result < 0 || data.stream <= 2);
}

static void on_closed(void *context, const char *reason)
{
    struct end *end = context;
    FUZZ_CHECK(!end->closed && (reason == NULL || reason[0] != '\0'));
    end->closed = true;
    loop_stop(end->loop);
}

static void feed(const uint8_t *data, size_t size)
{
    static const struct link_ops ops = {.frame = on_frame, .closed = on_closed};
    struct end end = {.closed = false};
    int pair[2];
    size_t sent = 0;
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    fd_nonblock(pair[1]);
    while (sent < size) {
        ssize_t put = fd_write(pair[1], data + sent, size - sent);
        if (put <= 0)
            break;
        sent += (size_t)put;
    }
    fd_close(&pair[1]);
    end.loop = loop_create(NULL);
    struct link *link = link_create(end.loop, pair[0], pair[0], &ops, &end, NULL);
    loop_run(end.loop);
    FUZZ_CHECK(end.closed && end.bytes <= size);
    link_destroy(link);
    loop_destroy(end.loop);
}

FUZZ_TARGET
{
    struct frame_header header;
    struct error err = ERROR_INIT;
    if (size >= FRAME_HEADER_SIZE) {
        int result = frame_header_get(data, &header, &err);
        fuzz_check_error(result, &err);
        FUZZ_CHECK(result < 0 || header.length <= FRAME_BODY_MAX);
    }
    feed(data, size);
    AUTO_BUF struct buf numbered = BUF_INIT(size + 1);
    buf_append(&numbered, data, size);
    frames_number(&numbered, 0);
    feed((const uint8_t *)buf_text(&numbered), numbered.length);
    return 0;
}
