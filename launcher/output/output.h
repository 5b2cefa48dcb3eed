/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output room: bytes of every rank come in, whole labelled lines go out. It alone writes to the
 * terminal and to files during a job (docs/output.md).
 *
 * Nothing here blocks: one thread writes, which starts with the first byte. While less than
 * OUTPUT_QUEUE_MAX bytes wait for that thread, raw bytes become lines at once. Beyond that they
 * stay raw, in their order, and `consumed` reports when they have left. All calls belong to the
 * loop's thread. Descriptors 1 and 2 are used as they are, never made non-blocking.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "io/loop.h"
#include "output/sink.h"
#include "output/types.h"

#define OUTPUT_QUEUE_MAX (4 * 1024 * 1024)

struct output;

struct output_ops {
    /* So many raw bytes of this seat have left the backlog: credit for its agent. May be called
     * from within output_bytes(). */
    void (*consumed)(void *context, int seat, size_t bytes);
    /* Stdout or stderr can no longer be written (EPIPE: its reader has gone); further bytes are
     * dropped. Called once for each, from the loop; `text` is one line. */
    void (*failed)(void *context, enum output_stream stream, int errnum, const char *text);
};

/* NULL and `err` (STATUS_USAGE) when a template, pattern or list of ranks is wrong. */
struct output *output_create(struct loop *loop, const struct output_config *config,
                             const struct output_ops *ops, void *context, struct error *err);

/* Writes what is queued, and waits at most `wait_ms` for a sink that is stuck. False: some bytes
 * were not written. No callback runs after this. Call output_flush() first, which has no limit. */
bool output_destroy(struct output *output, int64_t wait_ms);

/*
 * The first argument of all other calls is a seat; in a static job seat and rank are equal. In an
 * elastic job workers take a seat one after the other. output_seat() says which worker has it from
 * now on, and makes room for a new seat. Both streams of the worker before should have ended,
 * because their last text goes out under that worker's label.
 *
 * Labels, --ranks and files go by the rank of that moment. A rank that had files before continues
 * them. From the first call on, a file gets whole lines, since two workers can share it.
 */
void output_seat(struct output *output, int seat, const struct output_seat *who);

void output_bytes(struct output *output, int seat, enum output_stream stream, const void *bytes,
                  size_t length, int64_t wall_ns);
/* The stream pauses inside a line (a prompt): shows the part that has come. */
void output_show(struct output *output, int seat, enum output_stream stream);
/* End of file; once per worker. */
void output_end(struct output *output, int seat, enum output_stream stream);

/* The launcher's own messages; they never land inside a line of a rank. They do not wait behind the
 * ranks' raw bytes: call output_flush() before a final report. While a terminal is stuck for long,
 * messages below errors are dropped. */
void output_message(struct output *output, enum log_level level, const char *line); /* stderr */
void output_block(struct output *output, const char *text);    /* many lines, to stderr */
void output_print(struct output *output, const char *text);    /* many lines, to stdout */
void output_progress(struct output *output, const char *text); /* one live line on a terminal's
                                                                  stderr; NULL removes it */

/* Calls done(context) from the loop when everything so far has been written or dropped, except
 * unfinished lines of streams that have not ended. */
void output_flush(struct output *output, void (*done)(void *context), void *context);

/* Files of other rooms, written in the same order by the same thread. Opening cannot fail here: a
 * warning names once a file that cannot be created or written, and its bytes are dropped. Folders
 * are not made. A file that you do not close is closed by output_destroy(). */
struct output_file *output_file_open(struct output *output, const char *path, bool append);
/* The same, but the file has its name only when it has been closed and is whole. If it cannot be
 * written, an older file of this name stays. A device, a pipe and a link are written in place. */
struct output_file *output_file_open_new(struct output *output, const char *path);
/* Writes a whole file at once, as output_file_open() would; frees `text`. */
void output_file_put(struct output *output, const char *path, char *text);
/* A new file that only this user may read. Makes the folders of its path that do not exist. The
 * file appears when it has been closed and is whole. If it cannot be written, nothing of it
 * remains, and `failed` comes once from the loop instead of the warning, also after
 * output_file_close(). */
struct output_file *
output_file_open_whole(struct output *output, const char *path,
                       void (*failed)(void *context, const char *path, int errnum), void *context);

void output_file_write(struct output_file *file, const void *bytes, size_t length);
void output_file_close(struct output_file *file);  /* accepts NULL; `file` is gone */
void output_file_remove(struct output_file *file); /* the same, and removes it from the disk */
