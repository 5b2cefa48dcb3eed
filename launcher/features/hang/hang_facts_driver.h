/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver finds out about a quiet job: which operations wait, what NCCL says, and where the
 * main threads are. */
#pragma once

#include "driver/job/job.h"
#include "driver/tell/stalls.h"
#include "features/hang/hang.h"
#include "features/hang/ras.h"
#include "stacks/stack.h"

/*
 * Which operations of a quiet job wait for which ranks, and which of these names the rank to blame.
 * libhvd says that when the agents ask (docs/runtime.md). An answer is never needed: a worker that
 * does not answer only leaves less to know.
 *
 * One answer of a worker has a stall for each group of ranks that wait in a process set. The answer
 * to a later question replaces it.
 */
#define HANG_WAITS_MAX 256

struct hang_waits;

struct hang_waits *hang_waits_create(void);
void hang_waits_destroy(struct hang_waits *waits); /* accepts NULL */
void hang_waits_forget(struct hang_waits *waits);  /* the job shows progress */

/* Takes what `stall` owns. `round`: of the question that it answers. Without ranks, it only says
 * that nothing waits in its set. */
void hang_waits_take(struct hang_waits *waits, struct stall *stall, uint32_t round);

/* The wait that names the ranks to blame, among the answers and the stalls that were reported and
 * last. The fewest missing ranks decide, then those that do not wait themselves. NULL: none.
 * Borrowed until the next change. */
const struct stall *hang_waits_decide(const struct hang_waits *waits,
                                      const struct stall_list *stalls, int64_t now_ns);

/* Appends what this one says, and for what the first missing rank waits itself. */
void hang_waits_text(const struct hang_waits *waits, const struct stall *found, struct buf *out);

/* What NCCL has last said about each worker, from PULSE. */
struct ras_facts;

struct ras_facts *ras_facts_create(void);
void ras_facts_destroy(struct ras_facts *facts); /* accepts NULL */

/* Nobody asks NCCL for now: the next answer starts anew. */
void ras_facts_forget(struct ras_facts *facts);
/* Takes an answer, if there is one. Returns in how many answers the worker has launched something
 * since the one before. */
uint64_t ras_facts_take(struct ras_facts *facts, int seat, const Hvdrun__RankPulse *pulse);
/* Borrowed until the next answer. */
struct ras_rank ras_facts_of(const struct ras_facts *facts, int seat);

/*
 * The looks that hang.h wants: where the main threads of all ranks are.
 *
 * Of Python, the frames say that. Other programs count as busy, but for those that spin in a call
 * of MPI that does not return (mpi_wait.h). To see this, native frames must be read, for which the
 * kernel stops the ranks for a moment. So it is only done with --hang-timeout, when ranks spin.
 */

/* Both are borrowed. */
struct hang_looks;
struct hang_looks *hang_looks_create(struct job *job, struct hang *hang);
void hang_looks_destroy(struct hang_looks *looks); /* accepts NULL */

/* One at a time. It calls hang_looked() for each rank. */
void hang_looks_ask(struct hang_looks *looks);
/* How deep the last ones were. */
enum look_depth hang_looks_depth(const struct hang_looks *looks);
