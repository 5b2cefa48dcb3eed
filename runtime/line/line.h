/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's end of the line to the agent of its node (docs/internals/libhvd.md, packet.h).
 *
 * It has no thread and never waits. Its owner watches line_fd() for input, and then calls
 * line_receive() until that has nothing more. One thread at a time may use a line. All calls keep
 * within the memory of the line, whatever the agent sends.
 *
 * A line belongs to one epoch of an elastic job. After each rendezvous the owner makes a new one:
 * the agent first sends EPOCH and then the ranks of that epoch that have ended already.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/error.h"
#include "line/packet.h"

/* The variable in which the agent names its socket: "@" and an abstract name. Such a name has no
 * file, so nothing of it remains when the agent has ended. */
#define LINE_VARIABLE "HVDRUN_LINE"

/* What a worker of an elastic job registers with the launcher (docs/elastic.md), instead of an
 * address, to hear over its line that hosts have changed. */
#define LINE_REGISTRATION "line"

struct line;

/* `address` is the value of the variable. NULL: there is no agent at that address, or it refuses
 * this process. Then the library works without a line. */
struct line *line_open(const char *address, struct error *err);
void line_close(struct line *line); /* accepts NULL */

int line_fd(const struct line *line); /* to be watched for input; the line owns it */

/* 1: a packet came. 0: there is not one now. -1: the line has ended, or the agent sent bytes that
 * are not a packet; close it. Packets of unknown type are skipped. */
int line_receive(struct line *line, struct line_packet *packet, struct error *err);

/* 1: sent. 0: the agent has not read what came before it, and the packet was dropped. -1: the line
 * has ended. The agent drops more than a few packets a second of one worker. */
int line_send(struct line *line, const struct line_packet *packet);

/* The address as text of a socket that bind(2) has given an abstract name. The caller frees it.
 * NULL: it has none. */
char *line_address_text(const struct sockaddr_un *name, socklen_t length);

/*
 * Reads a line in a thread of its own, which sleeps until the agent says something. It belongs to
 * one epoch: that in which the worker has connected to its peers.
 */
struct line_reader_ops {
    /* A rank of this epoch has ended; `how` is a short text, such as "it was killed by signal 9".
     * `failed` is false if its exit status is 0. Also when it ended before the reader was created.
     */
    void (*ended)(void *context, uint32_t rank, bool failed, const char *how);
    /* The launcher has begun another epoch without this worker: all its peers have left. */
    void (*left)(void *context);
    /* The agent asks for PROGRESS. NULL: it gets no answer. */
    void (*asked)(void *context);
    /* The agent asks for WAITS, which repeat this number. NULL: it gets no answer. */
    void (*asked_waits)(void *context, uint32_t round);
};

struct line_reader;

/* `least_epoch`: the epoch in which this process was started; what the agent says about an earlier
 * one is not meant for it. NULL: there is no line at that address, or no thread. The calls come
 * from the thread of the reader, until line_reader_destroy(). */
struct line_reader *line_reader_create(const char *address, uint32_t least_epoch,
                                       const struct line_reader_ops *ops, void *context,
                                       struct error *err);
void line_reader_destroy(struct line_reader *reader); /* waits for the thread; accepts NULL */

/* As line_send(), from any thread. NULL: nothing is sent. */
int line_reader_send(struct line_reader *reader, const struct line_packet *packet);
