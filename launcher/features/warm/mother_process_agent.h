/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process of a mother, a helper of the agent, and the messages that go to her and come from her
 * (mother.py).
 */
#pragma once

#include "base/buf.h"
#include "base/log.h"
#include "features/warm/kind.h"
#include "io/helpers.h"
#include "io/loop.h"
#include "io/stderr_pipe.h"

struct mother_process {
    struct loop *loop;
    struct helpers *helpers;
    const struct log *log;
    /* A message: fields that end with NUL, from `text` to `end`. Either may end the process. */
    void (*heard)(void *context, const char *text, const char *end);
    void (*lost)(void *context);
    void *context;
    pid_t pid;  /* 0: there is none */
    int socket; /* -1 likewise, also at first */
    struct loop_fd *watch;
    struct stderr_pipe output;
};

/* Begins with the setup: `modules` ends with NULL, `left_out` has pairs of a module and what to
 * import in its place. After -1 it has to be ended, too. */
int mother_process_start(struct mother_process *process, const struct warm_kind *kind,
                         const sigset_t *mask, const char *const *modules,
                         const struct strv *left_out, struct error *err);

/* The text of the ranks, and their descriptors; room for one more is before those. `first`: not
 * behind others that have not begun. -1 and errno. */
int mother_process_send(struct mother_process *process, size_t ranks, bool first,
                        const struct buf *text, int *fds, size_t count);

/* Ranks that she has forked, and whose pids are not known, have to see it by another sign. */
void mother_process_end(struct mother_process *process);

/* A message of one word. -1: she has ended. */
int mother_process_tell(const struct mother_process *process, const char *what);

/* The process of an earlier job; and back, for a later one. */
void mother_process_adopt(struct mother_process *process, pid_t pid, int socket);
void mother_process_release(struct mother_process *process, pid_t *pid, int *socket);
