/* SPDX-License-Identifier: Apache-2.0 */
#include "features/stage/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/plain.h"

#define NEIGHBOURS 8 /* other copies that are looked at, each with a descriptor and a list */
#define COARSE_NS 2000000000LL

/* How a copy changes what the user asked for is said in docs/staging.md: read-only, no owner. */
static mode_t mode_of(const struct stage_file *file)
{
    return file->kind == 'x' ? 0500 : 0400;
}

static int go_on(const struct stage_copy *copy, struct error *err)
{
    return stage_watch_go_on(copy->config.watch, err);
}

static char *path_in(const struct stage_copy *copy, const char *name)
{
    return mem_printf("%s/copy/%s", copy->folder, name);
}

/* Is what is there what the list says? */

/* A file system may keep coarser times: those of FAT have 2 s. */
static bool has_stamp(const struct stat *info, const struct stage_file *file)
{
    int64_t seconds = file->seconds - info->st_mtim.tv_sec;
    int64_t late_ns = seconds < 0 || seconds > 2
                          ? -1
                          : seconds * 1000000000 + file->nanoseconds - info->st_mtim.tv_nsec;
    return S_ISREG(info->st_mode) && (uint64_t)info->st_size == file->size && late_ns >= 0 &&
           late_ns < COARSE_NS && ((info->st_mode & 0100) != 0) == (file->kind == 'x');
}

/* What is read at once: new memory costs more than to read a small file. */
static size_t piece_size(const struct stage_file *file)
{
    return file->size < STAGE_CHUNK ? (size_t)file->size + 1 : STAGE_CHUNK;
}

static int fails(const char *path, struct error *err)
{
    return stage_store_fails(errno, "cannot write", path, err);
}

/* Reads a file of this host, and writes what it has to another one, `out`, unless that is -1. 1:
 * it has that content. 0: it does not. */
static int read_content(const struct stage_copy *copy, const char *from, int out, const char *to,
                        const struct stage_file *file, struct error *err)
{
    const size_t size = piece_size(file);
    uint8_t found[SHA256_SIZE], *piece AUTO_FREE = mem_alloc(size);
    struct sha256 hash;
    int in AUTO_FD = fd_open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    ssize_t got = in < 0 ? -1 : fd_read(in, piece, size);
    sha256_begin(&hash);
    for (; got > 0; got = fd_read(in, piece, size)) {
        if (out >= 0 && fd_write_all(out, piece, (size_t)got) < 0)
            return fails(to, err);
        sha256_add(&hash, piece, (size_t)got);
        if (go_on(copy, err) < 0)
            return -1;
    }
    sha256_end(&hash, found);
    return got == 0 && memcmp(found, file->hash, sizeof(found)) == 0;
}

bool stage_link_leads(const char *path, const char *target)
{
    char text[4096];
    ssize_t length = readlink(path, text, sizeof(text));
    return length == (ssize_t)strlen(target) && memcmp(text, target, (size_t)length) == 0;
}

static bool is_good(const struct stage_copy *copy, const char *path, const struct stage_file *file,
                    bool reads)
{
    struct stat info;
    if (lstat(path, &info) < 0)
        return false;
    if (file->kind == 'd')
        return S_ISDIR(info.st_mode);
    if (file->kind == 'l')
        return S_ISLNK(info.st_mode) && stage_link_leads(path, file->target);
    return has_stamp(&info, file) && (!reads || read_content(copy, path, -1, NULL, file, NULL) > 0);
}

/* NULL, or what in the copy is not as it was. */
static const char *damaged(const struct stage_copy *copy, bool reads)
{
    const char *name = NULL;
    for (size_t i = 0; name == NULL && i < copy->list.count; i++) {
        const struct stage_file *file = &copy->list.files[i];
        char *path AUTO_FREE = mem_printf("%s/%s/copy/%s", copy->store.path, copy->id, file->name);
        if (!is_good(copy, path, file, reads) || go_on(copy, NULL) < 0)
            name = file->name;
    }
    return name;
}

/* A link out of the root must lead somewhere on this host, too. */
static int check_links(const struct stage_copy *copy, const char *folder, struct error *err)
{
    for (size_t i = 0; i < copy->list.count; i++) {
        const struct stage_file *file = &copy->list.files[i];
        char *path AUTO_FREE = mem_printf("%s/copy/%s", folder, file->name);
        struct stat info;
        if (file->kind == 'l' && stat(path, &info) < 0)
            return error_errno(err, errno,
                               "the staged link %s leads to %s, which cannot be used here",
                               file->name, file->target);
    }
    return 0;
}

