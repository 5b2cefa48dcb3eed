/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a helper program to its end and keeps what it prints, within a limit and a deadline: for
 * `ssh -G` and `ssh-add`. Its stdin is empty.
 */
#pragma once

#include "base/strv.h"
#include "io/helpers.h"
#include "io/loop.h"

struct capture_result {
    const char *why; /* it could not be run, or not to its end; NULL: it ended by itself */
    int wait_status;
    const char *text; /* stdout */
    size_t length;
    const char *last_line; /* of stderr; "" */
};

struct capture;

/* argv[0] is searched along PATH. `envp` NULL: the user's. `done` comes once, from the loop, never
 * from within this call; the result is borrowed for the call, and the capture is gone after it. */
struct capture *capture_start(struct loop *loop, struct helpers *helpers, char *const *argv,
                              char *const *envp, size_t limit, int64_t limit_ms,
                              void (*done)(void *context, const struct capture_result *result),
                              void *context);
void capture_cancel(struct capture *capture); /* lets the program go; accepts NULL */
