/* SPDX-License-Identifier: Apache-2.0 */
/* What the table of causes (cause.def) asks about a failure: facts that hold or do not hold. Pure.
 */
#pragma once

#include "features/evidence/error_text.h"
#include "features/evidence/facts.h"
#include "features/evidence/host_signs.h"

struct view { /* all is borrowed */
    const struct explain_facts *facts;
    const struct explain_rank *rank; /* that the story is about; NULL: none */
    const struct explain_host *host; /* of the rank; NULL: not known */
    const struct error_text *error;  /* of the rank's output */
    size_t at;                       /* its line that the present row is about */
};

struct view view_of(const struct explain_facts *facts, const struct explain_rank *rank);

/* clang-format off */
#define FACT_LIST(X)                                                                              \
    X(always) X(has_folder) X(differ) X(nccl_answered) X(has_flights) X(nccl_and_flights)         \
    X(gone) X(success) X(stopped) X(interrupted) X(hung_up) X(reader_gone) X(ctrl_c) X(timeout)   \
    X(hang_of_rank) X(hang_of_stopped) X(hang_of_frozen) X(hang_of_starved) X(hang_of_nobody)     \
    X(hang_of_left) X(hang_without_folder)                                                        \
    X(host_was_lost) X(agent_was_killed) X(gpu_is_sick) X(gpu_was_misused) X(full_host)           \
    X(full_folder)                                                                                \
    X(failed) X(ended) X(killed) X(signal_by_request) X(out_of_memory) X(memory_of_child)         \
    X(left_early) X(silent) X(raised) X(wrote) X(not_run) X(behind)                               \
    X(core_is_there) X(core_is_off) X(core_is_piped)
/* clang-format on */

#define FACT_PROTOTYPE(name) bool fact_##name(const struct view *v);
FACT_LIST(FACT_PROTOTYPE)
#undef FACT_PROTOTYPE

/* The host that the facts are about. NULL: there is none. */
const struct explain_host *view_lost_host(const struct view *v);
const struct explain_host *view_gpu_host(const struct view *v, enum gpu_fault fault);
const struct explain_host *view_full_host(const struct view *v);

/* The first and the last of the collective operations in which ranks gave up; 0: not known. */
void view_collectives(const struct view *v, int64_t *behind, int64_t *ahead);
