/* SPDX-License-Identifier: Apache-2.0 */
#include "features/stage/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/send_queue.h"

#define PIECE STAGE_CHUNK

struct scan {
    struct stage_source *source;
    struct buf text;
    size_t count, room;
    uint8_t *piece; /* PIECE bytes */
};

int stage_source_open(struct stage_source *source, const char *named, struct stage_watch *watch,
                      struct error *err)
{
    const char *slash = strrchr(named, '/');
    *source = (struct stage_source){.fd = -1, .watch = watch};
    if (slash == NULL || slash[1] == '\0')
        return error_set(err, "the folder / cannot be staged");
    source->path = realpath(named, NULL);
    if (source->path == NULL)
        return error_errno(err, errno, "cannot stage %s", named);
    source->name = mem_strdup(slash + 1);
    return 0;
}

void stage_source_close(struct stage_source *source)
{
    if (source->path != NULL)
        fd_close(&source->fd);
    stage_list_destroy(&source->list);
    mem_free_at(&source->path);
    mem_free_at(&source->name);
    mem_free_at(&source->stamps);
}

/* The path of a name of the list. The caller frees it. */
static char *path_of(const struct stage_source *source, const char *name)
{
    return mem_printf("%s%s", source->path, name + strlen(source->name));
}

int stage_watch_go_on(struct stage_watch *watch, struct error *err)
{
    atomic_fetch_add(&watch->beat, 1);
    return atomic_load(&watch->stop) ? error_set(err, "--stage was interrupted") : 0;
}

static int go_on(const struct stage_source *source, struct error *err)
{
    return stage_watch_go_on(source->watch, err);
}

static int cannot_read(const char *path, int code, struct error *err)
{
    return error_errno(err, code, "cannot read %s", path);
}

static int says_changed(const char *path, struct error *err)
{
    return error_set(err, "%s changed while it was staged: stage what nobody writes to", path);
}

static int add_record(struct scan *scan, const struct stage_file *file, const struct stat *info,
                      struct error *err)
{
    struct stage_source *source = scan->source;
    if (stage_list_put(&scan->text, file) < 0)
        return error_set(err,
                         "%s has too many files (the list of their names has a limit of %zu MiB): "
                         "stage parts of it, or an archive",
                         source->path, STAGE_LIST_MAX >> 20);
    MEM_ADD_ROOM(source->stamps, scan->count, scan->room) = file_stamp_of_stat(info);
    return 0;
}

static int hash_content(struct scan *scan, int fd, const char *path, struct stage_file *file,
                        struct error *err)
{
    struct sha256 hash;
    uint64_t bytes = 0;
    sha256_begin(&hash);
    while (true) {
        ssize_t got = fd_read(fd, scan->piece, PIECE);
        if (got < 0)
            return cannot_read(path, errno, err);
        if (got == 0)
            break;
        sha256_add(&hash, scan->piece, (size_t)got);
        bytes += (uint64_t)got;
        if (go_on(scan->source, err) < 0)
            return -1;
        if (bytes > file->size)
            break;
    }
    sha256_end(&hash, file->hash);
    return bytes == file->size ? 0 : says_changed(path, err);
}

static int scan_file(struct scan *scan, const char *path, const char *name,
                     const struct stat *named, struct error *err)
{
    struct stat info, after;
    int fd AUTO_FD = fd_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0 || fstat(fd, &info) < 0)
        return cannot_read(path, errno, err);
    if (!S_ISREG(info.st_mode) || info.st_ino != named->st_ino)
        return says_changed(path, err);
    struct stage_file file = {.kind = (info.st_mode & 0111) != 0 ? 'x' : 'f',
                              .name = name,
                              .size = (uint64_t)info.st_size,
                              .seconds = info.st_mtim.tv_sec < 0 ? 0 : info.st_mtim.tv_sec,
                              .nanoseconds = (uint32_t)info.st_mtim.tv_nsec};
    if (hash_content(scan, fd, path, &file, err) < 0)
        return -1;
    struct file_stamp before = file_stamp_of_stat(&info);
    if (fstat(fd, &after) < 0)
        return cannot_read(path, errno, err);
    struct file_stamp now = file_stamp_of_stat(&after);
    if (!file_stamp_equal(&before, &now))
        return says_changed(path, err);
    return add_record(scan, &file, &info, err);
}

