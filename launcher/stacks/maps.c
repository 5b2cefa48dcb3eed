/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/maps.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Reads "7f00-7f01 r--p 00000000 fe:01 1234   /path" up to the end of the line. */
static bool read_line(const char *at, size_t length, struct mapped_file *out)
{
    char *line AUTO_FREE = mem_strndup(at, length), *end = NULL;
    *out = (struct mapped_file){.start = strtoull(line, &end, 16)};
    if (*end != '-')
        return false;
    out->end = strtoull(end + 1, &end, 16);
    if (*end != ' ' || strcspn(end + 1, " ") != 4 || end[5] != ' ')
        return false;
    out->offset = strtoull(end + 6, &end, 16);
    if (*end != ' ')
        return false;
    end += 1 + strcspn(end + 1, " ");
    out->inode = *end == ' ' ? strtoull(end + 1, &end, 10) : 0;
    const char *path = strchr(end, '/');
    if (out->inode == 0 || path == NULL || out->end <= out->start)
        return false;
    out->path = mem_strdup(path);
    return true;
}

static bool wanted(const char *path, const char *program)
{
    const char *name = strrchr(path, '/') + 1;
    return strcmp(path, program) == 0 || strncmp(name, "python", 6) == 0 ||
           strncmp(name, "libpython", 9) == 0;
}

static struct mapped_file *find(const struct mapped_files *files, const char *path)
{
    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->items[i].path, path) == 0)
            return &files->items[i];
    }
    return NULL;
}

static void add(struct mapped_files *files, struct mapped_file *file, const char *program)
{
    struct mapped_file *known = find(files, file->path);
    if (known != NULL && file->offset < known->offset) {
        free(known->path);
        *known = *file;
    } else if (known == NULL && files->count < MAPPED_FILES_MAX && wanted(file->path, program)) {
        files->items = mem_resize_array(files->items, files->count + 1, sizeof(*files->items));
        files->items[files->count++] = *file;
    } else {
        free(file->path);
    }
}

void mapped_files_read(const char *text, const char *program, struct mapped_files *out)
{
    *out = (struct mapped_files){.items = NULL};
    for (const char *at = text; *at != '\0';) {
        size_t length = strcspn(at, "\n");
        struct mapped_file file;
        if (read_line(at, length, &file))
            add(out, &file, program);
        at += length + (at[length] == '\n');
    }
    struct mapped_file *first = find(out, program);
    if (first != NULL) {
        struct mapped_file other = out->items[0];
        out->items[0] = *first;
        *first = other;
    }
}

void mapped_files_destroy(struct mapped_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->items[i].path);
    free(files->items);
    *files = (struct mapped_files){.items = NULL};
}

int mapped_minor_version(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *at = strstr(slash != NULL ? slash : path, "python3.");
    if (at == NULL || !isdigit((unsigned char)at[8]))
        return -1;
    long minor = strtol(at + 8, NULL, 10);
    return minor < 100 ? (int)minor : -1;
}
