/* SPDX-License-Identifier: Apache-2.0 */
/* HELLO, the first frame of an agent: facts about itself and its node. It is sent at once, unless a
 * program has to be asked for the GPUs (node/gpus_ask.h): then at most some seconds later. */
#pragma once

#include "agent/post.h"
#include "io/helpers.h"
#include "io/loop.h"
#include "node/facts.h"

struct hello;

/* `helpers`, `post` and `facts` are borrowed; facts->gpus becomes what was found. */
struct hello *hello_create(struct loop *loop, struct helpers *helpers, const struct post *post,
                           struct node_facts *facts);
void hello_destroy(struct hello *hello); /* accepts NULL */