/* With the lock. It counts as used, and stays from now on if this job keeps copies. */
static void use(struct stage_copy *copy)
{
    char *once AUTO_FREE = mem_printf("%s/%s/once", copy->store.path, copy->id);
    copy->complete = true;
    stage_store_used(&copy->store, copy->id);
    if (copy->config.keep.bytes > 0)
        unlink(once);
}

/* 1: a good copy was there. 0: none is. */
static int take_whole(struct stage_copy *copy, struct error *err)
{
    char *folder AUTO_FREE = mem_printf("%s/%s", copy->store.path, copy->id);
    copy->lock = stage_store_take(&copy->store, copy->id);
    if (copy->lock < 0)
        return go_on(copy, err);
    bool fresh = stage_store_is_fresh(&copy->store, copy->id);
    const char *bad = damaged(copy, !fresh);
    if (bad == NULL) {
        use(copy);
        if (!fresh)
            (void)!stage_store_refresh(folder, NULL);
        return check_links(copy, folder, err) < 0 ? -1 : 1;
    }
    if (go_on(copy, err) < 0)
        return -1;
    if (stage_store_claim(copy->lock) == 0)
        return error_set(err,
                         "the staged copy of %s in %s has changed, and another job uses it (root "
                         "can write to copies): end that job, or choose another --stage-dir",
                         plain_show(bad, strlen(bad)).text, folder);
    stage_store_remove(&copy->store, copy->id);
    fd_close(&copy->lock);
    return 0;
}

/* Building */

/* The file ends: sets what the list says. Closes it. */
static int finish_file(int *fd, const char *path, const struct stage_file *file, struct error *err)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
                                {.tv_sec = file->seconds, .tv_nsec = file->nanoseconds}};
    bool done = fchmod(*fd, mode_of(file)) == 0 && futimens(*fd, times) == 0;
    int result = done ? 0 : fails(path, err);
    if (close(*fd) < 0 && done) /* a server may say only now that a disk is full */
        result = fails(path, err);
    *fd = -1;
    return result;
}

static int create_file(const char *path, struct error *err)
{
    int fd = fd_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd >= 0 ? fd : fails(path, err);
}

/* Folders, links and empty files. */
static int make_frame(struct stage_copy *copy, struct error *err)
{
    for (size_t i = 0; i < copy->list.count; i++) {
        const struct stage_file *file = &copy->list.files[i];
        char *path AUTO_FREE = path_in(copy, file->name);
        if (go_on(copy, err) < 0)
            return -1;
        if ((file->kind == 'd' && mkdir(path, 0700) < 0) ||
            (file->kind == 'l' && symlink(file->target, path) < 0))
            return fails(path, err);
        if (!stage_file_is_plain(file) || file->size > 0)
            continue;
        int fd = create_file(path, err);
        if (fd < 0 || finish_file(&fd, path, file, err) < 0)
            return -1;
    }
    return 0;
}

/* The same into a new file. */
static int copy_content(const struct stage_copy *copy, const char *from, const char *to,
                        const struct stage_file *file, struct error *err)
{
    int out AUTO_FD = create_file(to, err);
    int result = out < 0 ? -1 : read_content(copy, from, out, to, file, err);
    if (result > 0)
        return finish_file(&out, to, file, err) < 0 ? -1 : 1;
    if (result == 0)
        unlink(to);
    return result;
}

/* Other copies */

struct neighbour { /* a copy that has the shared lock */
    char *id;
    struct stage_list list;
    int lock;
    bool fresh; /* since the last start of the host */
};

struct found { /* a content */
    const struct neighbour *in;
    const struct stage_file *file;
};

static void add_contents(struct map *map, const struct neighbour *in)
{
    for (size_t i = 0; i < in->list.content_count; i++) {
        const struct stage_file *file = &in->list.files[in->list.contents[i]];
        struct found *found = MEM_NEW((struct found){in, file});
        free(map_put(map, map_bytes(file->hash, SHA256_SIZE), found));
    }
}

/* 1: the content is in the folder now. A file with the same time and mode is one with it. */
static int adopt_one(struct stage_copy *copy, const struct found *found,
                     const struct stage_file *file, struct error *err)
{
    char *from AUTO_FREE =
        mem_printf("%s/%s/copy/%s", copy->store.path, found->in->id, found->file->name);
    char *to AUTO_FREE = path_in(copy, file->name);
    bool same = found->file->kind == file->kind && found->file->seconds == file->seconds &&
                found->file->nanoseconds == file->nanoseconds;
    if (go_on(copy, err) < 0)
        return -1;
    if (!is_good(copy, from, found->file, same && !found->in->fresh))
        return 0;
    if (same && link(from, to) == 0)
        return 1;
    return copy_content(copy, from, to, file, err);
}

