/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to a request that takes time. Two owners hold it: the connection of the client, which
 * may close first, and the part that answers.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct control_later;

/* For the connection. `answer` gets a borrowed reply, once. */
struct control_later *control_later_create(void (*answer)(void *context, const json_t *reply),
                                           void *context);
bool control_later_is_taken(const struct control_later *later);
/* The connection does not want the answer, or not any more; accepts NULL. */
void control_later_leave(struct control_later *later);

/* For whoever answers. It must call control_later_answer() once after this. */
void control_later_take(struct control_later *later);
void control_later_answer(struct control_later *later, json_t *reply_take);
