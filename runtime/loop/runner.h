/* SPDX-License-Identifier: Apache-2.0 */
/* What the operations of a lane have in common, its engine, its members and its fusion buffer; and
 * these operations. One thread uses it. */
#pragma once

#include "core/action.h"
#include "core/trace.h"
#include "engine/engine.h"
#include "loop/handles.h"

struct runner {
    const struct engine *engine;
    struct engine_comm *comm;
    int32_t set;
    int rank, size;
    const int *ranks; /* global */
    const struct trace *trace;
    void *buffer; /* for fusion; owned */
    size_t room;
    bool failed; /* an operation has failed, and its buffers may still be in use */
};

/* The buffer stays where it is if an engine that keeps buffers has failed. */
void runner_destroy(struct runner *runner);

/* Ends a call of the engine. Not HVD_OK: its buffers are kept, if the engine wants that. */
enum hvd_status runner_called(struct runner *runner, enum hvd_status status);

/* Frees memory that was a buffer of the engine, unless that must be kept. Accepts NULL. */
void runner_free(const struct runner *runner, void *memory);

/* Makes the buffer as large. */
enum hvd_status runner_reserve(struct runner *runner, size_t bytes, struct error *err);

/* An event of a tensor, if there is a timeline. `what` NULL: the operation failed. */
void runner_trace(const struct runner *runner, enum trace_kind kind, const struct request *request,
                  const char *what);

/* The same for each part of an operation. */
void runner_trace_all(const struct runner *runner, enum trace_kind kind, const struct part *parts,
                      size_t count, const char *what);

/* An activity of the engine, such as "GLOO_ALLREDUCE". */
void runner_activity(const struct runner *runner, enum trace_kind kind, const struct part *parts,
                     size_t count, const char *operation);

/* The engine has no average: that is a sum, divided with the same multiplication as the user's
 * scale. */
enum hvd_op runner_reduction(const struct request *request);
double runner_postscale(const struct runner *runner, const struct request *request);

/* Adasum in host memory, in place. The tensors of `parts` are back to back in `data`, and each is a
 * vector of its own. Status: as of the operations in engine/engine.h. */
enum hvd_status runner_adasum(struct runner *runner, const struct part *parts, size_t count,
                              void *data, struct error *err);

/* The set rank of a broadcast's root. */
int runner_root(const struct runner *runner, const struct request *request);

/* How many rows of a tensor come from each member. Members exchange the numbers of rows first. */
struct layout {
    int64_t *rows;          /* from each set rank; goes to the outcome */
    size_t *receive, *send; /* bytes from and to each; one block */
    size_t row_bytes, total;
    int64_t total_rows;
    void *data;      /* `total` bytes; NULL: none */
    bool rows_given; /* the engine has had the rows, so they may have to stay, too */
};

void layout_init(const struct runner *runner, const struct request *request, struct layout *layout);
/* After a failure, the memory that the engine had may have to stay. */
void layout_destroy(const struct runner *runner, struct layout *layout);
/* Fills in all but the data. HVD_ERR_MEMORY: what the others announce cannot be right. */
enum hvd_status layout_exchange(struct runner *runner, const struct part *part,
                                struct layout *layout, struct error *err);
/* The result goes to the program, with the rows from each rank. */
void layout_give(const struct runner *runner, struct layout *layout, struct outcome *outcome);

/* ---- Operations ------------------------------------------------------------------------------ */

/*
 * Runs one operation of a process set with its engine: that of `parts`, whose tokens are
 * submissions. `outcomes` has one for each part. A failure means that the engine cannot be used any
 * more, and the outcomes say the same. Then the buffers that it was given are kept, if it says so.
 *
 * Tensors that are fused go through the fusion buffer: one copy in, one operation, one copy out;
 * the copies scale. A single allreduce is done in its own output. The first dimensions of
 * allgathers and the splits of an alltoall are exchanged before the data.
 */
enum hvd_status operation_run(struct runner *runner, const struct part *parts, size_t count,
                              struct outcome *outcomes, struct error *err);

/* Allgather, which may be fused, and alltoall, which never is. Only the sender of rows knows how
 * many there are. */
enum hvd_status gather_run(struct runner *runner, const struct part *parts, size_t count,
                           struct outcome *outcomes, struct error *err);
enum hvd_status alltoall_run(struct runner *runner, const struct part *part,
                             struct outcome *outcome, struct error *err);
