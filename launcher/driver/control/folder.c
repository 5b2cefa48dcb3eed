/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/control/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "node/runtime_dir.h"

#define FOLDER ".jobs"
#define JOURNAL_SUFFIX ".jsonl"
#define ENTRIES_MAX 10000 /* beyond that, another call goes on */

struct entry {
    char *name;
    int64_t changed_s;
};

struct listing {
    struct entry *entries; /* records */
    size_t count;
};

char *job_folder_path(void)
{
    char *base AUTO_FREE = runtime_dir_base();
    return mem_printf("%s/" FOLDER, base);
}

int job_folder_open(struct error *err)
{
    return runtime_dir_open_kept(FOLDER, err);
}

int job_folder_find(void)
{
    char *base AUTO_FREE = runtime_dir_base();
    char *path AUTO_FREE = job_folder_path();
    const char *const both[] = {base, path};
    for (int i = 0;; i++) {
        struct stat info;
        int fd = fd_open(both[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        bool ours = fd >= 0 && fstat(fd, &info) == 0 && info.st_uid == geteuid() &&
                    (info.st_mode & 0077) == 0;
        if (ours && i == 1)
            return fd;
        fd_close(&fd);
        if (!ours)
            return -1;
    }
}

char *job_folder_job(const char *name, const char *suffix)
{
    size_t length = strlen(name), end = strlen(suffix);
    if (name[0] == '.' || length <= end || strcmp(name + length - end, suffix) != 0)
        return NULL;
    return name_is_safe(name, length - end) ? mem_strndup(name, length - end) : NULL;
}

/* Holds a driver the lock of this file? */
static bool is_locked(int folder, const char *name)
{
    int fd AUTO_FD = fd_openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

bool job_folder_runs(int folder, const char *job)
{
    char *record AUTO_FREE = mem_printf("%s" JOB_RECORD_SUFFIX, job);
    return is_locked(folder, record);
}

static void remove_stale_socket(int folder, const char *name)
{
    char *job AUTO_FREE = job_folder_job(name, JOB_CONTROL_SUFFIX);
    if (job != NULL && !job_folder_runs(folder, job))
        unlinkat(folder, name, 0);
}

static void list(int folder, struct listing *out)
{
    int fd = fd_openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        fd_close(&fd);
        return;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL && out->count < ENTRIES_MAX;
         entry = readdir(dir)) {
        struct stat info;
        char *job AUTO_FREE = job_folder_job(entry->d_name, JOB_RECORD_SUFFIX);
        char *journal AUTO_FREE = job_folder_job(entry->d_name, JOURNAL_SUFFIX);
        remove_stale_socket(folder, entry->d_name);
        if ((job == NULL && journal == NULL) ||
            fstatat(folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        out->entries = mem_resize_array(out->entries, out->count + 1, sizeof(*out->entries));
        out->entries[out->count++] = (struct entry){mem_strdup(entry->d_name), info.st_mtime};
    }
    closedir(dir);
}

static int newest_first(const void *a, const void *b)
{
    const struct entry *first = a, *second = b;
    return (first->changed_s < second->changed_s) - (first->changed_s > second->changed_s);
}

void job_folder_tidy(int folder, int64_t now_s)
{
    struct listing listing = {.count = 0};
    list(folder, &listing);
    if (listing.count > 0)
        qsort(listing.entries, listing.count, sizeof(*listing.entries), newest_first);
    for (size_t i = 0; i < listing.count; i++) {
        const struct entry *entry = &listing.entries[i];
        bool old = now_s - entry->changed_s > JOB_RECORD_AGE_S || i >= JOB_RECORDS_KEPT;
        if (old && !is_locked(folder, entry->name))
            unlinkat(folder, entry->name, 0);
        free(entry->name);
    }
    free(listing.entries);
}
