/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hvdrun debug` and `hvdrun shell`: the driver between the user's command and an agent.
 *
 *   {"do": "debug", "rank": 3, "with": "gdb", "term": "xterm", "rows": 24, "columns": 80}
 *   {"do": "shell", "rank": 3}, or "host": "b"; also "argv": [...]
 *   {"do": "continue", "rank": 3}          or without rank: all that wait at their start
 *
 * The answer to the first two is {"ok": true, "host": HOST}; then the connection has the
 * pieces of session_wire.h, the first of them from the client. There is one READ and one WRITE at a
 * time. The next one begins when the other side has taken what the last one brought. So a session
 * holds two pieces at most, and costs no more than one question for each.
 *
 * The clock of the job stands still while a debugger is there, or a rank waits for one at its
 * start. Nobody may find that this rank hangs or is behind, or that the job takes too long.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "driver/job/job.h"

/* debug_sessions_driver.c: the debuggers and shells of a job. */

struct control_asked; /* driver/control/request.h */

struct debug_target { /* of a session */
    struct node_link *node;
    int seat; /* -1: of no rank */
    int rank;
    bool of_debugger;
};

/* Answers the request later. -1: there can be no such session. */
int debug_open(struct job *job, const struct debug_target *target,
               const struct control_asked *asked, struct error *err);

/* What the part does (job/part.h). */
int debug_begin(struct job *job, struct error *err);
void debug_ending(struct job *job);        /* says so in each session */
void debug_ranks_changed(struct job *job); /* one that waits at its start keeps the clock */
void debug_close(struct job *job);

/* debug_holds_driver.c: the ranks of --stop-at-start, which wait until a debugger comes. */

bool debug_holds_any(const struct job *job); /* a rank waits */
/* A debugger has come to the worker on this seat: it is the one that holds it now. */
void debug_holds_forget(struct job *job, int seat);
/* Lets the worker on this seat go on; -1: all that wait. -1: none waits. */
int debug_holds_release(struct job *job, int seat, struct error *err);

/*
 * mpir_driver.c: MPIR is an interface for parallel debuggers, such as TotalView, DDT and STAT. A
 * tool that holds this process reads where the ranks are, from variables of fixed names. The rules
 * are in "The MPIR Process Acquisition Interface", version 1.1, of the MPI Forum.
 */

bool mpir_is_debugged(void); /* a tool says that it debugs the job */
/* All ranks wait at their start: a tool may attach to them now. Returns when it lets us go on. */
void mpir_spawned(void);
