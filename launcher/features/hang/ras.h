/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL says about itself: how many collective operations each rank of each communicator has
 * launched (NCCL's RAS). Pure.
 *
 * A rank is behind if another rank of its communicator has launched more of the same operation. A
 * rank that others wait for is behind in some communicator, and ahead of nobody in any. One that is
 * ahead somewhere waits itself. NCCL does not count sends, receives and all-to-alls, so equal
 * numbers prove nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* X(name, the key in NCCL's JSON, plural in messages) */
#define RAS_OPERATION_LIST(X)                               \
    X(RAS_BROADCAST, "Broadcast", "broadcasts")             \
    X(RAS_REDUCE, "Reduce", "reduces")                      \
    X(RAS_ALLGATHER, "AllGather", "allgathers")             \
    X(RAS_REDUCESCATTER, "ReduceScatter", "reducescatters") \
    X(RAS_ALLREDUCE, "AllReduce", "allreduces")

enum ras_operation {
#define RAS_ENUM(name, key, plural) name,
    RAS_OPERATION_LIST(RAS_ENUM)
#undef RAS_ENUM
        RAS_OPERATIONS
};

/* A rank of a communicator. */
struct ras_place {
    uint64_t comm;                  /* a number for the communicator */
    int64_t counts[RAS_OPERATIONS]; /* launched */
};

struct ras_rank { /* of the job; borrowed */
    const struct ras_place *places;
    size_t count; /* 0: NCCL says nothing about it */
};

struct ras_finding {
    const char *operation; /* "allreduces" */
    int64_t most;          /* that a rank of the communicator has launched */
};

/* Who is behind? Sets launched[i] to how many of the operation rank i has launched, for the ranks
 * of that communicator; -1: it is not in there, or it is behind only because it waits for others.
 * false: nobody is, or they wait for each other. */
bool ras_find(const struct ras_rank *ranks, size_t count, struct ras_finding *finding,
              int64_t *launched);

/* Changes when the rank launches an operation. 0: NCCL says nothing. */
uint64_t ras_mark(const struct ras_rank *rank);

/*
 * The answer of NCCL's RAS to STATUS, in JSON. It comes from a process of the user,
 * so nothing in it is taken for granted.
 *
 * NCCL 2.28.7 and 2.28.9 leave out a comma if a rank is missing, and that is just when the answer
 * is needed. So missing commas are put in first. NCCL before 2.28.7 has no JSON.
 */

#define RAS_JSON_MAX ((size_t)16 << 20)
#define RAS_ENTRIES_MAX 65536

struct ras_entry {
    struct ras_place place;
    char host[64]; /* its address; "" if it is longer */
    int64_t pid;   /* in the PID namespace of the rank */
};

struct ras_report {
    struct ras_entry *entries; /* of ranks that have answered, at most RAS_ENTRIES_MAX */
    size_t count;
};

/* `text` begins with the lines that come before the JSON, if there are any. -1: it is no such
 * answer. */
int ras_json_read(const char *text, size_t length, struct ras_report *out, struct error *err);
void ras_report_clear(struct ras_report *report);
