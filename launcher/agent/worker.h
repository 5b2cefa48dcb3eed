/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One worker of this node: its process, its streams and its states.
 *
 * A worker has two ends (D6). EXITED comes when the process has been waited for. It drives policy
 * and teardown at once. FINISHED comes when its streams are at end of file, or when the drain limit
 * has cut them because a descendant still holds them. It drives what is printed. Each is reported
 * exactly once, in this order.
 *
 *   state     spawned   cannot be executed      waited for   streams at their end, or cut
 *   PLANNED   RUNNING   EXITED, then FINISHED
 *   STARTING  RUNNING   EXITED, then FINISHED
 *   RUNNING                                     EXITED
 *   EXITED                                                   FINISHED
 *
 * A worker is STARTING while a spawner has it. One that is dropped then is PLANNED
 * again. One that is to end alone then is EXITED at once, as if the signal had killed it. It gets
 * other signals when it is RUNNING.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/input.h"
#include "agent/stream.h"
#include "io/child.h"
#include "io/loop.h"
#include "io/reaper.h"
#include "node/descendants.h"

#define WORKER_STATE_LIST(X)         \
    X(WORKER_PLANNED, "not started") \
    X(WORKER_STARTING, "starting")   \
    X(WORKER_RUNNING, "running")     \
    X(WORKER_EXITED, "exited")       \
    X(WORKER_FINISHED, "finished")

enum worker_state {
#define WORKER_STATE_ENUM(name, text) name,
    WORKER_STATE_LIST(WORKER_STATE_ENUM)
#undef WORKER_STATE_ENUM
};

const char *worker_state_name(enum worker_state state);

enum worker_stdin { WORKER_STDIN_NULL, WORKER_STDIN_PIPE, WORKER_STDIN_TERMINAL };

/* Of a worker without a whole terminal. EITHER: a terminal, or a pipe if none can be made. */
enum worker_stdout { WORKER_STDOUT_PIPE, WORKER_STDOUT_EITHER, WORKER_STDOUT_TERMINAL };

struct worker;

/* What starts the processes of workers in another way than by fork and exec: a part of the agent
 * offers it. */
struct spawner {
    void *own;
    /* Takes a worker: `done` comes once, later, from the loop. It has the pid of a child of this
     * process that is as child_spawn() would have made it; or -1 and an error of child_spawn().
     * `spec` is copied, its descriptors too. False: start it in the usual way. */
    bool (*spawn)(void *own, const struct child_spec *spec,
                  void (*done)(void *context, pid_t pid, const struct error *err), void *context);
    /* The worker with this context is not wanted any more: `done` does not come, and no process
     * of it runs the user's program. */
    void (*cancel)(void *own, const void *context);
};

/* What all workers of an epoch share; the owner keeps it until the last one is destroyed. */
struct worker_shared {
    struct loop *loop;
    const struct post *post; /* of the epoch */
    struct stream_pool *pool;
    int null_fd; /* /dev/null, open for reading */
    int64_t drain_ms;
    bool merge_stderr;
    int rows, columns; /* of the user's terminal; 0: there is none */
    /* Called after EXITED and after FINISHED were sent. */
    void (*changed)(void *context, struct worker *worker);
    void *context;
};

struct worker {
    const struct worker_shared *shared;
    uint32_t seat; /* by which the driver knows it */
    uint32_t rank; /* for messages: of its epoch, behind the ranks of earlier worlds */
    enum worker_state state;
    pid_t pid;        /* also its process group; 0 before the spawn */
    sigset_t pending; /* signals that came while it was STARTING */
    int64_t started_ns;
    int64_t ends_ns; /* it was seen to end, before it could be waited for; 0: it was not */
    enum worker_stdout output; /* set it before the start */
    int no_terminal;           /* errno: EITHER is a pipe; 0 */
    bool bad;                  /* exited with other than 0 */
    bool held;                 /* it waits at its start, and does not go on with the others */
    char *error_file;          /* where the program can report its failure; or NULL */
    struct worker_stream *streams[2];
    struct input *input;
    int open_streams;
    int terminal_fd; /* the pty's master, for its size; -1 */
    struct loop_timer *drain;
    struct worker_end *end; /* NULL: no END_WORKER has come for it */
    int pidfd;              /* readable once the process has ended; -1 */
    struct loop_fd *exit_watch;
};

void worker_init(struct worker *worker, const struct worker_shared *shared, uint32_t seat,
                 uint32_t rank);
void worker_destroy(struct worker *worker);

/* The two ends of everything that the process gets. */
struct plumbing {
    int child[3];
    int ours[3]; /* -1: nothing on our side */
};

/* The start of one worker. */
struct worker_spawn {
    struct worker *worker;
    struct child_spec spec; /* but for the descriptors; one that it keeps is closed here then */
    enum worker_stdin stdin_kind;
    /* What came of it: */
    struct plumbing plumbing;
    pid_t pid; /* -1: it could not start */
    int64_t started_ns;
    int pidfd;         /* -1: none */
    struct error *err; /* why not, on the heap; else NULL */
};

/* Makes the plumbing and the process. It touches nothing but `spawn` and its worker, so another
 * thread may run it (io/threads.h). */
void worker_spawn_run(struct worker_spawn *spawn);
/* Then takes what came of it, and frees the error. On failure EXITED (as not executable) and
 * FINISHED are reported like those of a worker that ran. */
int worker_spawn_end(struct worker_spawn *spawn);

/* The same, if the spawner takes it: then it is STARTING until `done` comes, which has to
 * call worker_spawned(). False: nothing has happened. */
bool worker_offer(struct worker *worker, struct child_spec *spec, enum worker_stdin stdin_kind,
                  const struct spawner *spawner,
                  void (*done)(void *context, pid_t pid, const struct error *err));
int worker_spawned(struct worker *worker, pid_t pid, const struct error *err);

/* If it is STARTING: it will not start. */
void worker_drop(struct worker *worker, const struct spawner *spawner);

/* If it is STARTING: it has ended, by this signal. False: it is not. */
bool worker_end_early(struct worker *worker, const struct spawner *spawner, int signal);

/* Calls ready(context) when the process has ended, in the order in which the processes of the node
 * end. Without a descriptor to spare it does nothing: the next SIGCHLD finds the end as well. */
void worker_watch_exit(struct worker *worker, void (*ready)(void *context, int what),
                       void *context);

/* The start failed before it was tried: reported like a failed start. */
void worker_fail(struct worker *worker, const struct error *err);

/* `ordered`: its time is that of its end, although it was seen to end before. */
void worker_exited(struct worker *worker, const struct reaper_exit *exit, bool oom, bool ordered);
void worker_signal(struct worker *worker, int signal); /* to its whole process group */
void worker_signal_pending(struct worker *worker);     /* those that came before it was RUNNING */
/* Ends it alone, as worker_end_begin() says. `paused`: the job is suspended. */
void worker_begin_end(struct worker *worker, bool paused, int signal, int64_t grace_ms);
void worker_resize(const struct worker *worker, int rows, int columns);

/* What its processes are doing, or that it has none. The caller frees it. */
char *worker_state_text(const struct worker *worker, const struct descendants_table *processes);

/* No process can write to the streams any more, or none may be waited for: reads what is there and
 * finishes the worker. */
void worker_cut(struct worker *worker);
