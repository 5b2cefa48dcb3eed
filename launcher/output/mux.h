/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The streams of all seats: makes lines of their bytes, puts labels before them, and sends them to
 * the console and to the files. Time is a parameter; bytes go into the sink.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "output/sink.h"
#include "output/types.h"

struct console;
struct mux;

/* NULL and STATUS_USAGE: a template, pattern or list of ranks is wrong. */
struct mux *mux_create(struct sink *sink, struct console *console,
                       const struct output_config *config, struct error *err);
void mux_destroy(struct mux *mux);

/* Another worker has the seat from now on; a new seat is made. The last text of the worker before
 * is shown first, under that worker's label. */
void mux_seat(struct mux *mux, int seat, const struct output_seat *who);

void mux_bytes(struct mux *mux, int seat, int stream, const char *bytes, size_t length,
               int64_t wall_ns, int64_t now_ms);
void mux_show(struct mux *mux, int seat, int stream); /* its unfinished line, if any */
void mux_end(struct mux *mux, int seat, int stream);

int64_t mux_due_ms(const struct mux *mux); /* when to call tick; -1: nothing waits */
void mux_tick(struct mux *mux, int64_t now_ms);

void mux_flush(struct mux *mux);  /* shows lines that wait for equal ones */
void mux_finish(struct mux *mux); /* ends all streams that have not ended */
