/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of a helper program, such as `ssh -G`, scontrol, nvidia-smi or a script of the user: what
 * it prints, within a limit of bytes and of time, or why that is nothing. The loop goes on while it
 * runs. The program has an empty stdin, or one with given bytes, and a session of its own.
 *
 * A run is over when the program has exited and its output was read to the end. A process that it
 * left in its group is killed then. One that left the group can still hold the pipes; it is waited
 * for no longer than half a second. At the time limit the whole group is killed and the run is over
 * at once.
 */
#pragma once

#include "base/log.h"
#include "io/helpers.h"
#include "io/loop.h"

struct program_spec { /* borrowed for the call, but for the loop, the helpers and the log */
    struct loop *loop;
    struct helpers *helpers;
    const struct log *log; /* gets each line of stderr, at LOG_INFO; NULL */
    const char *path;      /* NULL: argv[0] is searched along PATH */
    char *const *argv;
    char *const *envp; /* NULL: ours */
    const char *name;  /* in messages; NULL: argv[0] */
    const char *input; /* the program's stdin; NULL: it is empty */
    size_t input_length;
    size_t output_max; /* bytes of stdout that are kept */
    bool drops_excess; /* more output than that is dropped; without this it is a failure */
    int64_t time_max_ms;
};

struct program_result {
    const char *why;       /* one line; NULL: it exited with status 0 */
    int status;            /* its exit status; -1: it has none */
    int signal;            /* that somebody else killed it with; 0: none */
    const char *last_line; /* of its stderr; "" */
    const char *text;      /* its stdout */
    size_t length;
};

struct program;

/* Never fails at once: a program that cannot be started is a result too. `done` comes once, from
 * the loop. The result is borrowed for the call, and the program is gone already. */
struct program *program_start(const struct program_spec *spec,
                              void (*done)(void *context, const struct program_result *result),
                              void *context);
void program_cancel(struct program *program); /* kills it and its group; accepts NULL */
