/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of a root: what is in it, in an order in which a folder comes before what it holds.
 * Pure.
 *
 * A record is a line of plain text and one or two names, each of which ends with NUL:
 *   d -                             NAME
 *   l -                             NAME TARGET
 *   f SIZE SECONDS NANOSECONDS HASH NAME         x: the same, executable
 * The first record is the root itself, and its name has no slash. The others begin with that name
 * and a slash. Names are any bytes but NUL: newlines, and what is not UTF-8.
 *
 * The agent trusts a list no further than stage_list_read(): no name leads out of the root, nothing
 * is below a link or a file, and nothing comes twice.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/sha256.h"

struct stage_file {
    char kind;          /* 'd', 'l', 'f' or 'x' */
    const char *name;   /* borrowed from the list */
    const char *target; /* of a link */
    uint64_t size;
    int64_t seconds; /* its time of modification */
    uint32_t nanoseconds;
    uint8_t hash[SHA256_SIZE];
    uint64_t at; /* of the content in the stream */
};

struct stage_list {
    char *text; /* owned */
    size_t length;
    struct stage_file *files;
    size_t count;
    size_t *contents; /* the files whose contents are the stream: those that are not empty */
    size_t content_count;
    uint64_t stream; /* bytes of all */
};

/* Appends the record. -1: the list would be too long. */
int stage_list_put(struct buf *out, const struct stage_file *file);

/* Takes `text` in either case. -1: it is not a list; `out` is empty. */
int stage_list_read(char *text, size_t length, struct stage_list *out, struct error *err);
void stage_list_destroy(struct stage_list *list); /* accepts an all-zero struct */

#define STAGE_ID_ROOM 33
void stage_list_id(const struct stage_list *list, char out[STAGE_ID_ROOM]);

static inline bool stage_file_is_plain(const struct stage_file *file)
{
    return file->kind == 'f' || file->kind == 'x';
}

/* What `below` the root ("" or "/...") names, or the link that leads there. NULL: nothing. */
const struct stage_file *stage_list_entry(const struct stage_list *list, const char *below);

uint64_t stage_list_chunks(const struct stage_list *list);
/* How many bytes the chunk has; 0: it does not exist. */
size_t stage_chunk_size(uint64_t stream, uint64_t chunk);
size_t stage_list_chunk_size(const struct stage_list *list, uint64_t chunk);

/* The first of list->contents that ends behind this place of the stream; content_count: none does.
 */
size_t stage_list_find(const struct stage_list *list, uint64_t at);
