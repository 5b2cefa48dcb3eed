/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold at every moment of every run. Each one is proven able to fail (selftest.c). */
#pragma once

/* clang-format off */
#define INVARIANT_LIST(X)                                                                        \
    X(INV_NONE, "none")                                                                          \
    X(INV_PLACE, "no two live workers hold one place")                                           \
    X(INV_RANKS, "ranks are 0 to n-1")                                                           \
    X(INV_LOCAL, "local and cross ranks follow hosts and slots")                                 \
    X(INV_ORDER, "survivors keep their order")                                                   \
    X(INV_ZERO, "rank 0 is a survivor if there is one")                                          \
    X(INV_PLACING, "new workers come where they should")                                         \
    X(INV_KEEP, "no survivor is thrown away")                                                    \
    X(INV_SIZE, "between min-np and max-np workers")                                             \
    X(INV_HOST, "new workers on usable hosts only")                                              \
    X(INV_SLOT, "one worker a slot, no more than listed")                                        \
    X(INV_SEAT, "a seat has one worker until it is finished")                                    \
    X(INV_EPOCH, "epochs increase")                                                              \
    X(INV_PREPARE, "what is prepared is started or cancelled, once")                             \
    X(INV_CALL, "only hosts that may be used and are not called are called")                     \
    X(INV_LET_GO, "only hosts without workers are let go")                                       \
    X(INV_GIVE_UP, "only an agent that does not do what it should is given up")                  \
    X(INV_KILL, "only live workers are killed")                                                  \
    X(INV_ANSWER, "a held request is answered once")                                             \
    X(INV_ANSWER_PLACE, "a request is answered with its asker's place")                          \
    X(INV_ANSWER_EARLY, "nobody is answered before the new workers are started")                 \
    X(INV_ANSWER_NEVER, "no request is held for ever")                                           \
    X(INV_DEADLINE, "nobody waits without a deadline")                                           \
    X(INV_LAST, "no state lasts longer than its limit")                                          \
    X(INV_LEAVE, "a drained host has no worker behind its deadline")                             \
    X(INV_GROWTH, "what could be used is used")                                                  \
    X(INV_SPIN, "a tick moves the deadline")                                                     \
    X(INV_ENDS, "the job comes to its end")                                                      \
    X(INV_REAPED, "every worker is reaped")                                                      \
    X(INV_SUCCESS, "success only if every member exited with 0")                                 \
    X(INV_VERDICT, "the verdict comes once and is true")                                         \
    X(INV_READ, "success only if all output of every member has arrived")                          \
    X(INV_AGAIN, "no rank that has succeeded trains again from the start")                       \
    X(INV_HASTE, "the job is not ended while it could go on")                                    \
    X(INV_BUDGET, "no more epochs than the limits allow")                                        \
    X(INV_AFTER, "nothing is begun after the verdict")                                           \
    X(INV_NOTIFY, "only a registered rank 0 is notified")                                        \
    X(INV_TOLD, "deadlines and lines make sense")                                                \
    X(INV_RESUMED, "an epoch resumes once, with all its ranks")                                  \
    X(INV_FACTS, "times and counts are plausible")                                               \
    X(INV_VIEW, "the core's view agrees with what it was told")                                  \
    X(INV_EARLY, "survivors that suffice do not wait for new workers")                           \
    X(INV_QUIET, "a newcomer that cannot join yet disturbs nobody")                              \
    X(INV_TOGETHER, "newcomers of one batch join together, with the numbers that they know")     \
    X(INV_HUNG, "a hang begins a change, and its culprit has no place in what follows")          \
    X(INV_BAD, "only a host that was lost and is on the blacklist is bad")                       \
    X(INV_REPEAT, "what does not fit changes nothing")                                           \
    X(INV_WORLD, "the simulated world has room")
/* clang-format on */

#define INVARIANT_ENUM(name, text) name,
enum invariant { INVARIANT_LIST(INVARIANT_ENUM) INVARIANTS };
#undef INVARIANT_ENUM

const char *invariant_text(enum invariant invariant);
