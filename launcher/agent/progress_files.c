/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/progress_files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "io/folder_watch.h"

#define FILE_NAME "progress."
#define LOOK_MS 500        /* between two looks, while files change */
#define BLIND_LOOK_MS 2000 /* without inotify */
#define AGE_MAX_NS ((int64_t)2 * BLIND_LOOK_MS * 1000000) /* of a change that is seen now */

struct file {
    uint32_t seat;
    bool changed;
    bool open_end; /* its last line had no newline at the last look */
};

struct progress_files {
    struct progress_desk *desk;
    char *folder;
    uint32_t epoch;
    struct file *items; /* by ascending seat */
    size_t count;
    size_t changed;             /* files to look at */
    struct folder_watch *watch; /* NULL: no inotify, look at all files now and then */
    struct loop_timer *timer;
};

static int by_seat(const void *a, const void *b)
{
    const struct file *one = a, *other = b;
    return (one->seat > other->seat) - (one->seat < other->seat);
}

static void mark(struct progress_files *files, struct file *file)
{
    files->changed += !file->changed;
    file->changed = true;
}

static struct file *find(const struct progress_files *files, uint32_t seat)
{
    const struct file wanted = {.seat = seat};
    return bsearch(&wanted, files->items, files->count, sizeof(wanted), by_seat);
}

static void mark_all(struct progress_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        mark(files, &files->items[i]);
}

static void changed(void *context, const char *name)
{
    struct progress_files *files = context;
    int64_t seat = 0;
    if (name == NULL) {
        mark_all(files);
        return;
    }
    if (strncmp(name, FILE_NAME, strlen(FILE_NAME)) != 0 ||
        parse_int(name + strlen(FILE_NAME), 0, UINT32_MAX, &seat, NULL) < 0)
        return;
    struct file *file = find(files, (uint32_t)seat);
    if (file != NULL)
        mark(files, file);
}

char *progress_files_path(const char *folder, uint32_t seat)
{
    return mem_printf("%s/" FILE_NAME "%u", folder, seat);
}

/* When the file was written, on the monotonic clock. The wall clock may have been set meanwhile. */
static int64_t written_ns(const struct stat *info)
{
    int64_t age =
        clock_wall_ns() - (info->st_mtim.tv_sec * INT64_C(1000000000) + info->st_mtim.tv_nsec);
    return clock_mono_ns() - (age > 0 && age < AGE_MAX_NS ? age : 0);
}

/* The last bytes of the file; -1: there is none, or it is not a regular one. */
static ssize_t read_end(const char *path, char bytes[static PROGRESS_LINE_MAX], int64_t *when_ns)
{
    struct stat info;
    int fd AUTO_FD = fd_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return -1;
    *when_ns = written_ns(&info);
    off_t from = info.st_size > PROGRESS_LINE_MAX ? info.st_size - PROGRESS_LINE_MAX : 0;
    return fd_pread(fd, bytes, PROGRESS_LINE_MAX, from);
}

/* `last`: nobody writes any more. */
static void look_at(struct progress_files *files, struct file *file, bool last)
{
    char bytes[PROGRESS_LINE_MAX];
    struct progress progress AUTO_PROGRESS = PROGRESS_INIT;
    char *path AUTO_FREE = progress_files_path(files->folder, file->seat);
    int64_t when_ns = 0;
    ssize_t length = read_end(path, bytes, &when_ns);
    bool open_end = length > 0 && bytes[length - 1] != '\n';
    bool again = open_end && !file->open_end && !last;
    file->open_end = open_end;
    file->changed = again;
    files->changed -= !again;
    if (length > 0 && !again && progress_parse(bytes, (size_t)length, true, &progress, NULL) == 0)
        progress_desk_take(files->desk, files->epoch, file->seat, when_ns, &progress);
}

static void look(struct progress_files *files)
{
    for (size_t i = 0; files->changed > 0 && i < files->count; i++) {
        if (files->items[i].changed)
            look_at(files, &files->items[i], false);
    }
}

/* While files change, the timer looks, and the watch is off. */
static void look_now(void *context)
{
    struct progress_files *files = context;
    folder_watch_listen(files->watch, false);
    folder_watch_read(files->watch);
    look(files);
    loop_timer_set(files->timer, LOOK_MS);
}

static void look_again(void *context)
{
    struct progress_files *files = context;
    if (files->watch == NULL) {
        mark_all(files);
        look(files);
        loop_timer_set(files->timer, BLIND_LOOK_MS);
        return;
    }
    folder_watch_read(files->watch);
    if (files->changed > 0)
        look_now(files);
    else
        folder_watch_listen(files->watch, true);
}

struct progress_files *progress_files_create(struct loop *loop, struct progress_desk *desk,
                                             const char *folder, uint32_t epoch,
                                             const uint32_t *seats, size_t count)
{
    struct progress_files *files = mem_alloc(sizeof(*files));
    *files = (struct progress_files){
        .desk = desk, .folder = mem_strdup(folder), .epoch = epoch, .count = count};
    files->items = mem_array(count, sizeof(*files->items));
    for (size_t i = 0; i < count; i++)
        files->items[i].seat = seats[i];
    qsort(files->items, count, sizeof(*files->items), by_seat);
    files->timer = loop_timer_create(loop, look_again, files);
    files->watch = folder_watch_create(loop, folder, changed, look_now, files);
    if (files->watch != NULL)
        folder_watch_listen(files->watch, true);
    else
        loop_timer_set(files->timer, BLIND_LOOK_MS);
    return files;
}

void progress_files_destroy(struct progress_files *files)
{
    if (files == NULL)
        return;
    folder_watch_destroy(files->watch);
    loop_timer_destroy(files->timer);
    free(files->items);
    free(files->folder);
    free(files);
}

void progress_files_ended(struct progress_files *files, uint32_t seat)
{
    struct file *file = find(files, seat);
    if (files->watch != NULL)
        folder_watch_read(files->watch);
    else if (file != NULL)
        mark(files, file);
    if (file != NULL && file->changed)
        look_at(files, file, true);
    if (files->watch != NULL && files->changed > 0)
        look_now(files); /* the changes of others were read too, and no event will come for them */
    progress_desk_flush(files->desk);
}
