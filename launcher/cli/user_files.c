/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"

static int cannot(const char *what, const char *path, int errnum, struct error *err)
{
    error_errno(err, errnum, "cannot %s %s", what, path);
    if (err != NULL)
        err->status = STATUS_USAGE;
    return -1;
}

/* Opens without blocking: open() of a FIFO without a writer would wait. */
static int open_text(const char *path, struct error *err)
{
    struct stat info;
    int fd = fd_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return cannot("open", path, errno, err);
    if (fstat(fd, &info) == 0 && !S_ISDIR(info.st_mode) && !S_ISBLK(info.st_mode))
        return fd;
    fd_close(&fd);
    return error_usage(err, "%s is a %s; expected a text file", path,
                       S_ISDIR(info.st_mode) ? "folder" : "device");
}

/* Polls before the first read too, because a FIFO without a writer would seem to be at its end. */
static int wait_for_more(int fd, const char *path, int64_t limit_ms, int64_t deadline_ms,
                         struct error *err)
{
    for (;;) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        int64_t left = deadline_ms - clock_mono_ms();
        int ready = poll(&one, 1, left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left);
        if (ready > 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return cannot("read", path, errno, err);
        if (ready == 0 && left <= INT32_MAX)
            return error_usage(err,
                               "%s did not end within %.1f s (--start-timeout); expected a file, "
                               "or a pipe that another process writes and closes",
                               path, (double)limit_ms / 1000);
    }
}

int text_file_read(const char *path, int64_t limit_ms, struct buf *out, struct error *err)
{
    int fd AUTO_FD = open_text(path, err);
    if (fd < 0)
        return -1;
    int64_t deadline_ms = clock_mono_ms() + limit_ms;
    for (;;) {
        char chunk[65536];
        if (wait_for_more(fd, path, limit_ms, deadline_ms, err) < 0)
            return -1;
        ssize_t got = fd_read(fd, chunk, sizeof(chunk));
        if (got < 0 && errno == EAGAIN)
            continue;
        if (got < 0)
            return cannot("read", path, errno, err);
        if (got == 0)
            return 0;
        if (buf_append(out, chunk, (size_t)got) < 0)
            return error_usage(err, "%s is larger than %zu bytes; expected less", path, out->limit);
        if (memchr(chunk, '\0', (size_t)got) != NULL)
            return 0;
    }
}

#define PATH_TEXT_MAX 8192
#define PROBLEMS_MAX ((size_t)1 << 20) /* all fit; the error has only the first ones */

__attribute__((format(printf, 2, 3))) static void add_problem(struct buf *problems,
                                                              const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (problems->length > 0)
        buf_puts(problems, "; ");
    buf_vprintf(problems, format, args);
    va_end(args);
}

/* 0, or the errno of what keeps us from making this file. */
static int try_making(const char *path)
{
    int fd AUTO_FD = fd_open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd >= 0)
        return unlink(path) == 0 ? 0 : errno;
    return errno == EEXIST ? 0 : errno; /* a link that leads nowhere: the job makes what it names */
}

/* 0, or why the file cannot be written. To open a pipe would wait for its reader, or end it. */
static int try_writing(const char *path)
{
    struct stat info;
    if (stat(path, &info) < 0)
        return errno == ENOENT ? try_making(path) : errno;
    if (S_ISDIR(info.st_mode))
        return EISDIR;
    if (!S_ISREG(info.st_mode))
        return access(path, W_OK) == 0 ? 0 : errno;
    int fd AUTO_FD = fd_open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY, 0);
    return fd >= 0 ? 0 : errno;
}

static void check_file(const struct settings *settings, enum option_id id, struct buf *problems)
{
    AUTO_BUF struct buf path = BUF_INIT(PATH_TEXT_MAX);
    if (settings_format(settings, id, &path) < 0)
        return;
    int errnum = try_writing(buf_text(&path));
    if (errnum != 0)
        add_problem(problems, "%s: cannot write %s: %s", settings_place(settings, id),
                    buf_text(&path),
                    errnum == ENOENT ? "its folder does not exist" : strerrordesc_np(errnum));
}

/* Makes the folder and all above it. 0, or errno; `path` then ends with the folder that failed. */
static int make_folders(char *path)
{
    for (char *end = path; *end != '\0';) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        char kept = *end;
        *end = '\0';
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            return errno;
        *end = kept;
    }
    return 0;
}

/* The folder that --output-filename names; of a pattern, the part before its first %. */
static char *folder_of(const char *value, bool *pattern)
{
    const char *percent = strchr(value, '%');
    *pattern = percent != NULL;
    if (percent == NULL)
        return mem_strdup(value);
    const char *slash = memrchr(value, '/', (size_t)(percent - value));
    if (slash == NULL)
        return mem_strdup(".");
    return mem_strndup(value, slash > value ? (size_t)(slash - value) : 1);
}

/* False: another job has locked it. */
static bool lock_folder(const char *path, int *lock_fd)
{
    *lock_fd = fd_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    return *lock_fd < 0 || flock(*lock_fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

static void open_folder(const struct settings *settings, int *lock_fd, struct buf *problems)
{
    bool pattern = false;
    const char *place = settings_place(settings, OPT_output_filename);
    AUTO_FREE char *path = folder_of(settings->output_filename, &pattern);
    AUTO_FREE char *inside = mem_printf("%s/.", path); /* only a folder has this */
    int errnum = make_folders(path);
    if (errnum != 0)
        add_problem(problems, "%s: cannot create the folder %s: %s", place, path,
                    strerrordesc_np(errnum));
    else if (access(inside, W_OK | X_OK) < 0)
        add_problem(problems, "%s: cannot write to the folder %s: %s", place, path,
                    strerrordesc_np(errno));
    else if (!pattern && !lock_folder(path, lock_fd))
        add_problem(problems,
                    "%s: another job writes to the folder %s now; wait for its end, or name "
                    "another folder",
                    place, path);
}

static void open_log_folder(const struct settings *settings, struct buf *problems)
{
    AUTO_FREE char *path = mem_strdup(settings->log_dir);
    int errnum = make_folders(path);
    if (errnum == 0 && access(path, W_OK | X_OK) < 0)
        errnum = errno;
    if (errnum != 0)
        add_problem(problems, "%s: cannot write to the folder %s: %s",
                    settings_place(settings, OPT_log_dir), path, strerrordesc_np(errnum));
}

int job_files_open(const struct settings *settings, bool has_workers, int *lock_fd,
                   struct error *err)
{
    AUTO_BUF struct buf problems = BUF_INIT(PROBLEMS_MAX);
    *lock_fd = -1;
    for (int i = 0; i < OPT_TOTAL; i++) {
        enum option_id id = (enum option_id)i;
        if ((option_info(id)->flags & FLAG_WRITES) != 0 && settings_is_set(settings, id))
            check_file(settings, id, &problems);
    }
    if (has_workers && settings->output_filename != NULL && settings->output_filename[0] != '\0')
        open_folder(settings, lock_fd, &problems);
    if (has_workers && settings->log_dir != NULL && settings->log_dir[0] != '\0')
        open_log_folder(settings, &problems);
    if (problems.length == 0)
        return 0;
    fd_close(lock_fd);
    return error_usage(err, "%s", buf_text(&problems));
}
