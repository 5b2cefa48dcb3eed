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
#define LOG_SUFFIX ".log"
#define EVIDENCE_SUFFIX ".evidence"
#define CHECK_BYTES ((size_t)65536)
#define ENTRIES_MAX 10000 /* beyond that, another call goes on */

struct entry {
    char *name;
    char *job; /* of a log; NULL: a record, a journal or evidence */
    bool evidence;
    int64_t changed_s, bytes;
};

struct listing {
    struct entry *entries;
    size_t count;
};

static char *folder_name(void)
{
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    return mem_printf(FOLDER "-%s", name_is_safe(host, strlen(host)) ? host : "this");
}

char *job_folder_path(void)
{
    return job_folder_path_in(runtime_dir_tmpdir());
}

char *job_folder_path_in(const char *tmpdir)
{
    char *base AUTO_FREE = runtime_dir_base_in(tmpdir), *name AUTO_FREE = folder_name();
    return mem_printf("%s/%s", base, name);
}

int job_folder_open(struct error *err)
{
    char *name AUTO_FREE = folder_name();
    return runtime_dir_open_kept(name, err);
}

int job_folder_check(struct error *err)
{
    char *folder AUTO_FREE = job_folder_path(), *name AUTO_FREE = NULL;
    char *bytes AUTO_FREE = mem_alloc(CHECK_BYTES);
    int dir AUTO_FD = job_folder_open(err);
    if (dir < 0)
        return -1;
    name = mem_printf(".check.%d", (int)getpid());
    memset(bytes, ' ', CHECK_BYTES); /* a file without content would need no room */
    char *path AUTO_FREE = mem_printf("%s/%s", folder, name);
    int fd AUTO_FD = fd_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool written = fd >= 0 && fd_write_all(fd, bytes, CHECK_BYTES) == 0;
    int errnum = errno;
    if (fd >= 0)
        unlinkat(dir, name, 0);
    return written ? 0 : error_errno(err, errnum, "cannot write in %s", folder);
}

char *job_folder_made(void)
{
    struct error err = ERROR_INIT;
    int folder AUTO_FD = job_folder_open(&err);
    return folder < 0 ? NULL : job_folder_path();
}

int job_folder_find_in(const char *tmpdir)
{
    char *base AUTO_FREE = runtime_dir_base_in(tmpdir);
    char *path AUTO_FREE = job_folder_path_in(tmpdir);
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

char *job_folder_log(const char *name, int64_t *number)
{
    char *job = job_folder_job(name, LOG_SUFFIX);
    char *dot = job == NULL ? NULL : strrchr(job, '.');
    if (dot == NULL || dot == job || parse_int(dot + 1, 0, INT64_MAX, number, NULL) < 0) {
        free(job);
        return NULL;
    }
    *dot = '\0';
    return job;
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
    if (job == NULL)
        job = job_folder_job(name, JOB_CONTROL_NEW_SUFFIX);
    if (job != NULL && !job_folder_runs(folder, job))
        unlinkat(folder, name, 0);
}

static bool is_evidence(const char *name)
{
    char *folder AUTO_FREE = job_folder_job(name, EVIDENCE_SUFFIX);
    return folder != NULL;
}

/* Is it a file that this folder keeps for a while? */
static bool is_kept(const char *name, char **job)
{
    int64_t number;
    char *record AUTO_FREE = job_folder_job(name, JOB_RECORD_SUFFIX);
    char *journal AUTO_FREE = job_folder_job(name, JOURNAL_SUFFIX);
    *job = job_folder_log(name, &number);
    return record != NULL || journal != NULL || *job != NULL || is_evidence(name);
}

static void add(struct listing *listing, int folder, const char *name)
{
    struct stat info;
    char *job;
    if (!is_kept(name, &job) || fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) < 0) {
        free(job);
        return;
    }
    MEM_ADD(listing->entries, listing->count) =
        (struct entry){mem_strdup(name), job, is_evidence(name), info.st_mtime, info.st_size};
}

