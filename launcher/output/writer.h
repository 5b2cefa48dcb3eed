/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of a sink: it writes blocks of bytes to their targets, in the order of the queue. If
 * no thread can be had, writer_push() itself writes, and blocks.
 *
 * All functions are for the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/target.h"

#define BLOCK_BYTES (108 * 1024)
#define BLOCK_SEGMENTS 1024
#define BLOCK_END 0x80000000u /* as an offset: this and an enum target_end; bytes are below */

struct segment {
    struct output_target *target;
    uint32_t offset, length;
};

struct block {
    struct block *next;
    size_t length;
    int segments;
    struct segment segment[BLOCK_SEGMENTS];
    char bytes[BLOCK_BYTES];
};

struct writer;

struct writer *writer_create(void);

/* Starts the thread, once. Returns the wake_fd (writer_wake()); -1: there is none. */
int writer_start(struct writer *writer);

/* Writes what is queued, waiting at most `wait_ms`, ends the thread and frees everything. False:
 * the thread is blocked in a write; it does the rest when that write returns. */
bool writer_end(struct writer *writer, int64_t wait_ms);

/* Targets live as long as the writer. Returns `target`. */
struct output_target *writer_keep(struct writer *writer, struct output_target *target);

struct block *writer_block(struct writer *writer); /* an empty one */

/* Takes the block into the queue. Unless `even_if_busy`, false while the thread has something to
 * write: then it wakes the loop when it has written that. */
bool writer_push(struct writer *writer, struct block *block, bool even_if_busy);

size_t writer_written(const struct writer *writer); /* bytes, ever (or dropped) */
uint64_t writer_done(const struct writer *writer);  /* blocks */

/* Makes the wake_fd readable once: when `appended` bytes less what is written are at most `below`,
 * or `ticket` blocks are done (0: not wanted). Also after a failure. */
void writer_wake(struct writer *writer, size_t appended, size_t below, uint64_t ticket);
void writer_woken(struct writer *writer); /* empties the wake_fd */

/* A target that has failed since the last call, and errno; NULL: none. */
struct output_target *writer_failure(struct writer *writer, int *errnum);
