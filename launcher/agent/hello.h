/* SPDX-License-Identifier: Apache-2.0 */
/* HELLO: what the agent says about itself and its node, first of all. */
#pragma once

#include "agent/post.h"
#include "node/facts.h"

void hello_send(const struct post *post, const struct node_facts *facts);
