/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/known_files.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "base/file_stamp.h"
#include "base/mem.h"
#include "transport/ssh_module/known_index.h"

#define FILE_MAX (64 * 1024 * 1024)

struct known_file {
    struct known_file *next;
    char *path;
    struct file_stamp seen; /* before it was read; all zero: there is nothing to read */
    struct known_index *index;
};

struct ssh_known_files {
    struct known_file *first; /* few: those of one or two configurations */
    struct name_hasher *hasher;
};

struct ssh_known_files *known_files_create(void)
{
    struct ssh_known_files *files = mem_alloc(sizeof *files);

    files->hasher = name_hasher_create();
    return files;
}

void known_files_destroy(struct ssh_known_files *files)
{
    if (!files)
        return;
    while (files->first) {
        struct known_file *file = files->first;

        files->first = file->next;
        known_index_destroy(file->index);
        mem_free_at(&file->path);
        mem_free_at(&file);
    }
    name_hasher_destroy(files->hasher);
    mem_free_at(&files);
}

static struct known_file *file_of(struct ssh_known_files *files, const char *path)
{
    struct known_file *file = files->first;

    while (file && strcmp(file->path, path) != 0)
        file = file->next;
    if (file)
        return file;
    file = mem_alloc(sizeof *file);
    file->path = mem_strdup(path);
    file->index = known_index_create(path, files->hasher);
    file->next = files->first;
    files->first = file;
    return file;
}

static int bring_up_to_date(struct known_file *file, struct error *err)
{
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX);
    struct file_stamp now = {.size = 0};
    struct stat status;

    /* A FIFO or a device would make us wait, or never end. */
    if (stat(file->path, &status) == 0 && S_ISREG(status.st_mode))
        now = file_stamp_of_stat(&status);
    if (file_stamp_equal(&now, &file->seen))
        return 0;
    if (now.size >= FILE_MAX)
        return error_set(err, "%s is larger than %d MiB, too large for a known_hosts file",
                         file->path, FILE_MAX / 1024 / 1024);
    if (now.inode != 0 && fd_read_file(file->path, &text, NULL) < 0) {
        if (errno != EACCES && errno != EPERM && errno != ENOENT)
            return error_set(err, "cannot read %s: %s", file->path, strerrordesc_np(errno));
        buf_clear(&text);
    }
    file->seen = now;
    known_index_set(file->index, &text);
    return 0;
}

int known_files_find(struct ssh_known_files *files, char *const *paths, struct known_hosts *known,
                     struct error *err)
{
    for (size_t i = 0; paths && paths[i]; i++) {
        struct known_file *file = file_of(files, paths[i]);

        if (bring_up_to_date(file, err) < 0)
            return -1;
        known_index_find(file->index, known);
    }
    return 0;
}
