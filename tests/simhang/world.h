/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One schedule of the simulator of the hang verdict (launcher/features/hang/hang.h). A job with a
 * few ranks on a few hosts starts, goes through phases, and hangs at last or not. In each phase
 * before that, one rank or all make progress in a way that is hard to see. The others wait for it
 * in all the ways in which programs wait (rank.h). In some jobs a line is expected (expect.h). The
 * mover prints it often enough, unless its host stands still, a debugger holds it, or it has just
 * been started.
 *
 * What docs/hangs.md names as wrong verdicts is not simulated: a rank that computes at one place of
 * its program, for longer than the limit, without new memory, output, I/O or waiting. In MPI, that
 * is a call that takes longer than half of the limit while all others wait, too.
 *
 * GPUs, NCCL and system calls are sampled only while the model wants more, and their answers can be
 * missing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* X(name, text) */
#define PHASE_LIST(X)                                                                  \
    X(PHASE_TRAIN, "all compute and wait for each other")                              \
    X(PHASE_STEPS, "all sleep, and exchange a few bytes now and then")                 \
    X(PHASE_WANDER, "a half of them go to other places, nearly without the processor") \
    X(PHASE_PRINT, "one prints a line now and then")                                   \
    X(PHASE_HELPER, "one waits for its own thread, which prints now and then")         \
    X(PHASE_OPERATIONS, "one completes an operation of libhvd now and then")           \
    X(PHASE_CHECKPOINT, "one writes")                                                  \
    X(PHASE_TRICKLE, "one writes a few bytes, again and again")                        \
    X(PHASE_LOAD, "one reads slowly, nearly without the processor")                    \
    X(PHASE_DOWNLOAD, "one gets data from a socket, and keeps none")                   \
    X(PHASE_RECEIVE, "one fills its memory from a socket")                             \
    X(PHASE_FETCH, "a helper thread of one gets data over TCP")                        \
    X(PHASE_COMPILE, "one computes and takes memory")                                  \
    X(PHASE_COMPUTE, "one computes in Python, and does nothing else")                  \
    X(PHASE_ASIDE, "one waits for its child or thread, which computes in Python")      \
    X(PHASE_PROGRAM, "one waits for its child, which is not Python and computes")      \
    X(PHASE_CALLS, "all spin in calls of MPI, and those of one return now and then")   \
    X(PHASE_NATIVE, "one computes in a program without readable stacks")               \
    X(PHASE_KERNEL, "one waits for a kernel that uses memory")                         \
    X(PHASE_POWER, "one waits for a kernel that only computes")                        \
    X(PHASE_NCCL, "one launches an operation of NCCL now and then")                    \
    X(PHASE_DEBUG, "a debugger holds one")                                             \
    X(PHASE_PAGER, "nobody reads the output of one")                                   \
    X(PHASE_STALL, "the host of one stands still")                                     \
    X(PHASE_SUSPEND, "the job is suspended")                                           \
    X(PHASE_RESTART, "one is replaced by another worker, again and again")             \
    X(PHASE_LEAVE, "one prints a line now and then, and ends before the others go on") \
    X(PHASE_START, "all wait, and none has done anything yet")                         \
    X(PHASE_LOOP, "all compute, without the expected line")                            \
    X(PHASE_HANG, "all wait for ever")

enum phase {
#define PHASE_ENUM(name, text) name,
    PHASE_LIST(PHASE_ENUM)
#undef PHASE_ENUM
        PHASES
};

struct outcome {
    const char *problem; /* NULL: none */
    enum phase phase;    /* in which it was seen */
    bool hung;           /* a hang was planted, and found unless there is a problem */
    int64_t late_ms;     /* after the limit */
    int64_t late_steps;
    int64_t steps;
};

/* `lie`: the judge takes this phase for a hang, and the hang for none. PHASES: no lie. */
struct outcome world_run(uint64_t seed, enum phase lie);
