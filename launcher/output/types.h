/* SPDX-License-Identifier: Apache-2.0 */
/* The two streams, the configuration and the worker of a seat, for all files of this room. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum output_stream { OUTPUT_STDOUT, OUTPUT_STDERR };
enum output_color { OUTPUT_COLOR_AUTO, OUTPUT_COLOR_ALWAYS, OUTPUT_COLOR_NEVER };

/* One or more lines of a rank, as they go to the terminal, without their label. */
struct output_piece {
    int rank;
    enum output_stream stream;
    int64_t wall_ns;
    const char *text; /* borrowed; ends with the newline, unless the line goes on */
    size_t length;
    bool goes_on;     /* the last line has no end yet: the next piece of this stream continues it */
    bool overwritten; /* the line ends with a return: the next one takes its place, as in a progress
                         bar */
};

/* Gets a copy of what the ranks show. */
struct output_tap {
    void (*piece)(void *context, const struct output_piece *piece); /* NULL: nobody listens */
    void *context;
};

struct output_config { /* everything it points to is copied or used during output_create only */
    int ranks;         /* in an elastic job: those that have a seat from the start, or 0 */
    int ranks_max;     /* of an elastic job: the most that there can be, for --ranks and for
                          the names of files; 0: as many as `ranks`, or unknown */
    const char *const *hosts; /* by rank; NULL: unknown */
    const int *local_ranks;   /* by rank; NULL: the same as the rank */
    const char *label;        /* template (label.h); NULL: horovodrun's "[%r]<%s>:" */
    bool no_label;
    bool timestamp; /* in front of the label, as --prefix-output-with-timestamp */
    bool collapse;  /* identical lines of many ranks once */
    bool merge_stderr;
    bool quiet;   /* of the launcher's own messages only errors */
    bool verbose; /* all of them; normally up to LOG_NOTICE */
    enum output_color color;
    const char *ranks_shown; /* model/settings/shown.h; NULL: all. Files get all output */
    const char *files;       /* --output-filename FOLDER or PATTERN (copies.c), or NULL */
    bool append;             /* what those files hold already stays */
    int raw_seat;            /* --pty: the bytes of this seat go to stdout as they are; -1: none */
    int out_fd, err_fd;      /* 0: the process's own stdout and stderr */
    struct output_tap tap;   /* not of the rank with --pty, which does not write lines */
};

/* The worker that has a seat; model/elastic/elastic.h says what a seat is. */
struct output_seat {
    int rank, local_rank;
    const char *host;      /* copied */
    int world, world_rank; /* of a rank that was spawned: world 1 or later; 0: none was */
};
