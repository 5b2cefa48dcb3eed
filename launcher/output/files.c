/* SPDX-License-Identifier: Apache-2.0 */
#include "output/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

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