static int scan_link(struct scan *scan, const char *path, const char *name, const struct stat *info,
                     struct error *err)
{
    char text[4096];
    struct stat target;
    ssize_t length = readlink(path, text, sizeof(text) - 1);
    if (length < 0)
        return cannot_read(path, errno, err);
    text[length] = '\0';
    if (stat(path, &target) < 0)
        return error_errno(err, errno, "%s is a symbolic link to %s, which cannot be followed",
                           path, text);
    char *folder AUTO_FREE = mem_strndup(path, (size_t)(strrchr(path, '/') - path));
    char *to AUTO_FREE = stage_link_target(scan->source->path, folder, text);
    struct stage_file file = {.kind = 'l', .name = name, .target = to};
    return add_record(scan, &file, info, err);
}

static int scan_path(struct scan *scan, const char *name, struct error *err);

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int stage_names_read(const char *path, struct strv *names, struct error *err)
{
    DIR *folder = opendir(path);
    if (folder == NULL)
        return cannot_read(path, errno, err);
    errno = 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            strv_add(names, entry->d_name);
        errno = 0;
    }
    int code = errno;
    closedir(folder);
    if (names->count > 0)
        qsort(names->items, names->count, sizeof(*names->items), compare_names);
    return code == 0 ? 0 : cannot_read(path, code, err);
}

static int scan_folder(struct scan *scan, const char *path, const char *name,
                       const struct stat *info, struct error *err)
{
    struct stage_file file = {.kind = 'd', .name = name};
    AUTO_STRV struct strv names = STRV_INIT;
    /* all of them first, so that a deep tree needs one descriptor */
    if (stage_names_read(path, &names, err) < 0 || add_record(scan, &file, info, err) < 0)
        return -1;
    for (size_t i = 0; i < names.count; i++) {
        char *below AUTO_FREE = mem_printf("%s/%s", name, names.items[i]);
        if (scan_path(scan, below, err) < 0)
            return -1;
    }
    return 0;
}

static int scan_path(struct scan *scan, const char *name, struct error *err)
{
    char *path AUTO_FREE = path_of(scan->source, name);
    struct stat info;
    if (go_on(scan->source, err) < 0)
        return -1;
    if (lstat(path, &info) < 0)
        return cannot_read(path, errno, err);
    if (S_ISREG(info.st_mode))
        return scan_file(scan, path, name, &info, err);
    if (S_ISDIR(info.st_mode))
        return scan_folder(scan, path, name, &info, err);
    if (S_ISLNK(info.st_mode))
        return scan_link(scan, path, name, &info, err);
    return error_set(err, "%s is a socket, a pipe or a device, which cannot be staged", path);
}

int stage_source_scan(struct stage_source *source, struct error *err)
{
    struct scan scan = {.source = source, .text = BUF_INIT(STAGE_LIST_MAX)};
    scan.piece = mem_alloc(PIECE);
    int result = scan_path(&scan, source->name, err);
    size_t length = scan.text.length;
    free(scan.piece);
    char *text = mem_dup(buf_text(&scan.text), length + 1);
    buf_destroy(&scan.text);
    if (result < 0) {
        free(text);
        return -1;
    }
    if (stage_list_read(text, length, &source->list, err) < 0)
        return error_set(err, "a path below %s is too long to be staged", source->path);
    return 0;
}

static int open_file(struct stage_source *source, size_t file, struct error *err)
{
    struct stat info;
    if (source->fd >= 0 && source->file == file)
        return 0;
    fd_close(&source->fd);
    char *path AUTO_FREE = path_of(source, source->list.files[file].name);
    source->fd = fd_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    source->file = file;
    if (source->fd < 0 || fstat(source->fd, &info) < 0)
        return cannot_read(path, errno, err);
    struct file_stamp stamp = file_stamp_of_stat(&info);
    return file_stamp_equal(&stamp, &source->stamps[file]) ? 0 : says_changed(path, err);
}

