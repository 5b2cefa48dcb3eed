/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to a request that takes time. Two owners hold it: the connection of the client, which
 * may close first, and the part that answers.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <sys/queue.h>

struct control_later;

/* For the connection. `answer` gets a borrowed reply, once. `give` gets one instead, sends it, and
 * returns the descriptor of the connection, which leaves it; -1: the client has gone. NULL: it
 * cannot be given. */
struct control_later *control_later_create(void (*answer)(void *context, const json_t *reply),
                                           int (*give)(void *context, const json_t *reply),
                                           void *context);
bool control_later_is_taken(const struct control_later *later);
/* The connection does not want the answer, or not any more; accepts NULL. */
void control_later_leave(struct control_later *later);

/* For whoever answers. It must call control_later_answer() once after this. */
void control_later_take(struct control_later *later);
void control_later_answer(struct control_later *later, json_t *reply_take);
/* The same, and what client and job say after this answer is the caller's: returns the connection,
 * which does not block. -1: the client has gone. */
int control_later_take_over(struct control_later *later, json_t *reply_take);

/* The requests that wait for a part. One is the first member of what the part knows of it. */
struct control_wait {
    struct control_later *later;
    LIST_ENTRY(control_wait) others;
};
LIST_HEAD(control_waits, control_wait);

void control_wait_begin(struct control_waits *waits, struct control_wait *wait,
                        struct control_later *later);
/* Answers it and frees what it begins. NULL: the job has ended. */
void control_wait_answer(struct control_wait *wait, json_t *reply_take);
