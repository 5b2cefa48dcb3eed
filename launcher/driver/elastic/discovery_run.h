/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of a program that tells which hosts there are: what it prints within a limit of bytes and
 * of time, or why that is nothing. Its stdin is empty, its session its own.
 *
 * The run is over when the program has ended and its output was read to the end, or for so long
 * that only a process that it left can still hold the pipe. Such processes are killed with their
 * group, after every run: they would pile up.
 */
#pragma once

#include "base/log.h"
#include "io/helpers.h"
#include "io/loop.h"

struct discovery_program {
    struct loop *loop;
    struct helpers *helpers;
    const struct log *log; /* gets its stderr, at LOG_INFO */
    const char *path;      /* resolved */
    char *const *argv;
    char *const *envp; /* NULL: ours */
    const char *name;  /* for messages */
    size_t limit;      /* of bytes on stdout */
    int64_t limit_ms;
};

struct discovery_result {
    const char *why;       /* one line; NULL: it ended with status 0 */
    int signal;            /* that somebody else has killed it with; 0: none */
    const char *last_line; /* of its stderr; "" */
    const char *text;      /* its stdout */
    size_t length;
};

struct discovery_run;

/* `program` and all that it names outlive the run. `done` comes once, from the loop, never from
 * within this call; the result is borrowed for the call, and the run is gone already. */
struct discovery_run *discovery_run_start(const struct discovery_program *program,
                                          void (*done)(void *context,
                                                       const struct discovery_result *result),
                                          void *context);
void discovery_run_cancel(struct discovery_run *run); /* kills it; accepts NULL */
