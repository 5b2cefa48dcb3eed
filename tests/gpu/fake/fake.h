/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 and a libnccl.so.2 for machines without a GPU. They have the functions that libhvd
 * and its tests use, with the behaviour that matters:
 * - "Device" memory cannot be touched through its address: that ends in a SIGSEGV. The
 *   libraries themselves use a second mapping of it.
 * - A stream is a thread with a queue, so work is asynchronous as on a GPU.
 * - An operation of a lost rank hangs until the communicator is aborted, as a kernel does.
 * - ncclCommInitRank() hangs for ever if a rank does not come.
 *
 * Faults, from the environment, each for one rank of the job (HOROVOD_RANK):
 * - FAKE_GPU_FAIL=RANK:FUNCTION:N    the N-th call of the function fails
 * - FAKE_GPU_STALL=RANK:ncclKernel:N the N-th operation of NCCL on this rank never begins
 * - FAKE_GPU_ABSENT=RANK:ncclCommInitRank:N  the N-th ncclCommInitRank() of this rank hangs
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_API __attribute__((visibility("default")))

/* Whether this call of `function` is the one that the variable names. Counts the calls. */
FAKE_API bool fake_fault(const char *variable, const char *function);

/* The other mapping of device memory; NULL stays NULL. */
FAKE_API void *fake_shadow(const void *device);

/* Runs `function` after all that was added before. */
FAKE_API void fake_stream_add(void *stream, void (*function)(void *argument), void *argument);

/* Allocations that were not freed. */
FAKE_API size_t fake_live_allocations(void);
