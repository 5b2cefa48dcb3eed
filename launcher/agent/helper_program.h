/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A helper process of the agent: hvdrun-agent with a word as its first argument. It does what could
 * block the agent for good, or harm it. agent_main/main.c lists all of them.
 */
#pragma once

#include <stdbool.h>

struct helper_program {
    const char *word;                /* the argument */
    bool has_operand;                /* another one follows */
    int (*run)(const char *operand); /* NULL: none. Returns the exit status. */
};
