/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that other rooms have open (output_file_open). They are written in the order of all
 * output, by its thread.
 */
#pragma once

#include <stddef.h>

#include "output/sink.h"

struct output_file;

void output_file_write(struct output_file *file, const void *bytes, size_t length);
void output_file_close(struct output_file *file);  /* accepts NULL; `file` is gone */
void output_file_remove(struct output_file *file); /* the same, and removes it from the disk */

struct open_files {
    struct sink *sink;
    void (*changed)(void *context); /* something has been appended, or waits to be done */
    void *context;
    struct output_file *first;
};

/* Opens the target. */
struct output_file *open_files_add(struct open_files *files, struct output_target *target);

void open_files_close(struct open_files *files); /* all of them */
