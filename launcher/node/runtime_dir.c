/* SPDX-License-Identifier: Apache-2.0 */
#include "node/runtime_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/tree.h"

#define TRIES 100
#define REMOVE_TRIES 3
#define MIB (1 << 20)
#define PARENT_PREFIX "hvdrun-" /* of the folder of all jobs; then the number of the user */

struct runtime_dir {
    char *path, *place;
    int fd; /* holds the lock */
};

static DIR *open_entries(int fd)
{
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    if (entries == NULL)
        fd_close(&fd);
    return entries;
}

/* The folder of all jobs goes with the last of them. */
static void remove_parent(const char *path)
{
    for (int i = 0; i < REMOVE_TRIES; i++) {
        if (rmdir(path) == 0 || errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST)
            return;
    }
}

/* Allocates no memory: it is the last act of a process, and no process would repeat it. */
void runtime_dir_remove(const char *path)
{
    char parent[PATH_MAX];
    (void)!tree_remove(AT_FDCWD, path, NULL);
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path || (size_t)(slash - path) >= sizeof(parent))
        return;
    memcpy(parent, path, (size_t)(slash - path));
    parent[slash - path] = '\0';
    const char *name = strrchr(parent, '/');
    if (strncmp(name != NULL ? name + 1 : parent, PARENT_PREFIX, strlen(PARENT_PREFIX)) == 0)
        remove_parent(parent);
}

static const char *place_of(const char *tmpdir)
{
    return tmpdir == NULL || tmpdir[0] != '/' ? "/tmp" : tmpdir;
}

const char *runtime_dir_tmpdir(void)
{
    return place_of(getenv("TMPDIR"));
}

static bool is_full(int errnum)
{
    return errnum == ENOSPC || errnum == EDQUOT;
}

/* How the user can choose another place; only the temporary folder can be another one. */
static const char *remedy(const char *place)
{
    return strcmp(place, RUNTIME_DIR_SHARED_MEMORY) == 0 ? "" : " (TMPDIR names the place)";
}

static int no_space(const char *place, struct error *err)
{
    error_set(err, "no space left in %s%s", place, remedy(place));
    if (err != NULL)
        err->errnum = ENOSPC;
    return -1;
}

static int refuse(const char *what, const char *path, const char *place, int errnum,
                  struct error *err)
{
    if (is_full(errnum))
        return no_space(place, err);
    return error_errno(err, errnum, "%s %s%s", what, path, remedy(place));
}

/* Of a folder that is being removed, or was. */
static bool is_gone(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && info.st_nlink == 0;
}

/* 1: it is; 0: it is not; -1 with errno: there is no folder, or the kernel does not say. */
static int is_ours_alone(int fd)
{
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0)
        return -1;
    return info.st_uid == geteuid() && (info.st_mode & 0077) == 0;
}

/* A folder that exists and cannot be opened for one of these reasons is somebody else's, or is not
 * a folder. */
static bool is_taken(int errnum)
{
    return errnum == EACCES || errnum == EPERM || errnum == ELOOP || errnum == ENOTDIR;
}

/* The folder of all jobs of this user: ours alone, or an error (another user made it first). */
static int open_parent(const char *path, const char *place, struct error *err)
{
    int fd = -1, errnum = 0;
    /* The last job to end removes it, perhaps between our two steps: start over. While it does,
     * the folder can still be opened, but nothing can be made in it; mkdir() waits for its end. */
    for (int i = 0; i < TRIES; i++) {
        fd = fd_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        errnum = errno;
        if (fd >= 0 && is_gone(fd)) {
            fd_close(&fd);
            errnum = ENOENT;
        }
        if (fd >= 0)
            break; /* mkdir() would cost more than that */
        bool made = mkdir(path, 0700) == 0;
        if (!made && errno != EEXIST)
            return refuse("cannot create the runtime folder", path, place, errno, err);
        if (!made && errnum != ENOENT)
            break;
    }
    int ours = is_ours_alone(fd);
    if (ours > 0)
        return fd;
    if (fd >= 0 && ours < 0)
        errnum = errno;
    fd_close(&fd);
    if (ours < 0 && !is_taken(errnum)) {
        remove_parent(path); /* perhaps it was made just now, and it stays if it is not empty */
        return refuse("cannot open the runtime folder", path, place, errnum, err);
    }
    return error_set(err, "%s is not a folder of this user alone (mode 0700): remove it%s", path,
                     remedy(place));
}

static int lock(int fd)
{
    return (int)TEMP_FAILURE_RETRY(flock(fd, LOCK_EX | LOCK_NB));
}

