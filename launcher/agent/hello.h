/* SPDX-License-Identifier: Apache-2.0 */
/* HELLO: what the agent says about itself and its node, first of all. It is said at once, but where
 * a program has to be asked for the GPUs (node/gpus_ask.h): then some seconds later at most. */
#pragma once

#include "agent/post.h"
#include "io/helpers.h"
#include "io/loop.h"
#include "node/facts.h"

struct hello;

/* `helpers`, `post` and `facts` are borrowed; facts->gpus is what was found in the end. */
struct hello *hello_create(struct loop *loop, struct helpers *helpers, const struct post *post,
                           struct node_facts *facts);
void hello_destroy(struct hello *hello); /* accepts NULL */
