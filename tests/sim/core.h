/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core under test, as the world sees it. In the self-test, a mutation breaks the core in one
 * known way, to see that the invariants notice.
 */
#pragma once

#include "model/elastic/elastic.h"
#include "sim/rng.h"

#define CORE_MEMBERS 64

/* Each with the invariant that must notice it (others may be quicker). */
/* clang-format off */
#define MUTATION_LIST(X)                                                                         \
    X(MUTATION_NONE, INV_NONE, "none")                                                           \
    X(MUTATION_PLACE, INV_PLACE, "two workers are told one rank")                                \
    X(MUTATION_SAME_RANK, INV_RANKS, "two members of a plan with one rank")                      \
    X(MUTATION_LOCAL, INV_LOCAL, "a wrong local size")                                           \
    X(MUTATION_CROSS, INV_LOCAL, "a wrong cross rank")                                           \
    X(MUTATION_SWAP, INV_ORDER, "two survivors change their ranks")                              \
    X(MUTATION_NEW_FIRST, INV_ZERO, "a new worker is rank 0")                                    \
    X(MUTATION_NEW_BEFORE, INV_PLACING, "a new worker before the last survivor")                 \
    X(MUTATION_THROW, INV_KEEP, "the last survivor is left out of the plan")                     \
    X(MUTATION_FEWER, INV_SIZE, "fewer than min-np workers are started")                         \
    X(MUTATION_MORE, INV_SIZE, "more than max-np workers are started")                           \
    X(MUTATION_HOST, INV_HOST, "drains are not heard")                    \
    X(MUTATION_BLACKLIST, INV_HOST, "nothing is ever blacklisted")                               \
    X(MUTATION_SLOT, INV_SLOT, "more slots than are listed")                                     \
    X(MUTATION_SEAT, INV_SEAT, "a new worker on a seat that is taken")                           \
    X(MUTATION_EPOCH, INV_EPOCH, "an epoch's number comes twice")                                \
    X(MUTATION_START_TWICE, INV_PREPARE, "START twice")                                          \
    X(MUTATION_NO_WAIT, INV_PREPARE, "START without waiting for PREPARED")                       \
    X(MUTATION_CALL_TWICE, INV_CALL, "CALL twice")                                               \
    X(MUTATION_CALL_ANY, INV_CALL, "CALL of a host that is not listed")                          \
    X(MUTATION_LET_GO, INV_LET_GO, "a host with workers is let go")                              \
    X(MUTATION_GIVE_UP, INV_GIVE_UP, "a healthy host is given up")                               \
    X(MUTATION_KILL, INV_KILL, "KILL of a seat without a worker")                                \
    X(MUTATION_ANSWER_TWICE, INV_ANSWER, "every answer twice")                                   \
    X(MUTATION_ANSWER_OTHER, INV_ANSWER_PLACE, "another worker's place is answered")             \
    X(MUTATION_ANSWER_REMOVED, INV_ANSWER_PLACE, "a member is told that it is removed")          \
    X(MUTATION_ANSWER_EARLY, INV_ANSWER_EARLY, "answers before START")                           \
    X(MUTATION_ANSWER_NEVER, INV_ANSWER_NEVER, "an answer is forgotten")                         \
    X(MUTATION_NO_DEADLINE, INV_DEADLINE, "no deadline in AGREEING")                             \
    X(MUTATION_LAST, INV_LAST, "a rejoin limit ten times as long")                               \
    X(MUTATION_PATIENT, INV_LAST, "a wait for hosts ten times as long")                          \
    X(MUTATION_LEAVE, INV_LEAVE, "deadlines of drains are not heard")                            \
    X(MUTATION_NO_GROWTH, INV_GROWTH, "rank 0 is not notified")                                  \
    X(MUTATION_NO_CALL, INV_GROWTH, "nobody is called again after a loss")                       \
    X(MUTATION_SPIN, INV_SPIN, "a deadline that stays in the past")                              \
    X(MUTATION_NO_END, INV_ENDS, "OVER is forgotten")                                            \
    X(MUTATION_DEAF, INV_VIEW, "an exit is not seen")                                            \
    X(MUTATION_FORGET_KILL, INV_VIEW, "a KILL is forgotten")                                     \
    X(MUTATION_OVER, INV_REAPED, "OVER with the verdict")                                        \
    X(MUTATION_SUCCESS, INV_SUCCESS, "every end is a success")                                   \
    X(MUTATION_UNREAD, INV_READ, "a success, though output was lost")                            \
    X(MUTATION_VERDICT, INV_VERDICT, "two verdicts")                                             \
    X(MUTATION_WRONG_CODE, INV_VERDICT, "the verdict has another exit code")                     \
    X(MUTATION_GIVE_IN, INV_HASTE, "no hosts, at once")                                          \
    X(MUTATION_AGAIN, INV_AGAIN, "a success is heard as a failure")                             \
    X(MUTATION_RESETS, INV_BUDGET, "no reset limit")                                             \
    X(MUTATION_RESTARTS, INV_BUDGET, "no limit of restarts")                                     \
    X(MUTATION_AFTER, INV_AFTER, "CALL after the verdict")                                       \
    X(MUTATION_NOTIFY, INV_NOTIFY, "another rank is notified")                                   \
    X(MUTATION_SILENT_LINE, INV_TOLD, "an empty line for the user")                              \
    X(MUTATION_NO_RESUME, INV_RESUMED, "RESUMED is forgotten")                                   \
    X(MUTATION_EARLY_RESUME, INV_RESUMED, "RESUMED with START")                                  \
    X(MUTATION_FACTS, INV_FACTS, "resumed before it was started")                                \
    X(MUTATION_VIEW, INV_VIEW, "a host is up that is not")                                       \
    X(MUTATION_WAIT, INV_EARLY, "survivors wait for new workers")                                \
    X(MUTATION_HASTY, INV_QUIET, "rank 0 is notified when newcomers are started")                \
    X(MUTATION_NUMBERS, INV_TOGETHER, "a newcomer joins as another rank")                        \
    X(MUTATION_DEAF_TO_HANGS, INV_HUNG, "hangs are not heard")                                   \
    X(MUTATION_NO_CULPRIT, INV_HOST, "nobody is to blame for a hang")                            \
    X(MUTATION_FALSE_HANG, INV_VERDICT, "a crash is said to be a hang")                          \
    X(MUTATION_BAD, INV_BAD, "a host that cannot be reached is bad")                             \
    X(MUTATION_REPEAT, INV_REPEAT, "what comes twice is said twice")
