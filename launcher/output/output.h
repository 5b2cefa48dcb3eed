/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output room: bytes of every rank in, whole labelled lines out. The only owner of the terminal
 * and of everything else that is written during a job (docs/output.md).
 *
 * Nothing here blocks: what can block is written by one thread, which starts with the first byte.
 * While less than OUTPUT_QUEUE_MAX bytes wait for it, raw bytes become lines at once; beyond that
 * they stay raw, in their order, and `consumed` tells when they have left. All calls belong to the
 * loop's thread. Descriptors 1 and 2 are used as they are, never made non-blocking.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "io/loop.h"
#include "output/types.h"

#define OUTPUT_QUEUE_MAX (4 * 1024 * 1024)

struct output;
struct output_file;

struct output_ops {
    /* So many raw bytes of this rank have left the backlog: credit for its agent. May be called
     * from within output_bytes(). */
    void (*consumed)(void *context, int rank, size_t bytes);
    /* Stdout or stderr cannot be written any more (EPIPE: its reader has gone) and swallows all
     * further bytes. Called once for each, from the loop; `text` is one line. */
    void (*failed)(void *context, enum output_stream stream, int errnum, const char *text);
};

/* NULL and `err` (STATUS_USAGE) when a template, pattern or list of ranks is wrong. */
struct output *output_create(struct loop *loop, const struct output_config *config,
                             const struct output_ops *ops, void *context, struct error *err);

/* Writes out what there is, waiting at most `wait_ms` for a sink that is stuck; false: something
 * was not written. No callback runs after this. Call output_flush() first and take the time. */
bool output_destroy(struct output *output, int64_t wait_ms);

/*
 * Ranks of an elastic job. The `rank` in all other calls (and raw_rank) is then the number of a
 * seat, which workers take one after the other: output_seat() says who sits there from now on, and
 * makes room when the number is beyond what there was. Before it, both streams of the one who sat
 * there should have ended; what is left of it goes out under its own label, its tail is forgotten.
 * Labels, --ranks and files go by the rank of that moment. Files of a rank that had some before are
 * continued; from the first call on a file gets whole lines, since two workers may have it.
 */
void output_seat(struct output *output, int seat, const struct output_seat *who);

void output_bytes(struct output *output, int rank, enum output_stream stream, const void *bytes,
                  size_t length, int64_t wall_ns);
/* The stream pauses inside a line (a prompt): shows what has come of it. */
void output_show(struct output *output, int rank, enum output_stream stream);
/* End of file; once per worker. */
void output_end(struct output *output, int rank, enum output_stream stream);

/* The launcher's own words; a line of them never lands inside somebody else's. They don't wait
 * behind the ranks' raw bytes: before a final report, output_flush(). Of a terminal that is stuck
 * for long, messages below errors are dropped. */
void output_message(struct output *output, enum log_level level, const char *line); /* stderr */
void output_block(struct output *output, const char *text);    /* many lines, to stderr */
void output_print(struct output *output, const char *text);    /* many lines, to stdout */
void output_progress(struct output *output, const char *text); /* one live line on a terminal's
                                                                  stderr; NULL removes it */

/* The last lines of this rank's stderr (of its terminal for raw_rank): tail.h. Borrowed until the
 * next call for this rank. */
const char *output_tail(struct output *output, int rank);

/* Calls done(context) from the loop when everything given so far has been written or dropped.
 * Unfinished lines of streams that have not ended are not part of that. */
void output_flush(struct output *output, void (*done)(void *context), void *context);

/* Files of other rooms, written in the same order by the same thread. Opening cannot fail here: a
 * file that cannot be made or written is named once in a warning, and swallows the rest. A file
 * that is not closed is closed by output_destroy(). */
struct output_file *output_file_open(struct output *output, const char *path, bool append);
void output_file_write(struct output_file *file, const void *bytes, size_t length);
void output_file_close(struct output_file *file); /* accepts NULL; `file` is gone */
