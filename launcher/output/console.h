/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launcher's own stdout and stderr: which of them is a terminal, whether they are one and the
 * same place, whether labels are coloured. Looks at the descriptors once, writes only to the sink.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "output/sink.h"
#include "output/surface.h"
#include "output/types.h"

struct console {
    struct sink *sink;
    struct target *target[2];
    struct surface *surface[2]; /* twice the same when both streams end in one place */
    int fd[2];
    bool color[2];
};

/* `labelled`: something stands before the lines. */
struct console *console_create(struct sink *sink, const struct output_config *config,
                               bool labelled);
void console_destroy(struct console *console);

void console_text(struct console *console, int stream, const char *text);
void console_settle(struct console *console); /* before the bytes are handed over */
void console_finish(struct console *console);
