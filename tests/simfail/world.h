/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One schedule of the simulator of failures (launcher/model/exit). A job with a few ranks on a few
 * hosts fails for a reason that the schedule draws. Peers notice it, and fail, too. Agents see the
 * ends of their ranks on clocks that are off by as much as they may be. What they say arrives at
 * the driver later, in order for each host, and the driver stands still now and then. It ends the
 * job as the real one does. Then the exit policy names a cause.
 *
 * The verdict is wrong if it names something else without a word of doubt. It has a doubt if it is
 * a tie, or says that a peer failed and hvdrun cannot tell which.
 *
 * In some schedules, a rank writes an error and goes on, and a host is lost at any time after that.
 * If all failures are surely after the loss, the verdict must name the host, with its status.
 *
 * Some peers exit with 0, and some say nothing beside others that do. In some jobs a rank is done
 * before. A rank closes its connections before it can be waited for, and its agent may see that.
 *
 * Some schedules have a second failure soon after the first. The verdict may name it if it was
 * complete before the first one was, or if agents may see them in either order.
 *
 * Not simulated, because nothing that hvdrun sees tells these cases apart:
 * - A rank leaves its peers or writes an error before its process ends, and they fail without a
 * word.
 * - Two ranks of different hosts exit without a word, closer together than an agent may be late.
 * - A rank is killed, and then the agent of its host, by somebody else.
 * - A rank ends, and its host is lost before its agent has seen that.
 * - A rank writes an error and goes on, and soon after that a rank fails, or all of a host.
 * - A rank leaves its peers, they do not say which rank it was, and soon after that a host is lost,
 * and its connections end.
 * - A rank leaves its peers, they do not say which rank it was, and another one exits with 0.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* X(name, text) */
#define REASON_LIST(X)                                                    \
    X(REASON_CRASH, "a rank crashes")                                     \
    X(REASON_KILLED, "a rank is killed")                                  \
    X(REASON_EXIT, "a rank exits without a word")                         \
    X(REASON_ERROR, "a rank writes an error and ends later")              \
    X(REASON_ASSERT, "a rank aborts with a message")                      \
    X(REASON_LEAVE, "a rank shuts its library down and exits later")      \
    X(REASON_AGENT, "an agent is killed")                                 \
    X(REASON_SWEPT, "the ranks of a host are killed, and then its agent") \
    X(REASON_RESET, "a host crashes, and its connections end")            \
    X(REASON_POWER, "a host loses power")                                 \
    X(REASON_STOPPED, "an agent stops, and its ranks go on")

enum reason {
#define REASON_ENUM(name, text) name,
    REASON_LIST(REASON_ENUM)
#undef REASON_ENUM
        REASONS
};

/* What a driver can do wrong. Each of these must lead to wrong verdicts. */
#define LIE_LIST(X)                                                          \
    X(LIE_NOTICED, "a loss happened when the driver noticed it")             \
    X(LIE_HEARD, "a loss happened when the driver last heard of the agent")  \
    X(LIE_UNREAD, "nobody reads what the ranks wrote near a loss")           \
    X(LIE_CERTAIN, "all clocks are right")                                   \
    X(LIE_UNTOLD, "the policy does not learn when the agents began to kill") \
    X(LIE_HASTY, "the job ends at once when a rank blames a peer")           \
    X(LIE_FIRST, "the first exit is never a consequence")                    \
    X(LIE_CLOSED, "an agent that is silent has closed its connection")       \
    X(LIE_BLIND, "no agent looks which ranks are ending")

enum lie {
#define LIE_ENUM(name, text) name,
    LIE_LIST(LIE_ENUM)
#undef LIE_ENUM
        LIE_NONE
};

struct outcome {
    char problem[1600]; /* "": none */
    enum reason reason;
    bool right, doubt; /* the verdict names the reason; it has a word of doubt */
    int news;          /* that came to the driver */
};

/* `tell`: prints what happens. */
void world_run(uint64_t seed, enum lie lie, bool tell, struct outcome *out);
