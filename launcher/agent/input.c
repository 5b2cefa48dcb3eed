/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/input.h"

#include <errno.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/mem.h"
#include "wire/control.pb-c.h"

#define END_OF_TRANSMISSION 4 /* what a terminal's user types for end of file */

struct input {
    const struct post *post;
    struct loop_fd *watch;
    int fd;
    uint32_t seat;
    bool terminal, ending;
    bool inside_line; /* the last byte was no end of line */
    struct buf waiting;
    uint64_t written, granted; /* cumulative */
};

static void input_credit(struct input *input, bool closed)
{
    Hvdrun__Credit message = HVDRUN__CREDIT__INIT;
    input->granted = input->written + INPUT_WINDOW;
    message.seat = input->seat;
    message.bytes = input->granted;
    message.closed = closed;
    post_message(input->post, FRAME_STDIN_CREDIT, &message.base);
}

static void input_close(struct input *input)
{
    loop_fd_destroy(input->watch);
    input->watch = NULL;
    fd_close(&input->fd);
    buf_destroy(&input->waiting);
}

static void input_flush(struct input *input)
{
    while (input->waiting.length > 0) {
        ssize_t put = fd_write(input->fd, buf_text(&input->waiting), input->waiting.length);
        if (put < 0 && errno == EAGAIN)
            break;
        if (put < 0) { /* EPIPE: the worker has closed its input */
            input_close(input);
            input_credit(input, true);
            return;
        }
        buf_consume(&input->waiting, (size_t)put);
        input->written += (uint64_t)put;
    }
    if (input->granted - input->written <= INPUT_WINDOW / 2)
        input_credit(input, false);
    if (input->waiting.length == 0 && input->ending && !input->terminal)
        input_close(input);
    else
        loop_fd_watch(input->watch, input->waiting.length > 0 ? LOOP_WRITE : 0);
}

static void input_writable(void *context, int what)
{
    (void)what;
    input_flush(context);
}

struct input *input_create(struct loop *loop, const struct post *post, int fd, uint32_t seat,
                           bool terminal)
{
    struct input *input =
        MEM_NEW((struct input){.post = post,
                               .fd = fd,
                               .seat = seat,
                               .terminal = terminal,
                               /* the driver keeps to the window; twice is room for its ^D */
                               .waiting = BUF_INIT((size_t)2 * INPUT_WINDOW)});
    fd_nonblock(fd);
    input->watch = loop_fd_create(loop, fd, input_writable, input);
    input_credit(input, false);
    return input;
}

void input_destroy(struct input *input)
{
    if (input == NULL)
        return;
    input_close(input);
    free(input);
}

void input_bytes(struct input *input, const uint8_t *bytes, size_t length)
{
    /* Inside a line the first one only hands over what has been typed so far. */
    static const uint8_t end[] = {END_OF_TRANSMISSION, END_OF_TRANSMISSION};
    if (input->fd < 0 || input->ending)
        return;
    input->ending = length == 0;
    if (length == 0 && input->terminal)
        buf_append(&input->waiting, end, input->inside_line ? 2 : 1);
    if (length > 0)
        input->inside_line = bytes[length - 1] != '\n';
    /* A driver that sends beyond its credit loses the excess: it broke the protocol. */
    buf_append(&input->waiting, bytes, length);
    input_flush(input);
}
