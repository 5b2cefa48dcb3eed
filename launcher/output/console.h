/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launcher's own stdout and stderr: which of them is a terminal, whether both lead to the same
 * place, whether labels are coloured. It looks at the descriptors once and writes only to the sink.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "output/sink.h"
#include "output/surface.h"
#include "output/types.h"

struct console {
    struct sink *sink;
    struct output_target *target[2];
    struct surface *surface[2]; /* equal when both streams lead to the same place */
    int fd[2];
    bool color[2];
};

struct console *console_create(struct sink *sink, const struct output_config *config);
void console_destroy(struct console *console);

void console_text(struct console *console, int stream, const char *text);
void console_settle(struct console *console); /* before the bytes are handed over */
void console_finish(struct console *console);
