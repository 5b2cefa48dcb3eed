/* SPDX-License-Identifier: Apache-2.0 */
#include "features/stacks/stack_door.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/thread.h"
#include "stacks/tasks.h"

#define CALL_MAX 1024

enum wish { WISH_MEMORY, WISH_CALL, WISH_STOP, WISH_NUMBER };

/* Both ends are one program, so the structs need no encoding. */
struct question {
    int64_t deadline_ns;
    int32_t wish, pid, tid;
    uint64_t address; /* for WISH_NUMBER */
};

struct reply {
    int32_t error;   /* 0, or an errno */
    uint32_t length; /* of the bytes that follow */
};

struct stopped {
    struct unwind_registers registers;
    uint64_t stack_at; /* the stack follows */
};

struct stack_door {
    int fd;
    struct loop_fd *readable;
    struct call_watches **watches;
};

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

/* A reply without bytes, and a descriptor (-1: none). */
static int send_reply(int fd, const struct reply *reply, int passed)
{
    union control control = {.bytes = ""};
    struct iovec part = {(void *)reply, sizeof(*reply)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (passed >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &passed, sizeof(int));
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(*reply) ? 0 : -1;
}

static int open_memory(int fd, const struct question *question)
{
    int memory AUTO_FD = rights_own.memory(NULL, question->pid);
    return send_reply(fd, &(struct reply){.error = memory < 0 ? errno : 0}, memory);
}

static int read_call(int fd, const struct question *question)
{
    struct buf text AUTO_BUF = BUF_INIT(CALL_MAX);
    bool read = rights_own.call(NULL, question->pid, question->tid, &text) == 0;
    struct reply reply = {read ? 0 : EPERM, read ? (uint32_t)text.length : 0};
    if (send_reply(fd, &reply, -1) < 0)
        return -1;
    return fd_send_all(fd, buf_text(&text), reply.length);
}

struct stop {
    struct question question;
    int fd;
};

static void send_stopped(int fd, const struct snapshot *snapshot)
{
    struct stopped stopped = {snapshot->registers, snapshot->stack_at};
    struct reply reply = {0, (uint32_t)(sizeof(stopped) + snapshot->stack_length)};
    if (send_reply(fd, &reply, -1) == 0 && fd_send_all(fd, &stopped, sizeof(stopped)) == 0)
        (void)fd_send_all(fd, snapshot->stack, snapshot->stack_length);
}

static void *stop_thread(void *context)
{
    struct stop *stop = context;
    const struct question *question = &stop->question;
    struct snapshot_order order = {.tid = question->tid};
    (void)fd_own_table(stop->fd); /* what it has open stays open when the agent has ended */
    int memory AUTO_FD = rights_own.memory(NULL, question->pid);
    rights_own.stop(NULL, question->pid, memory, question->deadline_ns, &order, 1);
    if (order.error == 0)
        send_stopped(stop->fd, &order.out);
    else
        send_reply(stop->fd, &(struct reply){.error = order.error}, -1);
    snapshot_destroy(&order.out);
    fd_close(&stop->fd);
    free(stop);
    return NULL;
}

static int begin_stop(int fd, const struct question *question)
{
    struct stop *stop = mem_alloc(sizeof(*stop));
    pthread_t thread;
    *stop = (struct stop){*question, fcntl(fd, F_DUPFD_CLOEXEC, 3)};
    int error = stop->fd < 0 ? errno : thread_start(&thread, "stop", stop_thread, stop);
    if (error == 0) {
        pthread_detach(thread);
        return 0;
    }
    fd_close(&stop->fd);
    free(stop);
    return send_reply(fd, &(struct reply){.error = error}, -1);
}

static int send_number(const struct stack_door *door, const struct question *question)
{
    if (door->watches == NULL)
        return -1;
    if (*door->watches == NULL)
        *door->watches = call_watches_create();
    uint64_t number =
        call_watches_number(*door->watches, question->pid, question->tid, question->address);
    struct reply reply = {number == 0 ? errno : 0, sizeof(number)};
    if (send_reply(door->fd, &reply, -1) < 0)
        return -1;
    return fd_send_all(door->fd, &number, sizeof(number));
}

static int answer(const struct stack_door *door, const struct question *question)
{
    int fd = door->fd;
    switch (question->wish) {
    case WISH_MEMORY: return open_memory(fd, question);
    case WISH_CALL: return read_call(fd, question);
    case WISH_STOP: return begin_stop(fd, question);
    case WISH_NUMBER: return send_number(door, question);
    default: return -1;
    }
}

/* The helper asks for one thing at a time, so that an answer has room in the socket. */
static void asked(void *context, int what)
{
    struct stack_door *door = context;
    struct question question;
    (void)what;
    ssize_t got = recv(door->fd, &question, sizeof(question), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (got != (ssize_t)sizeof(question) || answer(door, &question) < 0)
        loop_fd_watch(door->readable, 0);
}

struct stack_door *stack_door_create(struct loop *loop, int fd, struct call_watches **watches)
{
    struct stack_door *door = mem_alloc(sizeof(*door));
    *door = (struct stack_door){
        .fd = fd, .readable = loop_fd_create(loop, fd, asked, door), .watches = watches};
    loop_fd_watch(door->readable, LOOP_READ);
    return door;
}

void stack_door_destroy(struct stack_door *door)
{
    if (door == NULL)
        return;
    loop_fd_destroy(door->readable);
    fd_close(&door->fd);
    free(door);
}

/* ---- the helper's end */

static bool receive_all(int fd, void *out, size_t length)
{
    return length == 0 || recv(fd, out, length, MSG_WAITALL) == (ssize_t)length;
}

/* Asks and receives the reply. The descriptor that came with it, if any, is in `*passed`. */
static int ask(int fd, const struct question *question, struct reply *reply, int *passed)
{
    union control control;
    struct iovec part = {reply, sizeof(*reply)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    *passed = -1;
    *reply = (struct reply){.error = EPIPE};
    if (fd_send_all(fd, question, sizeof(*question)) < 0 ||
        recvmsg(fd, &message, MSG_WAITALL | MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(*reply))
        return -1;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_type == SCM_RIGHTS)
        memcpy(passed, CMSG_DATA(header), sizeof(int));
    return 0;
}

static bool is_refused(int error)
{
    return error == EPERM || error == EACCES;
}

static int get_memory(void *context, pid_t pid)
{
    const int *door = context;
    struct reply reply;
    int fd = rights_own.memory(NULL, pid), passed;
    if (fd >= 0 || !is_refused(errno))
        return fd;
    int error = errno;
    const struct question question = {.wish = WISH_MEMORY, .pid = pid};
    if (ask(*door, &question, &reply, &passed) == 0 && passed >= 0)
        return passed;
    errno = reply.error != 0 && reply.error != EPIPE ? reply.error : error;
    return -1;
}

static int get_call(void *context, pid_t pid, pid_t tid, struct buf *out)
{
    const int *door = context;
    struct reply reply;
    char text[CALL_MAX];
    int passed;
    if (rights_own.call(NULL, pid, tid, out) == 0)
        return 0;
    const struct question question = {.wish = WISH_CALL, .pid = pid, .tid = tid};
    if (!is_refused(errno) || ask(*door, &question, &reply, &passed) < 0 || reply.error != 0 ||
        reply.length > sizeof(text) || !receive_all(*door, text, reply.length))
        return -1;
    return buf_append(out, text, reply.length);
}

static int get_stopped(int fd, const struct reply *reply, struct snapshot *out)
{
    struct stopped stopped;
    if (reply->error != 0)
        return reply->error;
    if (reply->length < sizeof(stopped) || reply->length > sizeof(stopped) + SNAPSHOT_STACK ||
        !receive_all(fd, &stopped, sizeof(stopped)))
        return EPROTO;
    size_t length = reply->length - sizeof(stopped);
    *out = (struct snapshot){.registers = stopped.registers,
                             .stack_at = stopped.stack_at,
                             .stack = mem_alloc(length + 1),
                             .stack_length = length};
    return receive_all(fd, out->stack, length) ? 0 : EPROTO;
}

static void get_stops(void *context, pid_t pid, int memory_fd, int64_t deadline_ns,
                      struct snapshot_order *orders, size_t count)
{
    const int *door = context;
    rights_own.stop(NULL, pid, memory_fd, deadline_ns, orders, count);
    for (size_t i = 0; i < count; i++) {
        struct snapshot_order *order = &orders[i];
        const struct question question = {deadline_ns, WISH_STOP, pid, order->tid, 0};
        struct reply reply;
        int passed;
        if (is_refused(order->error) && ask(*door, &question, &reply, &passed) == 0)
            order->error = get_stopped(*door, &reply, &order->out);
    }
}

struct rights stack_door_rights(int *fd)
{
    return (struct rights){fd, get_memory, get_call, get_stops};
}

uint64_t stack_door_call_number(int fd, pid_t pid, pid_t tid, uint64_t address)
{
    struct reply reply;
    uint64_t number = 0;
    int passed;
    const struct question question = {
        .wish = WISH_NUMBER, .pid = pid, .tid = tid, .address = address};
    if (ask(fd, &question, &reply, &passed) == 0 && reply.length == sizeof(number) &&
        receive_all(fd, &number, sizeof(number)) && number != 0)
        return number;
    errno = reply.error;
    return 0;
}
