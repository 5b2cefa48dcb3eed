/* SPDX-License-Identifier: Apache-2.0 */
/* HELLO: what the agent says about itself and its node, first of all. It is said at once, but where
 * a program has to be asked for the GPUs (node/gpus_ask.h): then some seconds later at most. */
#pragma once

#include "agent/post.h"
#include "io/loop.h"
#include "io/reaper.h"
#include "node/facts.h"

struct hello;

/* `post` and `facts` are borrowed; facts->gpus is what was found in the end. */
struct hello *hello_create(struct loop *loop, const struct post *post, struct node_facts *facts);
void hello_destroy(struct hello *hello); /* accepts NULL */

/* From the agent's reaper; false: it was another child. Accepts NULL. */
bool hello_exited(struct hello *hello, const struct reaper_exit *exit);
