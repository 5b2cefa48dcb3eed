/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/known_files.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/file_stamp.h"
#include "base/mem.h"
#include "transport/ssh_module/known_hosts.h"
#include "transport/ssh_module/name_hash.h"

#define FILE_MAX (64 * 1024 * 1024)

/* A line with a hashed name. The name is tried with each host until it matches one. It cannot match
 * another, so it is not tried again: with 1,000 of them, 1,000 hosts would take 2 s. */
struct hidden {
    struct name_hash hash;
    int line;
    char *name; /* NULL: not found yet */
};

struct known_file {
    struct known_file *next;
    char *path;
    struct file_stamp seen; /* before it was read; all zero: there is nothing to read */
    struct buf text;
    int line_count;
    struct hidden *hidden; /* in the order of the lines */
    size_t hidden_count, hidden_room;
};

struct ssh_known_files {
    struct known_file *first; /* few: those of one or two configurations */
    struct name_hasher *hasher;
};

static void forget(struct known_file *file)
{
    for (size_t i = 0; i < file->hidden_count; i++)
        mem_free_at(&file->hidden[i].name);
    file->hidden_count = 0;
    file->line_count = 0;
    buf_destroy(&file->text);
}

/* Whether lines have only been added. */
static bool goes_on(const struct buf *old, const struct buf *now)
{
    return old->length > 0 && old->length <= now->length &&
           buf_text(old)[old->length - 1] == '\n' &&
           memcmp(buf_text(old), buf_text(now), old->length) == 0;
}

static void set_text(struct known_file *file, struct buf *text)
{
    size_t known = goes_on(&file->text, text) ? file->text.length : 0;
    struct byte_view left, line;

    if (known == 0)
        forget(file);
    buf_destroy(&file->text);
    file->text = *text;
    *text = (struct buf)BUF_INIT(text->limit);
    left = buf_view(&file->text);
    left.at += known;
    left.length -= known;
    while (known_hosts_next_line(&left, &line)) {
        struct hidden hidden = {.line = ++file->line_count};

        if (!name_hash_parse(&hidden.hash, known_hosts_names(line)))
            continue;
        file->hidden = mem_one_more(file->hidden, file->hidden_count, &file->hidden_room,
                                    sizeof *file->hidden);
        file->hidden[file->hidden_count++] = hidden;
    }
}

static bool is_of(struct name_hasher *hasher, struct hidden *hidden, const char *name)
{
    if (!name)
        return false;
    if (!hidden->name && name_hash_matches(hasher, &hidden->hash, name))
        hidden->name = mem_strdup(name);
    return hidden->name && strcmp(hidden->name, name) == 0;
}

static void find_in(struct known_file *file, struct name_hasher *hasher, struct known_hosts *known)
{
    struct byte_view left = buf_view(&file->text), line;
    struct hidden *hidden = file->hidden, *end = hidden + file->hidden_count;

    for (int number = 1; known_hosts_next_line(&left, &line); number++) {
        bool hides = hidden < end && hidden->line == number;

        if (!hides || is_of(hasher, hidden, known_hosts_name(known)) ||
            is_of(hasher, hidden, known_hosts_plain_name(known)))
            known_hosts_read_line(known, file->path, number, line);
        hidden += hides;
    }
}

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
        forget(file);
        mem_free_at(&file->hidden);
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
    file->text = (struct buf)BUF_INIT(FILE_MAX);
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
    set_text(file, &text);
    return 0;
}

int known_files_find(struct ssh_known_files *files, char *const *paths, struct known_hosts *known,
                     struct error *err)
{
    for (size_t i = 0; paths && paths[i]; i++) {
        struct known_file *file = file_of(files, paths[i]);

        if (bring_up_to_date(file, err) < 0)
            return -1;
        find_in(file, files->hasher, known);
    }
    return 0;
}
