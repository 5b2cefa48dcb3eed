/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent's part needs for mothers, and for the ranks that they fork. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/strv.h"
#include "features/warm/holder.h"
#include "features/warm/kind.h"
#include "io/child.h"
#include "io/helpers.h"
#include "io/loop.h"

/*
 * rank_agent.c: a rank that waits for its process: a copy of what child_spawn() needs, with its
 * descriptors.
 */

struct warm_rank {
    TAILQ_ENTRY(warm_rank) at;
    struct child_spec spec; /* points into the rest */
    struct strv argv, envp;
    struct strv words; /* what its interpreter would get as arguments */
    size_t skip;       /* of those, before those of the script */
    char *name;        /* of its process, where it is not that of the interpreter; or NULL */
    int fds[4];        /* stdin, stdout, stderr, and one more or -1 */
    bool cancelled;    /* `done` is not called */
    void (*done)(void *context, pid_t pid, const struct error *err);
    void *context;
};
TAILQ_HEAD(warm_ranks, warm_rank);

/* NULL: there are not enough descriptors. */
struct warm_rank *warm_rank_create(const struct child_spec *spec, char *const *words, size_t skip);
void warm_rank_destroy(struct warm_rank *rank);

/* Appends what mother.py reads about the rank (Rank.__init__). */
void warm_rank_write(const struct warm_rank *rank, struct buf *out);

/* Starts it in the usual way, tells `done`, and destroys the rank. */
void warm_rank_start(struct warm_rank *rank);

/* A script that is a program, since its first line names Python: "#!/usr/bin/env python3". */
struct warm_script {
    char *path;
    struct strv argv;
};

/* What the system, and env, make of a program and its arguments: an interpreter (resolved) and its
 * arguments. False, and nothing to destroy: it is no such script, or its first line is not plain.
 */
bool warm_script_read(const struct child_spec *spec, struct warm_script *out);
void warm_script_destroy(struct warm_script *script);

/* kept_agent.c: mothers that wait for another job (holder_agent.c). */

#define WARM_MOTHERS_MAX 4 /* kinds of ranks on one host at a time */

struct warm_kept {
    pid_t pid; /* our child */
    int socket;
    int64_t born_ms, used_ms; /* monotonic */
    char *modules;            /* of --warm, with commas; "": those that the script imports */
    struct warm_kind kind;
};

void warm_kept_destroy(struct warm_kept *kept); /* the process goes on */

struct warm_holder {        /* what a holder has from job to job */
    int64_t idle_ms;        /* the longest time without a job */
    int64_t bytes;          /* of memory, all of them together */
    struct warm_kept *list; /* the one that was used last is the last one */
    size_t count;
};

void warm_holder_add(struct warm_holder *holder, struct warm_kept *kept); /* takes what it has */
/* The entry leaves the list; the caller destroys it. */
struct warm_kept warm_holder_take(struct warm_holder *holder, size_t i);

/* Ends those that have ended, were not used for long, or are too many or too large. Returns in how
 * many milliseconds the next one is due; -1: there is none. */
int64_t warm_holder_bound(struct warm_holder *holder, int64_t now_ms);

void warm_holder_clear(struct warm_holder *holder); /* the processes end on their own */

/* For a process that goes on with the same children. */
void warm_holder_write(const struct warm_holder *holder, struct buf *out);
void warm_holder_read(struct field_reader *fields, struct warm_holder *out);

/*
 * mother_process_agent.c: the process of a mother, a helper of the agent, and the messages that go
 * to her and come from her (mother.py).
 */

struct mother_config {
    struct loop *loop;
    struct helpers *helpers;
    const struct log *log;
    const char *const *modules; /* NULL-ended; none: those that the script imports */
    /* A rank has its process: its exit may have come already. */
    void (*forked)(void *context, pid_t pid);
    void *context;
};

struct mother_process {
    const struct mother_config *config;
    /* A message: fields that end with NUL, from `text` to `end`. Either may end the process. */
    void (*heard)(void *context, const char *text, const char *end);
    void (*lost)(void *context);
    void *context;
    pid_t pid;  /* 0: there is none */
    int socket; /* -1 likewise, also at first */
    struct loop_fd *watch;
    struct stderr_pipe output;
};

/* Begins with the setup: `left_out` has pairs of a module and what to import in its place. After -1
 * it has to be ended, too. */
int mother_process_start(struct mother_process *process, const struct warm_kind *kind,
                         const sigset_t *mask, const struct strv *left_out, struct error *err);

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

/*
 * mother_agent.c: a mother: an interpreter that has imported what the ranks of one kind import, and
 * forks them.
 *
 *   state     a rank waits   ready   she has forked   a module must be   she is lost, stopped,
 *                                                     left out, stale    or too slow
 *   AWAY      IMPORTS
 *   IMPORTS                  IDLE                     IMPORTS, anew      COLD
 *   IDLE      FORKS                                                      AWAY
 *   FORKS                            IDLE             IMPORTS, anew      COLD
 *
 * AWAY: she has no process. IDLE becomes AWAY after a while, too, if no more ranks are expected.
 * One of an earlier job begins in IDLE, and is asked in IMPORTS whether she is fit; if not, IMPORTS
 * begins anew. COLD: ranks are started in the usual way from now on. A rank that she has forked
 * runs nothing before the agent knows its pid and says so.
 */

struct mother;

/* Takes `kind`. */
struct mother *mother_create(const struct mother_config *config, struct warm_kind *kind,
                             const sigset_t *mask);
void mother_destroy(struct mother *mother); /* ends her; the ranks that wait are dropped */

/* Goes on with one that an earlier job has left. Takes what `kept` has. She is asked whether she is
 * still fit when the first rank comes. */
struct mother *mother_adopt(const struct mother_config *config, struct warm_kept *kept,
                            const sigset_t *mask);
/* Destroys it, but leaves the process for another job. False: it was not fit, and has ended. */
bool mother_release(struct mother *mother, struct warm_kept *out);

const struct warm_kind *mother_kind(const struct mother *mother);
bool mother_is_cold(const struct mother *mother);
void mother_add(struct mother *mother, struct warm_rank *rank); /* takes it; not called when cold */
void mother_cancel(struct mother *mother, const void *context);
void mother_keep(struct mother *mother, bool keep); /* after the last rank: there may be more */
bool mother_forks(const struct mother *mother);     /* pids are not known yet */
bool mother_rests(const struct mother *mother);     /* not asked yet; see mother_adopt() */
bool mother_is_idle(const struct mother *mother);   /* she has no rank to start */
