/* SPDX-License-Identifier: Apache-2.0 */
#include "output/copies.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "output/copies_test.h"
#include "output/label.h"

/*
 * The files to which the output of each rank is copied: --output-filename. Pure: names only.
 *
 * A text without % is a folder: FOLDER/rank.NN/stdout and FOLDER/rank.NN/stderr, as horovodrun lays
 * them out, NN as wide as the highest rank ("rank.0" for up to 10 ranks, "rank.00" for up to 100).
 * A text with % is a pattern: %r rank, %h host, %l local rank, %s stream.
 */

struct files {
    char *folder;          /* or NULL, and then: */
    struct label *pattern; /* owned */
    int width;             /* of the rank in a folder's name */
    bool merge, distinct;
};

static struct label *compile_pattern(const char *text, struct error *err)
{
    struct label *pattern = label_compile(text, err);
    if (pattern != NULL && (label_keys(pattern) & LABEL_TIME) != 0) {
        error_set(err, "a file name cannot contain %%t; use %%r, %%h, %%l or %%s");
        label_destroy(pattern);
        return NULL;
    }
    return pattern;
}

struct files *files_create(const char *text, int ranks, bool merge, struct error *err)
{
    if (*text == '\0') {
        error_set(err, "--output-filename is empty; give a folder, or a pattern with %%r");
        return NULL;
    }
    struct files *files = mem_alloc(sizeof(*files));
    files->merge = merge;
    if (strchr(text, '%') == NULL) {
        char highest[16];
        files->width = snprintf(highest, sizeof(highest), "%d", ranks > 1 ? ranks - 1 : 0);
        files->folder = mem_strdup(text);
        files->distinct = !merge;
        return files;
    }
    files->pattern = compile_pattern(text, err);
    if (files->pattern == NULL) {
        error_wrap(err, "--output-filename");
        files_destroy(files);
        return NULL;
    }
    unsigned keys = label_keys(files->pattern);
    bool by_rank = (keys & LABEL_RANK) != 0 || (~keys & (LABEL_HOST | LABEL_LOCAL_RANK)) == 0;
    files->distinct = by_rank && (keys & LABEL_STREAM) != 0 && !merge;
    return files;
}

void files_destroy(struct files *files)
{
    if (files == NULL)
        return;
    free(files->folder);
    label_destroy(files->pattern);
    free(files);
}

void files_path(const struct files *files, const struct label_facts *facts, struct buf *out)
{
    struct label_facts where = *facts;
    if (files->merge)
        where.stream = "stdout";
    if (files->folder != NULL)
        buf_printf(out, "%s/rank.%0*d/%s", files->folder, files->width, where.rank, where.stream);
    else
        label_render(files->pattern, &where, out);
}

bool files_distinct(const struct files *files)
{
    return files->distinct;
}

#define PATH_BYTES_MAX (1024 * 1024)

/* Unfinished lines of all files together; beyond that long ones are written before their time. */
#define HELD_MAX (16 * 1024 * 1024)
#define HELD_LONG 4096

struct copy {
    struct output_target *target;
    int streams;                  /* that have it now */
    const struct copy_end *owner; /* the last writer; NULL when it is gone */
    bool unfinished;              /* the last byte was no newline */
};

struct copies {
    struct sink *sink;
    struct files *files;
    bool append, shared;
    struct map by_path;
    size_t held;
    struct buf path;
    const struct copy_end *writer; /* what the callback of lines.h works on */
};

struct copies *copies_create(struct sink *sink, struct files *files, bool append)
{
    struct copies *copies = mem_alloc(sizeof(*copies));
    copies->sink = sink;
    copies->files = files;
    copies->append = append;
    copies->shared = !files_distinct(files);
    buf_init(&copies->path, PATH_BYTES_MAX);
    return copies;
}

void copies_destroy(struct copies *copies)
{
    if (copies == NULL)
        return;
    map_clear(&copies->by_path, free);
    files_destroy(copies->files);
    buf_destroy(&copies->path);
    free(copies);
}

void copies_share(struct copies *copies)
{
    copies->shared = true;
}

static struct copy *add_copy(struct copies *copies, const char *path)
{
    struct copy *copy = mem_alloc(sizeof(*copy));
    copy->target = sink_keep(copies->sink, target_file(path, copies->append, true));
    sink_open(copies->sink, copy->target);
    map_put(&copies->by_path, map_text(copy->target->path), copy);
    return copy;
}

/* ---- writing ---- */

static void write_bytes(struct copies *copies, const struct copy_end *writer, const char *bytes,
                        size_t length)
{
    struct copy *copy = writer->copy;
    if (length == 0)
        return;
    if (copy->unfinished && copy->owner != writer)
        sink_append(copies->sink, copy->target, "\n", 1);
    sink_append(copies->sink, copy->target, bytes, length);
    copy->owner = writer;
    copy->unfinished = bytes[length - 1] != '\n';
}

static void on_piece(void *context, const struct lines_piece *piece)
{
    struct copies *copies = context;
    write_bytes(copies, copies->writer, piece->text, piece->length);
}

/* ---- public functions ---- */

void copies_begin(struct copies *copies, struct copy_end *end, const struct label_facts *facts)
{
    buf_clear(&copies->path);
    files_path(copies->files, facts, &copies->path);
    const char *path = buf_text(&copies->path);
    end->copy = map_get(&copies->by_path, map_text(path));
    if (end->copy == NULL)
        end->copy = add_copy(copies, path);
    end->copy->streams++;
    end->lines.runs = true;
}

void copies_add(struct copies *copies, struct copy_end *end, const char *bytes, size_t length)
{
    if (!copies->shared) {
        write_bytes(copies, end, bytes, length);
        return;
    }
    copies->writer = end;
    copies->held -= end->lines.length;
    lines_add(&end->lines, bytes, length, on_piece, copies);
    if (copies->held + end->lines.length > HELD_MAX && end->lines.length > HELD_LONG)
        lines_show(&end->lines, on_piece, copies);
    copies->held += end->lines.length;
}

void copies_finish(struct copies *copies, struct copy_end *end)
{
    struct copy *copy = end->copy;
    if (copy == NULL)
        return;
    copies->writer = end;
    copies->held -= end->lines.length;
    lines_finish(&end->lines, on_piece, copies);
    if (copy->owner == end)
        copy->owner = NULL;
    if (--copy->streams == 0)
        sink_end(copies->sink, copy->target, TARGET_REST);
    end->copy = NULL;
}