static void sweep(int parent)
{
    DIR *entries = open_entries(fd_openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (entries == NULL)
        return;
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        if (entry->d_name[0] == '.')
            continue;
        int job AUTO_FD =
            fd_openat(parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat info;
        /* Without links it has just been removed, and the name may be another process's new folder.
         */
        if (job < 0 || lock(job) < 0 || fstat(job, &info) < 0 || info.st_nlink == 0)
            continue;
        (void)!tree_remove(parent, entry->d_name, NULL);
    }
    closedir(entries);
}

/* Makes and locks parent/name. A sweeper may have locked it between the two steps, or removed it,
 * so that no links are left: then the caller tries again (EEXIST). */
static int make_locked(int parent, const char *name)
{
    if (mkdirat(parent, name, 0700) < 0)
        return -1;
    int fd = fd_openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat info = {.st_nlink = 0};
    bool locked = fd >= 0 && lock(fd) == 0 && fstat(fd, &info) == 0;
    if (locked && info.st_nlink > 0)
        return fd;
    int errnum = errno;
    bool swept = locked || errnum == ENOENT || errnum == EWOULDBLOCK;
    if (!swept)
        unlinkat(parent, name, AT_REMOVEDIR);
    fd_close(&fd);
    errno = swept ? EEXIST : errnum;
    return -1;
}

int runtime_dir_open_kept(const char *name, struct error *err)
{
    const char *place = runtime_dir_tmpdir();
    char *base AUTO_FREE = runtime_dir_base();
    for (int i = 0; i < TRIES; i++) {
        int parent AUTO_FD = open_parent(base, place, err);
        if (parent < 0)
            return -1;
        int fd = fd_openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT && (mkdirat(parent, name, 0700) == 0 || errno == EEXIST))
            fd = fd_openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int errnum = errno;
        int ours = is_ours_alone(fd);
        if (ours > 0)
            return fd;
        if (fd >= 0 && ours < 0)
            errnum = errno;
        fd_close(&fd);
        if (ours == 0)
            return error_set(err, "%s/%s is not a folder of this user alone (mode 0700): remove it",
                             base, name);
        if (errnum == ENOENT)
            continue; /* the last job to end has removed the parent */
        remove_parent(base);
        return refuse("cannot create a folder in", base, place, errnum, err);
    }
    return error_set(err, "cannot create a folder in %s: other processes remove it", base);
}

char *runtime_dir_base(void)
{
    return runtime_dir_base_in(runtime_dir_tmpdir());
}

char *runtime_dir_base_in(const char *tmpdir)
{
    return mem_printf("%s/" PARENT_PREFIX "%u", place_of(tmpdir), (unsigned)geteuid());
}

void runtime_dir_sweep(void)
{
    const char *const places[] = {runtime_dir_tmpdir(), RUNTIME_DIR_SHARED_MEMORY};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        char *path AUTO_FREE = mem_printf("%s/" PARENT_PREFIX "%u", places[i], (unsigned)geteuid());
        int parent AUTO_FD = fd_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        if (is_ours_alone(parent) <= 0)
            continue; /* what is in there may belong to any user */
        sweep(parent);
        remove_parent(path);
    }
}

struct runtime_dir *runtime_dir_create(struct error *err)
{
    return runtime_dir_create_in(runtime_dir_tmpdir(), err);
}

struct runtime_dir *runtime_dir_create_in(const char *place, struct error *err)
{
    char *parent_path AUTO_FREE = mem_printf("%s/" PARENT_PREFIX "%u", place, (unsigned)geteuid());
    int errnum = 0;
    for (int i = 0; i < TRIES; i++) {
        /* The last job to end removes the parent, perhaps while we are in between: start over. */
        int parent AUTO_FD = open_parent(parent_path, place, err);
        if (parent < 0)
            return NULL;
        if (i == 0)
            sweep(parent);
        char *name AUTO_FREE = mem_printf("%d.%d", (int)getpid(), i);
        int fd = make_locked(parent, name);
        errnum = errno;
        if (fd >= 0) {
            struct runtime_dir *dir =
                MEM_NEW((struct runtime_dir){.path = mem_printf("%s/%s", parent_path, name),
                                             .place = mem_strdup(place),
                                             .fd = fd});
            return dir;
        }
        if (errnum != EEXIST && errnum != ENOENT)
            break;
    }
    remove_parent(parent_path);
    refuse("cannot create a runtime folder in", parent_path, place, errnum, err);
    return NULL;
}

int runtime_dir_room(const struct runtime_dir *dir, uint64_t bytes, const char *user,
                     struct error *err)
{
    struct statvfs info;
    /* Some file systems do not know their size. */
    if (statvfs(dir->path, &info) < 0 || info.f_blocks == 0)
        return 0;
    uint64_t left = (uint64_t)info.f_bavail * info.f_frsize;
    if (left >= bytes)
        return 0;
    if (left < MIB)
        return no_space(dir->place, err);
    error_set(err, "only %.1f MiB left in %s%s, but %s needs %.1f MiB", (double)left / MIB,
              dir->place, remedy(dir->place), user, (double)bytes / MIB);
    if (err != NULL)
        err->errnum = ENOSPC;
    return -1;
}

const char *runtime_dir_path(const struct runtime_dir *dir)
{
    return dir->path;
}

void runtime_dir_destroy(struct runtime_dir *dir)
{
    if (dir == NULL)
        return;
    DIR *entries = tree_empty(dir->fd, NULL); /* there may be no other descriptor */
    runtime_dir_remove(dir->path);
    /* The lock goes last. With it, another process would remove this name, and by then our next
     * folder may have it. */
    if (entries != NULL)
        closedir(entries);
    free(dir->path);
    free(dir->place);
    free(dir);
}