/* Calls `each` with the name of every entry, until it returns false. */
static void walk(int folder, bool (*each)(void *context, int folder, const char *name),
                 void *context)
{
    int fd = fd_openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        fd_close(&fd);
        return;
    }
    struct dirent *entry = readdir(dir);
    while (entry != NULL && each(context, folder, entry->d_name))
        entry = readdir(dir);
    closedir(dir);
}

static bool list_one(void *context, int folder, const char *name)
{
    struct listing *listing = context;
    remove_stale_socket(folder, name);
    add(listing, folder, name);
    return listing->count < ENTRIES_MAX;
}

static bool remove_log_of(void *context, int folder, const char *name)
{
    int64_t number;
    const char *wanted = context;
    char *job AUTO_FREE = job_folder_log(name, &number);
    if (job != NULL && strcmp(job, wanted) == 0)
        unlinkat(folder, name, 0);
    return true;
}

void job_folder_remove_log(int folder, const char *job)
{
    char *wanted AUTO_FREE = mem_strdup(job);
    walk(folder, remove_log_of, wanted);
}

static int newest_first(const void *a, const void *b)
{
    const struct entry *first = a, *second = b;
    return (first->changed_s < second->changed_s) - (first->changed_s > second->changed_s);
}

static void tidy_records(int folder, const struct listing *listing, int64_t now_s)
{
    int kept = 0;
    for (size_t i = 0; i < listing->count; i++) {
        const struct entry *entry = &listing->entries[i];
        if (entry->job != NULL || entry->evidence)
            continue;
        bool old = now_s - entry->changed_s > JOB_RECORD_AGE_S || kept >= JOB_RECORDS_KEPT;
        if (old && !is_locked(folder, entry->name))
            unlinkat(folder, entry->name, 0);
        kept++;
    }
}

static bool remove_file(void *context, int folder, const char *name)
{
    (void)context;
    unlinkat(folder, name, 0); /* "." and ".." stay */
    return true;
}

static void tidy_evidence(int folder, const struct listing *listing, int64_t now_s)
{
    int kept = 0;
    for (size_t i = 0; i < listing->count; i++) {
        const struct entry *entry = &listing->entries[i];
        if (!entry->evidence ||
            (now_s - entry->changed_s <= JOB_RECORD_AGE_S && kept++ < JOB_EVIDENCE_KEPT))
            continue;
        int inside AUTO_FD =
            fd_openat(folder, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inside >= 0)
            walk(inside, remove_file, NULL);
        unlinkat(folder, entry->name, AT_REMOVEDIR);
    }
}

static bool has_record(int folder, const char *job)
{
    char *record AUTO_FREE = mem_printf("%s" JOB_RECORD_SUFFIX, job);
    return faccessat(folder, record, F_OK, 0) == 0;
}

static int64_t bytes_of_logs(const struct listing *listing)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < listing->count; i++)
        bytes += listing->entries[i].job == NULL ? 0 : listing->entries[i].bytes;
    return bytes;
}

/* To see whether a job runs costs the most. It matters only for a log that would go. */
static void tidy_logs(int folder, const struct listing *listing)
{
    int64_t bytes = 0;
    bool many = bytes_of_logs(listing) > JOB_LOGS_BYTES;
    for (size_t i = 0; i < listing->count; i++) {
        const struct entry *entry = &listing->entries[i];
        if (entry->job == NULL)
            continue;
        bool recorded = has_record(folder, entry->job);
        if ((recorded && !many) || job_folder_runs(folder, entry->job))
            continue;
        bytes += entry->bytes;
        if (bytes > JOB_LOGS_BYTES || !recorded)
            unlinkat(folder, entry->name, 0);
    }
}

void job_folder_tidy(int folder, int64_t now_s)
{
    struct listing listing = {.count = 0};
    walk(folder, list_one, &listing);
    if (listing.count > 0)
        qsort(listing.entries, listing.count, sizeof(*listing.entries), newest_first);
    tidy_records(folder, &listing, now_s);
    tidy_logs(folder, &listing);
    tidy_evidence(folder, &listing, now_s);
    for (size_t i = 0; i < listing.count; i++) {
        free(listing.entries[i].name);
        free(listing.entries[i].job);
    }
    free(listing.entries);
}
