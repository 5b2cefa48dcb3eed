/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "driver/control/control.h"
#include "node/runtime_dir.h"

#define ANSWER_MAX ((size_t)256 << 20)
#define LIST_MAX 700 /* bytes of the list of jobs in an error */

/* A search through the sockets of all jobs. */
struct search {
    const char *job; /* NULL: any */
    int fd;          /* of the first job that answers; -1: none yet */
    int found;
    struct buf ids;
};

/* Connects to the socket `name` in a folder. -1 and errno: no process listens there. */
static int dial_in(int dir, const char *folder, const char *name)
{
    struct sockaddr_un address;
    if (control_address(dir, folder, name, &address) < 0)
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        fd_close(&fd);
    return fd;
}

/* The entries of a folder. NULL: it does not exist, or other users have access to it. */
static DIR *open_own(int parent, const char *name)
{
    struct stat info;
    int fd AUTO_FD = fd_openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0 || info.st_uid != geteuid() || (info.st_mode & 0077) != 0)
        return NULL;
    DIR *dir = fdopendir(fd);
    if (dir != NULL)
        fd = -1;
    return dir;
}

/* The id of the job whose socket has this name. The caller owns it. NULL: it is not a job's socket.
 */
static char *job_of(const char *name)
{
    size_t length = strlen(name), suffix = strlen(CONTROL_SUFFIX);
    if (length <= suffix || strcmp(name + length - suffix, CONTROL_SUFFIX) != 0)
        return NULL;
    return mem_strndup(name, length - suffix);
}

static void look_in(struct search *search, DIR *dir, const char *folder)
{
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char *id AUTO_FREE = job_of(entry->d_name);
        if (id == NULL || (search->job != NULL && strcmp(search->job, id) != 0))
            continue;
        int fd AUTO_FD = dial_in(dirfd(dir), folder, entry->d_name);
        if (fd < 0 && errno != EAGAIN)
            continue; /* the launcher of that job was killed */
        buf_printf(&search->ids, "%s%s", search->found > 0 ? ", " : "", id);
        search->found++;
        if (search->fd < 0) {
            search->fd = fd;
            fd = -1;
        }
    }
}

static void look_everywhere(struct search *search, const char *base)
{
    DIR *folders = open_own(AT_FDCWD, base);
    if (folders == NULL)
        return;
    for (struct dirent *entry = readdir(folders); entry != NULL; entry = readdir(folders)) {
        DIR *dir = entry->d_name[0] == '.' ? NULL : open_own(dirfd(folders), entry->d_name);
        if (dir == NULL)
            continue;
        char *folder AUTO_FREE = mem_printf("%s/%s", base, entry->d_name);
        look_in(search, dir, folder);
        closedir(dir);
    }
    closedir(folders);
}

static int dial_path(const char *path, struct error *err)
{
    const char *name = strrchr(path, '/') + 1;
    char *folder AUTO_FREE = mem_strndup(path, (size_t)(name - path));
    int dir AUTO_FD = fd_open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    int fd = dir < 0 ? -1 : dial_in(dir, folder, name);
    return fd < 0 ? error_errno(err, errno, "cannot connect to the job at %s", path) : fd;
}

int control_client_dial(const char *job, struct error *err)
{
    if (job != NULL && strchr(job, '/') != NULL)
        return dial_path(job, err);
    char *base AUTO_FREE = runtime_dir_base();
    struct search search = {.job = job, .fd = -1, .ids = BUF_INIT(LIST_MAX)};
    look_everywhere(&search, base);
    if (search.found == 0 && job == NULL)
        error_set(err, "found no elastic job of this user in %s (TMPDIR sets that folder)", base);
    else if (search.found == 0)
        error_set(err, "found no elastic job '%s' of this user in %s (TMPDIR sets that folder)",
                  job, base);
    else if (search.found > 1)
        error_set(err, "%d jobs run here; name one of them: %s", search.found,
                  buf_text(&search.ids));
    else if (search.fd < 0)
        error_set(err, "job %s does not answer; is it suspended?", buf_text(&search.ids));
    buf_destroy(&search.ids);
    if (search.found != 1)
        fd_close(&search.fd);
    return search.fd;
}

/* False: the time is over. */
static bool wait_for(int fd, short what, int64_t until_ms)
{
    for (;;) {
        int64_t left = until_ms - clock_mono_ms();
        struct pollfd entry = {.fd = fd, .events = what};
        int count = poll(&entry, 1, left > 0 ? (int)left : 0);
        if (count > 0 || left <= 0)
            return count > 0;
    }
}

static int send_line(int fd, const char *line, int64_t until_ms, struct error *err)
{
    for (size_t left = strlen(line); left > 0;) {
        ssize_t put = send(fd, line, left, MSG_NOSIGNAL);
        if (put > 0) {
            line += put;
            left -= (size_t)put;
        } else if (errno != EAGAIN && errno != EINTR) {
            return error_errno(err, errno, "cannot talk to the job");
        } else if (!wait_for(fd, POLLOUT, until_ms)) {
            return error_set(err, "the job does not answer; is it suspended?");
        }
    }
    return 0;
}

static int read_line(int fd, struct buf *line, int64_t until_ms, struct error *err)
{
    char bytes[65536];
    while (memchr(buf_text(line), '\n', line->length) == NULL) {
        ssize_t got = fd_read(fd, bytes, sizeof(bytes));
        if (got == 0 || (got < 0 && errno != EAGAIN))
            return error_set(err, "the job has ended or closed the connection without an answer");
        if (got > 0 && buf_append(line, bytes, (size_t)got) < 0)
            return error_set(err, "the job's answer is too long");
        if (got < 0 && !wait_for(fd, POLLIN, until_ms))
            return error_set(err, "the job does not answer; is it suspended?");
    }
    return 0;
}

json_t *control_client_ask(int fd, const json_t *request, struct error *err)
{
    int64_t until_ms = clock_mono_ms() + CONTROL_ANSWER_MS;
    struct buf answer_line AUTO_BUF = BUF_INIT(ANSWER_MAX);
    char *text AUTO_FREE = json_dumps(request, JSON_COMPACT);
    char *line AUTO_FREE = mem_printf("%s\n", text == NULL ? "{}" : text);
    if (send_line(fd, line, until_ms, err) < 0 || read_line(fd, &answer_line, until_ms, err) < 0)
        return NULL;
    json_t *answer =
        json_loadb(buf_text(&answer_line), answer_line.length, JSON_DISABLE_EOF_CHECK, NULL);
    const char *refused = json_string_value(json_object_get(answer, "error"));
    char *why AUTO_FREE = mem_strdup(refused);
    if (why != NULL)
        log_make_plain(why); /* text from outside must not control the terminal */
    if (why != NULL && why[0] != '\0')
        error_set(err, "%s", why);
    else if (why != NULL || !json_is_object(answer))
        error_set(err,
                  "cannot read the job's answer; most likely it runs another version of hvdrun");
    else
        return answer;
    json_decref(answer);
    return NULL;
}