static int adopt_from(struct stage_copy *copy, const struct map *map, struct error *err)
{
    for (size_t i = 0; i < copy->list.content_count; i++) {
        const struct stage_file *file = &copy->list.files[copy->list.contents[i]];
        const struct found *found = map_get(map, map_bytes(file->hash, SHA256_SIZE));
        int adopted = found == NULL || found->file->size != file->size
                          ? 0
                          : adopt_one(copy, found, file, err);
        if (adopted < 0)
            return -1;
        copy->has[i] = adopted > 0;
        copy->missing += adopted > 0 ? 0 : file->size;
    }
    return 0;
}

static int adopt(struct stage_copy *copy, struct error *err)
{
    AUTO_STRV struct strv ids = STRV_INIT;
    struct map map = {.count = 0};
    struct neighbour list[NEIGHBOURS];
    size_t count = 0;
    stage_store_ids(&copy->store, &ids);
    for (size_t i = 0; i < ids.count && i < NEIGHBOURS && go_on(copy, NULL) == 0; i++) {
        struct neighbour *next = &list[count];
        *next = (struct neighbour){.id = ids.items[i],
                                   .lock = stage_store_take(&copy->store, ids.items[i])};
        next->fresh = stage_store_is_fresh(&copy->store, next->id); /* of the copy that is locked */
        if (next->lock >= 0 && stage_store_list(&copy->store, next->id, &next->list) == 0)
            count++;
        else
            fd_close(&next->lock);
    }
    for (size_t i = 0; i < count; i++)
        add_contents(&map, &list[i]);
    int result = adopt_from(copy, &map, err);
    map_clear(&map, free);
    for (size_t i = 0; i < count; i++) {
        stage_list_destroy(&list[i].list);
        fd_close(&list[i].lock);
    }
    return result;
}

static int check_space(const struct stage_copy *copy, struct error *err)
{
    struct statvfs info;
    if (statvfs(copy->folder, &info) < 0 || info.f_blocks == 0)
        return 0; /* it does not say */
    uint64_t space = (uint64_t)info.f_bavail * info.f_frsize;
    if (space >= copy->missing)
        return 0;
    return error_set(err,
                     "no space for staged files (another --stage-dir?): %s has %" PRIu64
                     " MiB of free space, and they need %" PRIu64 " MiB",
                     copy->store.path, space >> 20, (copy->missing >> 20) + 1);
}

static int begin_building(struct stage_copy *copy, struct error *err)
{
    copy->folder = stage_store_build(&copy->store, &copy->lock, err);
    if (copy->folder == NULL)
        return -1;
    copy->has = mem_array(copy->list.content_count, sizeof(*copy->has));
    char *root AUTO_FREE = mem_printf("%s/copy", copy->folder);
    if (mkdir(root, 0700) < 0)
        return fails(root, err);
    if (make_frame(copy, err) < 0 || adopt(copy, err) < 0 ||
        stage_store_tidy(&copy->store, &copy->config.keep, copy->list.stream, err) < 0)
        return -1;
    return check_space(copy, err);
}

int stage_copy_begin(struct stage_copy *copy, const struct stage_copy_config *config,
                     struct stage_list *list, struct error *err)
{
    *copy = (struct stage_copy){.config = *config, .list = *list, .lock = -1, .fd = -1};
    *list = (struct stage_list){.text = NULL};
    stage_list_id(&copy->list, copy->id);
    int result = stage_store_open(config->place, config->watch, &copy->store, err);
    if (result == 0)
        result = take_whole(copy, err);
    if (result == 0)
        result = begin_building(copy, err);
    else if (result > 0) /* what dead jobs have left goes in any case */
        result = stage_store_tidy(&copy->store, &config->keep, 0, err);
    if (result < 0)
        stage_copy_close(copy);
    return result < 0 ? -1 : 0;
}

bool stage_copy_lacks(const struct stage_copy *copy, uint64_t chunk)
{
    const struct stage_list *list = &copy->list;
    uint64_t at = chunk * STAGE_CHUNK, end = at + stage_chunk_size(list->stream, chunk);
    bool lacks = false;
    size_t i = copy->complete ? list->content_count : stage_list_find(list, at);
    for (; !lacks && i < list->content_count && list->files[list->contents[i]].at < end; i++)
        lacks = !copy->has[i];
    return lacks;
}