/* clang-format on */

#define MUTATION_ENUM(name, invariant, text) name,
enum mutation { MUTATION_LIST(MUTATION_ENUM) MUTATIONS };
#undef MUTATION_ENUM

struct core {
    struct elastic *elastic;
    enum mutation mutation;
    struct elastic_actions actions; /* of the last event */
    /* what mutations need */
    bool fired;
    int64_t last_ms;
    enum elastic_event_kind last;
    struct elastic_plan plan;
    struct elastic_member members[CORE_MEMBERS];
    struct elastic_facts facts;
    struct elastic_verdict verdict;
};

const char *mutation_text(enum mutation mutation);

void core_create(struct core *core, const struct elastic_config *config, int64_t now_ms,
                 enum mutation mutation);
void core_destroy(struct core *core);

void core_event(struct core *core, const struct elastic_event *event, int64_t now_ms);
int64_t core_deadline(const struct core *core);
enum elastic_state core_state(const struct core *core);
struct elastic_host_facts core_host(const struct core *core, int host);
const struct elastic_plan *core_plan(struct core *core); /* borrowed until the next call */
const struct elastic_plan *core_newcomers(const struct core *core);
const struct elastic_facts *core_facts(struct core *core);
const struct elastic_verdict *core_verdict(struct core *core);
