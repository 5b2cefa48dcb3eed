/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "stacks/tree.h"

/* The stacks of a tree as a list, for reports and for `hvdrun stacks --json`; a value of jansson
 * that the caller owns. */
struct json_t *stacks_json(struct stack_tree *tree);
