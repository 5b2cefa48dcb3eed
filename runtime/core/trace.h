/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library does with each tensor, for a timeline. The core and the loop call `event` when
 * something begins or ends; a writer of timelines provides the function.
 *
 * On the root of each process set a tensor has these events, in this order:
 * - NEGOTIATE_BEGIN when the first rank has submitted it, RANK_READY for each rank, NEGOTIATE_END.
 * - OPERATION_BEGIN, then pairs of ACTIVITY_BEGIN and ACTIVITY_END, then OPERATION_END.
 * Other ranks have only the second line. All times are of the monotonic clock, in nanoseconds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum trace_kind {
    TRACE_NEGOTIATE_BEGIN, /* `what` is the operation, such as "allreduce" */
    TRACE_RANK_READY,      /* `rank` is the rank in the set that has submitted the tensor */
    TRACE_NEGOTIATE_END,
    TRACE_OPERATION_BEGIN, /* `what` is the operation, or "error" */
    TRACE_ACTIVITY_BEGIN,  /* `what` is the activity, such as "MEMCPY_IN_FUSION_BUFFER" */
    TRACE_ACTIVITY_END,
    TRACE_OPERATION_END, /* `type` and `shape`; type NULL: the operation failed */
    TRACE_CYCLE,         /* the ranks have agreed on something; without a tensor */
};

/* All pointers are borrowed during the call. */
struct trace_event {
    enum trace_kind kind;
    int32_t set;        /* number of the process set */
    const char *tensor; /* its name */
    const char *what;
    int32_t rank;
    const char *type; /* such as "float32" */
    const int64_t *shape;
    int32_t dims;
    int64_t time_ns;
};

/* The threads of different process sets call `event` at the same time. It must not block, and must
 * not call the library. It may be set and cleared (NULL) while they run, with an atomic store. A
 * call that has begun then goes on. */
struct trace {
    void (*event)(void *context, const struct trace_event *event);
    void *context;
};

static inline bool trace_is_on(const struct trace *trace)
{
    return trace != NULL && __atomic_load_n(&trace->event, __ATOMIC_ACQUIRE) != NULL;
}

static inline void trace_send(const struct trace *trace, const struct trace_event *event)
{
    void (*send)(void *context, const struct trace_event *event) =
        trace == NULL ? NULL : __atomic_load_n(&trace->event, __ATOMIC_ACQUIRE);
    if (send != NULL)
        send(trace->context, event);
}
