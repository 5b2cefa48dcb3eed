/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts of the exit policy and the questions about them: which failures are consequences, which
 * one was first, which ones tie. Pure. Only the policy (model/exit/policy.h) uses it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/exit/record.h"
#include "model/exit/symptom.h"
#include "model/exit/verdict.h"
#include "model/plan/plan.h"

#define EXIT_NEVER INT64_MAX
#define EXIT_TIED_SHOWN_MAX 4

struct exit_node {
    int64_t killed_ns;     /* EXIT_NEVER: none of our kills reached it */
    int64_t seen_ns;       /* the last end of a rank that its agent reported; INT64_MIN: none */
    struct exit_loss loss; /* by_ns is EXIT_NEVER: not lost */
    bool lost_late;        /* our kill had reached it before */
    char *lost_text;
};

/* What the stderr of a rank says about its end. */
struct exit_said {
    enum symptom_kind kind;
    int64_t when_ns, uncertainty_ns;
};

struct exit_facts {
    const struct plan *plan; /* borrowed */
    struct exit_record *ranks;
    struct exit_said *said; /* by rank */
    struct exit_node *nodes;
    const struct exit_outside *outside; /* borrowed */
    int64_t first_kill_ns;
    int64_t own_error_ns; /* when a rank had written an error of its own for sure; EXIT_NEVER */
    int lost;             /* nodes */
};

void exit_facts_init(struct exit_facts *facts, const struct plan *plan,
                     const struct exit_outside *outside);
void exit_facts_grow(struct exit_facts *facts, const struct plan *plan); /* exit_policy_grow() */
void exit_facts_clear(struct exit_facts *facts);

bool exit_facts_is_consequence(const struct exit_facts *facts,
                               int rank); /* false when not failed */
bool exit_facts_loss_is_causal(const struct exit_facts *facts, int node);

/* Both nodes were lost, and the clocks do not tell that `node` was first. */
bool exit_facts_may_precede(const struct exit_facts *facts, int other, int node);

/* An error of a rank that may have come before the loss of this node. */
struct exit_error {
    int rank;    /* -1: none */
    bool before; /* it came before the loss for sure */
};
/* One that the lost agent still passed on. Else the first one that a rank of another node wrote. */
struct exit_error exit_facts_error_before(const struct exit_facts *facts, int node);

/* The first rank that ended after this node fell silent, and does not say that this was why; -1:
 * none. A rank that waits for a silent host waits long, so it may have had another reason. */
int exit_facts_doubtful_after(const struct exit_facts *facts, int node);

/* The end of a rank, compared with the loss of a node. */
enum exit_order { EXIT_BEFORE, EXIT_UNORDERED, EXIT_AFTER };

/* The lost node that most likely came before the end of this rank. */
struct exit_rival {
    int node; /* -1: the rank was before all of them */
    enum exit_order order;
};
struct exit_rival exit_facts_rival(const struct exit_facts *facts, int rank);

/* The failure has a reason of its own: a crash, a kill, an error that the rank wrote, or one that
 * another rank wrote before it. All others may follow from the loss of a node. */
bool exit_facts_stands_alone(const struct exit_facts *facts, int rank);

/* The earliest of each kind that could be the cause; -1 = none. */
struct exit_survey {
    int first_rank;           /* causal failure of a rank */
    int first_node;           /* causal loss of a node */
    int late_rank;            /* consequence */
    int late_node;            /* a node lost after our kill */
    int statusless_rank;      /* the lowest rank without a status */
    bool launcher;            /* its failure is causal */
    bool all_clean;           /* every rank exited with 0 */
    int max_status, max_rank; /* among causal failures; rank -1: not a rank's */
};
struct exit_survey exit_facts_survey(const struct exit_facts *facts);

/* The causal failures that may have come before `first`, the earliest by the clocks. */
struct exit_tie {
    int named;     /* the rank to blame */
    int count;     /* 1: no tie */
    bool by_grade; /* named for its grade, not for its number */
    int64_t span_ns;
    int shown[EXIT_TIED_SHOWN_MAX]; /* the lowest of them */
};
struct exit_tie exit_facts_tie(const struct exit_facts *facts, int first);
