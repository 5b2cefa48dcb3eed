/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The label before a line: a template that is compiled once. Names of files are made from it too.
 *
 * %r is the rank (1.0: rank 0 of world 1, which was spawned), %h the host, %l the local rank, %s
 * the stream, %t the time, and %% a percent sign. Any other letter is an error. %t is local time as
 * 2026-11-21 13:05:59.042. label_timestamp() has horovodrun's form.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define LABEL_DEFAULT "[%r]<%s>:" /* horovodrun's */
#define LABEL_TEMPLATE_MAX 1024

enum {
    LABEL_RANK = 1,
    LABEL_HOST = 2,
    LABEL_LOCAL_RANK = 4,
    LABEL_STREAM = 8,
    LABEL_TIME = 16,
};

struct label;

struct label_facts {
    int rank, local_rank;
    int world, world_rank; /* shown as 1.0 instead of the rank; world 0: not */
    const char *host;      /* NULL: shown as "?" */
    const char *stream;    /* "stdout" or "stderr" */
    int64_t wall_ns;
};

/* NULL and `err` when the template is wrong. */
struct label *label_compile(const char *template, struct error *err);
void label_destroy(struct label *label);

unsigned label_keys(const struct label *label); /* which of LABEL_RANK ... it contains */

/* Appends to `out`, whose limit must allow for it (a host name is at most 255 bytes). */
void label_render(const struct label *label, const struct label_facts *facts, struct buf *out);

/* Appends the time as horovodrun --prefix-output-with-timestamp prints it, in front of its label:
 * local time in the form of asctime, "Sat Nov 21 13:05:59 2026". */
void label_timestamp(int64_t wall_ns, struct buf *out);
