/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/crew_config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/progress.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

/*
 * The files in which the workers of one crew say how far they are (model/progress). Each worker has
 * one, `progress.SEAT` in the runtime folder, whose path is in its HVDRUN_PROGRESS_FILE.
 *
 * A timer looks whether the folder or one of the files has changed. While no worker has written its
 * file, that is one stat(2) in a second for all of them. inotify would not be cheaper: to close a
 * watch, the kernel waits for milliseconds, and a short job would end so much later.
 *
 * Only the end of a file is read, never from anything but a regular file. A line without its
 * newline may still be incomplete: it counts when it is there at the next look, too.
 */

#define IDLE_LOOK_MS 1000
#define LOOK_MS 500 /* once a file is there */
/* The time of a file is believed if the change is as old as that: it is seen soon after it. */
#define AGE_MAX_NS ((int64_t)2 * IDLE_LOOK_MS * 1000000)

struct file {
    uint32_t seat;
    bool there;
    bool again; /* it was new at the last look: the same tick of the clock may have hidden more */
    bool open_end; /* its last line had no newline then, and did not count */
    struct file_stamp stamp;
    char *told; /* the bytes that counted last; NULL: none */
    size_t told_length;
};

struct crew_progress {
    const struct crew_config *config;
    char *folder;
    char *token;        /* path of its file; NULL: no status endpoint */
    struct file *items; /* by ascending seat */
    size_t count;
    struct file_stamp stamp; /* of the folder */
    bool again;              /* as for a file */
    struct loop_timer *timer;
};

static int by_seat(const void *a, const void *b)
{
    const struct file *one = a, *other = b;
    return (one->seat > other->seat) - (one->seat < other->seat);
}

static char *path_of(const char *folder, uint32_t seat)
{
    return mem_printf("%s/progress.%u", folder, seat);
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

static bool was_told(const struct file *file, const char *bytes, size_t length)
{
    return file->told != NULL && file->told_length == length &&
           memcmp(file->told, bytes, length) == 0;
}

static void tell(struct crew_progress *crew, struct file *file, const char *bytes, size_t length,
                 int64_t when_ns)
{
    struct progress progress AUTO_PROGRESS = PROGRESS_INIT;
    free(file->told);
    file->told = mem_dup(bytes, length);
    file->told_length = length;
    if (progress_parse(bytes, length, true, &progress, NULL) == 0)
        progress_desk_take(crew->config->progress_desk, crew->config->epoch, file->seat, when_ns,
                           &progress);
}

/* The file has changed, or may have (`changed` is false). `last`: nobody writes any more. */
static void read_file(struct crew_progress *crew, struct file *file, const char *path, bool changed,
                      bool last)
{
    char bytes[PROGRESS_LINE_MAX];
    int64_t when_ns = 0;
    ssize_t length = read_end(path, bytes, &when_ns);
    if (length <= 0 || (!changed && was_told(file, bytes, (size_t)length)))
        return;
    bool waits = bytes[length - 1] != '\n' && changed && !file->open_end && !last;
    file->open_end = waits;
    if (!waits)
        tell(crew, file, bytes, (size_t)length, when_ns);
}

static void look_at(struct crew_progress *crew, struct file *file, bool last)
{
    char *path AUTO_FREE = path_of(crew->folder, file->seat);
    struct file_stamp stamp = file_stamp_of(path);
    bool changed = !file_stamp_equal(&stamp, &file->stamp), looks = changed || file->again || last;
    file->there = stamp.inode != 0;
    file->stamp = stamp;
    file->again = changed;
    if (file->there && looks)
        read_file(crew, file, path, changed, last);
}

static void look(void *context)
{
    struct crew_progress *crew = context;
    struct file_stamp stamp = file_stamp_of(crew->folder);
    bool changed = !file_stamp_equal(&stamp, &crew->stamp), all = changed || crew->again;
    bool any = false;
    crew->stamp = stamp;
    crew->again = changed;
    for (size_t i = 0; i < crew->count; i++) {
        if (all || crew->items[i].there)
            look_at(crew, &crew->items[i], false);
        any = any || crew->items[i].there;
    }
    loop_timer_set(crew->timer, any ? LOOK_MS : IDLE_LOOK_MS);
}

struct crew_progress *crew_progress_create(const struct crew_config *config, const char *folder,
                                           const uint32_t *seats, size_t count)
{
    if (folder == NULL || config->progress_desk == NULL)
        return NULL;
    struct crew_progress *crew = MEM_NEW((struct crew_progress){
        .config = config, .folder = mem_strdup(folder), .count = count, .again = true});
    if (config->rendezvous_port > 0)
        crew->token = progress_desk_write_token(config->progress_desk, folder);
    crew->items = mem_array(count, sizeof(*crew->items));
    for (size_t i = 0; i < count; i++)
        crew->items[i].seat = seats[i];
    qsort(crew->items, count, sizeof(*crew->items), by_seat);
    crew->timer = loop_timer_create(config->loop, look, crew);
    loop_timer_set(crew->timer, IDLE_LOOK_MS);
    return crew;
}

void crew_progress_destroy(struct crew_progress *crew)
{
    if (crew == NULL)
        return;
    loop_timer_destroy(crew->timer);
    for (size_t i = 0; i < crew->count; i++)
        free(crew->items[i].told);
    free(crew->items);
    free(crew->token);
    free(crew->folder);
    free(crew);
}

struct crew_progress_places crew_progress_places(const struct crew_progress *crew, uint32_t seat)
{
    struct crew_progress_places places = {NULL, NULL, NULL};
    if (crew == NULL)
        return places;
    places.file = path_of(crew->folder, seat);
    places.token = crew->token;
    if (crew->token != NULL)
        places.url = progress_desk_url(crew->config->rendezvous_port, crew->config->epoch, seat);
    return places;
}

void crew_progress_ended(struct crew_progress *crew, uint32_t seat)
{
    const struct file wanted = {.seat = seat};
    if (crew == NULL)
        return;
    struct file *file = bsearch(&wanted, crew->items, crew->count, sizeof(wanted), by_seat);
    if (file != NULL)
        look_at(crew, file, true);
    progress_desk_flush(crew->config->progress_desk);
}