/* Some bytes of a file, from a place of the stream. */
static int read_part(struct stage_source *source, size_t file, uint64_t at, uint8_t *out,
                     size_t length, struct error *err)
{
    off_t offset = (off_t)(at - source->list.files[file].at);
    if (open_file(source, file, err) < 0)
        return -1;
    ssize_t got = fd_pread(source->fd, out, length, offset);
    if (got == (ssize_t)length)
        return 0;
    char *path AUTO_FREE = path_of(source, source->list.files[file].name);
    return got < 0 ? cannot_read(path, errno, err) : says_changed(path, err);
}

int stage_source_read(struct stage_source *source, uint64_t chunk, uint8_t *out, struct error *err)
{
    const struct stage_list *list = &source->list;
    uint64_t at = chunk * STAGE_CHUNK, end = at + stage_chunk_size(list->stream, chunk);
    for (size_t i = stage_list_find(list, at); at < end; i++) {
        const struct stage_file *file = &list->files[list->contents[i]];
        uint64_t until = file->at + file->size < end ? file->at + file->size : end;
        if (read_part(source, list->contents[i], at, out, (size_t)(until - at), err) < 0)
            return -1;
        out += until - at;
        at = until;
    }
    return 0;
}

/* All roots */

int stage_roots_add(struct stage_roots *roots, const char *text, const char *here,
                    struct error *err)
{
    struct stage_root_words words = {.path = NULL};
    if (stage_root_parse(text, &words, err) < 0)
        return -1;
    roots->items[roots->count++] =
        (struct stage_root){.named = stage_path_clean(here, words.path),
                            .dest = words.dest == NULL ? mem_strdup("") : words.dest};
    free(words.path);
    return 0;
}

/* A link in a root would be part of its next copy. */
static int check_dest(const struct stage_roots *roots, const char *dest, struct error *err)
{
    char *link AUTO_FREE = stage_path_clean(roots->wdir, dest);
    char *folder AUTO_FREE = mem_strdup(link);
    char *slash = strrchr(folder, '/');
    if (dest[0] == '\0')
        return 0;
    slash[slash == folder ? 1 : 0] = '\0';
    char *real AUTO_FREE = realpath(folder, NULL); /* if this machine has it */
    for (size_t i = 0; i < roots->count; i++) {
        const struct stage_root *other = &roots->items[i];
        if (stage_path_below(link, other->named) != NULL ||
            (real != NULL && stage_path_below(real, other->source.path) != NULL))
            return error_usage(err,
                               "--stage cannot make the link %s in %s, which is staged: choose "
                               "another DEST",
                               link, other->named);
    }
    return 0;
}

int stage_roots_list(struct stage_roots *roots, struct error *err)
{
    for (size_t i = 0; i < roots->count; i++) {
        struct stage_root *root = &roots->items[i];
        if (stage_source_open(&root->source, root->named, &roots->watch, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < roots->count; i++) {
        struct stage_root *root = &roots->items[i];
        if (check_dest(roots, root->dest, err) < 0 || stage_source_scan(&root->source, err) < 0)
            return -1;
        const struct stage_list *list = &root->source.list;
        root->list = shared_block_create(list->length);
        memcpy(root->list->bytes, list->text, list->length);
    }
    return 0;
}

int stage_roots_read(struct stage_roots *roots, size_t root, uint64_t chunk,
                     struct shared_block **blocks, size_t count, struct error *err)
{
    struct stage_source *source = &roots->items[root].source;
    for (size_t i = 0; i < count; i++) {
        blocks[i] = shared_block_create(stage_chunk_size(source->list.stream, chunk + i));
        atomic_fetch_add(&roots->watch.beat, 1);
        if (stage_source_read(source, chunk + i, blocks[i]->bytes, err) < 0)
            return -1;
    }
    return 0;
}

void stage_roots_destroy(struct stage_roots *roots)
{
    for (size_t i = 0; i < roots->count; i++) {
        struct stage_root *root = &roots->items[i];
        stage_source_close(&root->source);
        shared_block_release(root->list);
        free(root->named);
        free(root->dest);
    }
    free(roots->items);
    free(roots->wdir);
}
