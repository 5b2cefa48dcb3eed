/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of a process set that run on a GPU: launched, and not complete. The GPU completes them
 * in the order of their launch. One thread uses them, within gpu_enter().
 */
#pragma once

#include "engine/nccl/comm.h"
#include "engine/nccl/gpus.h"
#include "loop/channel.h"
#include "loop/runner.h"

struct flight;

struct flights {
    const struct runner *runner; /* for its timeline */
    struct handles *handles;
    struct flight *first, **end;
    int64_t since_ns; /* when the first one could begin */
};

void flights_init(struct flights *flights, const struct runner *runner, struct handles *handles);

/* The operation of `parts` is complete at the mark, which it takes. Then the submissions get the
 * outcomes. `outcomes` NULL: the submissions are complete already. */
void flights_add(struct flights *flights, struct gpu_mark *end, const struct part *parts,
                 size_t count, const struct outcome *outcomes, int64_t now_ns);

bool flights_are_none(const struct flights *flights);
const char *flights_first_name(const struct flights *flights); /* of a tensor; borrowed */
/* The end of the first one, for a bell; NULL: there is none, or it has a bell. */
const struct gpu_mark *flights_take_bell(struct flights *flights);

/* Completes those that the GPU has completed. HVD_ERR_ENGINE: CUDA reports an error. */
enum hvd_status flights_land(struct flights *flights, int64_t now_ns, struct error *err);

/* Whether the GPU still works on one. */
bool flights_are_busy(const struct flights *flights);

/* All fail. Their streams must not run any more. */
void flights_fail(struct flights *flights, enum hvd_status status, const char *text);

/*
 * A bell that the GPU rings when it has completed an operation: a stream of CUDA calls bell_ring()
 * in a thread of its own. Then the thread of the process set wakes up and looks. So nothing polls.
 *
 * A GPU that has failed never calls, and a slow one calls late. So the bell lives as long as
 * somebody may ring it, and is silent when the channel has gone.
 */
struct bell;

struct bell *bell_create(struct channel *channel);
void bell_silence(struct bell *bell); /* gives up the creator's hold; the channel is free */
struct bell *bell_hold(struct bell *bell);
void bell_ring(void *bell); /* and gives up a hold */

/* The program's streams that an operation on a GPU depends on. Most programs have one. */
enum { GPU_STREAMS_MAX = 8 };

/* The last mark of each stream. The marks live as long as their submissions. */
struct gpu_streams {
    const struct gpu_mark *marks[GPU_STREAMS_MAX];
    size_t count;
    bool all; /* there are no others, and each stream is the same in all threads */
};

/* The communicator's stream goes on when the tensors are ready in the program's streams. */
enum hvd_status gpu_streams_wait(struct gpu_streams *streams, const struct nccl_comm *comm,
                                 const struct part *parts, size_t count, struct error *err);

/* The program's streams go on at the mark, which is of the communicator's stream. */
enum hvd_status gpu_streams_hold(const struct gpu_streams *streams, const struct nccl_comm *comm,
                                 const struct gpu_mark *end, struct error *err);
