/* SPDX-License-Identifier: Apache-2.0 */
#include "output/open_files.h"

#include <stdlib.h>

#include "base/mem.h"

struct output_file {
    struct output_file *next;
    struct open_files *all;
    struct output_target *target;
};

static void changed(const struct open_files *files)
{
    files->changed(files->context);
}

struct output_file *open_files_add(struct open_files *files, struct output_target *target)
{
    struct output_file *file = mem_alloc(sizeof(*file));
    file->all = files;
    file->target = target;
    sink_open(files->sink, file->target);
    file->next = files->first;
    files->first = file;
    changed(files);
    return file;
}

void open_files_close(struct open_files *files)
{
    while (files->first != NULL)
        output_file_close(files->first);
}

void output_file_write(struct output_file *file, const void *bytes, size_t length)
{
    sink_append(file->all->sink, file->target, bytes, length);
    changed(file->all);
}

static void end_file(struct output_file *file, void (*end)(struct sink *, struct output_target *))
{
    if (file == NULL)
        return;
    struct open_files *files = file->all;
    struct output_file **place = &files->first;
    while (*place != file)
        place = &(*place)->next;
    *place = file->next;
    end(files->sink, file->target);
    changed(files);
    free(file);
}

void output_file_close(struct output_file *file)
{
    end_file(file, sink_close);
}

void output_file_remove(struct output_file *file)
{
    end_file(file, sink_remove);
}