/* Some bytes of a content that is missing, the next ones. */
static int write_content(struct stage_copy *copy, size_t content, uint64_t at, const uint8_t *bytes,
                         size_t length, struct error *err)
{
    const struct stage_file *file = &copy->list.files[copy->list.contents[content]];
    char *path AUTO_FREE = path_in(copy, file->name);
    uint8_t found[SHA256_SIZE];
    if (at == file->at) {
        fd_close(&copy->fd);
        copy->fd = create_file(path, err);
        copy->content = content;
        sha256_begin(&copy->hash);
        if (copy->fd < 0)
            return -1;
    }
    if (copy->fd < 0 || copy->content != content)
        return error_set(err, "the chunks of %s are not in order", file->name);
    if (fd_write_all(copy->fd, bytes, length) < 0)
        return fails(path, err);
    sha256_add(&copy->hash, bytes, length);
    if (at + length < file->at + file->size)
        return 0;
    sha256_end(&copy->hash, found);
    if (memcmp(found, file->hash, sizeof(found)) != 0)
        return error_set(err, "%s changed while it was staged: stage what nobody writes to",
                         file->name);
    copy->has[content] = true;
    return finish_file(&copy->fd, path, file, err);
}

int stage_copy_write(struct stage_copy *copy, uint64_t chunk, const uint8_t *bytes, size_t length,
                     struct error *err)
{
    const struct stage_list *list = &copy->list;
    uint64_t at = chunk * STAGE_CHUNK, end = at + length;
    int result = go_on(copy, err);
    for (size_t i = stage_list_find(list, at); result == 0 && at < end; i++) {
        const struct stage_file *file = &list->files[list->contents[i]];
        uint64_t until = file->at + file->size < end ? file->at + file->size : end;
        if (!copy->has[i])
            result = write_content(copy, i, at, bytes, (size_t)(until - at), err);
        bytes += until - at;
        at = until;
    }
    if (result < 0)
        stage_copy_close(copy);
    return result;
}

static int close_folders(struct stage_copy *copy, struct error *err)
{
    for (size_t i = copy->list.count; i > 0; i--) {
        const struct stage_file *file = &copy->list.files[i - 1];
        char *path AUTO_FREE = path_in(copy, file->name);
        if (file->kind == 'd' && chmod(path, 0500) < 0)
            return fails(path, err);
    }
    return 0;
}

static int write_marks(struct stage_copy *copy, struct error *err)
{
    const struct stage_list *list = &copy->list;
    if (stage_store_mark(copy->folder, "list", list->text, list->length, err) < 0 ||
        (copy->config.keep.bytes == 0 && stage_store_mark(copy->folder, "once", "", 0, err) < 0))
        return -1;
    return stage_store_refresh(copy->folder, err);
}

/* What was built, if anything. */
static void drop(struct stage_copy *copy)
{
    if (copy->folder != NULL)
        stage_store_remove(&copy->store, strrchr(copy->folder, '/') + 1);
    mem_free_at(&copy->folder);
    fd_close(&copy->lock);
}

/* Another agent was faster: its copy is as good, and ours goes. */
static int take_other(struct stage_copy *copy, struct error *err)
{
    drop(copy);
    copy->lock = stage_store_take(&copy->store, copy->id);
    if (copy->lock >= 0 && damaged(copy, false) == NULL) {
        use(copy);
        return 0;
    }
    return error_set(err,
                     "another job has changed or removed the copy of %s meanwhile: start again",
                     copy->list.files[0].name);
}

int stage_copy_end(struct stage_copy *copy, struct error *err)
{
    int result = copy->complete ? 1 : 0;
    if (!copy->complete) {
        result = check_links(copy, copy->folder, err) < 0 || close_folders(copy, err) < 0 ||
                         write_marks(copy, err) < 0
                     ? -1
                     : stage_store_finish(&copy->store, copy->folder, copy->id, err);
        if (result > 0)
            mem_free_at(&copy->folder);
        copy->complete = result > 0;
    }
    if (result == 0)
        result = take_other(copy, err);
    if (result < 0)
        stage_copy_close(copy);
    return result < 0 ? -1 : 0;
}

char *stage_copy_place(const struct stage_copy *copy)
{
    return mem_printf("%s/%s/copy/%s", copy->store.path, copy->id, copy->list.files[0].name);
}

bool stage_copy_is_alone(const struct stage_copy *copy)
{
    return copy->complete && stage_store_claim(copy->lock) > 0;
}

void stage_copy_close(struct stage_copy *copy)
{
    fd_close(&copy->fd);
    if (copy->complete) {
        char *once AUTO_FREE = mem_printf("%s/%s/once", copy->store.path, copy->id);
        stage_store_used(&copy->store, copy->id);
        if (access(once, F_OK) == 0 && stage_copy_is_alone(copy))
            stage_store_remove(&copy->store, copy->id);
    }
    drop(copy);
    mem_free_at(&copy->store.path);
    stage_list_destroy(&copy->list);
    mem_free_at(&copy->has);
    *copy = (struct stage_copy){.lock = -1, .fd = -1};
}
