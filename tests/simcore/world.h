/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated job: one core for each rank and process set, a network that delays messages but keeps
 * the order between two ranks, and operations that wait for all members of their set, as those of
 * an engine do. A node that is in an operation neither hears nor decides anything.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/core.h"
#include "simcore/program.h"

/* X(name, text): what must hold in every run. */
#define INVARIANT_LIST(X)                                                                         \
    X(HOLDS, "every invariant held")                                                              \
    X(SAME_ORDER, "all ranks of a set run the same operations in the same order")                 \
    X(COMPLETE_ONCE, "a submission is complete exactly once")                                     \
    X(COMPLETE_ALL, "every submission is complete at the end")                                    \
    X(SAME_STATUS, "a submission has the same result on all ranks, unless the job breaks")        \
    X(RIGHT_STATUS, "the result is success if the ranks agree, and a mismatch if they don't")     \
    X(SAME_TEXT, "an error has the same text on all ranks")                                       \
    X(FUSION, "fused tensors are alike, and fit the threshold")                                   \
    X(PRIORITY, "of the tensors that are ready together, those with a higher priority run first") \
    X(TUNED, "all ranks change the threshold and the cycle time between the same operations")     \
    X(HONEST, "a core does not blame another one that follows the rules")                         \
    X(ENDS, "every set ends when a rank shuts the library down")                                  \
    X(LAST_JOINED, "all ranks hear the same rank that joined last")                               \
    X(CALM, "the cores come to rest")

#define INVARIANT_ENUM(name, text) name,
enum invariant { INVARIANT_LIST(INVARIANT_ENUM) INVARIANTS };
#undef INVARIANT_ENUM

/* X(name, invariant, text): known faults, to see that the invariants notice. */
#define FAULT_LIST(X)                                                                \
    X(FAULT_NONE, HOLDS, "none")                                                     \
    X(FAULT_SWAP, SAME_ORDER, "a rank runs two operations in the wrong order")       \
    X(FAULT_TWICE, COMPLETE_ONCE, "a completion comes twice")                        \
    X(FAULT_LOSE, RIGHT_STATUS, "a message is lost")                                 \
    X(FAULT_FORGET, COMPLETE_ALL, "a completion is forgotten")                       \
    X(FAULT_OTHER, SAME_STATUS, "a mismatch is another error on one rank")           \
                                                                                     \
    X(FAULT_STATUS, RIGHT_STATUS, "a mismatch counts as a success")                  \
    X(FAULT_TEXT, SAME_TEXT, "a rank hears another text")                            \
    X(FAULT_FUSION, FUSION, "the threshold of the core is larger than it should be") \
    X(FAULT_PRIORITY, PRIORITY, "the core gets the priorities with the wrong sign")  \
    X(FAULT_TUNE, TUNED, "a rank does not hear of another threshold")                \
    X(FAULT_BYTES, HONEST, "a byte of a message changes")                            \
    X(FAULT_END, ENDS, "the end is not heard")                                       \
    X(FAULT_JOIN, LAST_JOINED, "a rank hears another number")

#define FAULT_ENUM(name, invariant, text) name,
enum fault { FAULT_LIST(FAULT_ENUM) FAULTS };
#undef FAULT_ENUM

struct statistics {
    uint64_t events, submissions, operations, tensors, messages, stalls, tunings;
    uint64_t succeeded, mismatches, lost, shut_down;
};

struct verdict {
    enum invariant broken;
    char text[512];
};

void world_run(const struct program *program, enum fault fault, bool verbose,
               struct statistics *statistics, struct verdict *verdict);
