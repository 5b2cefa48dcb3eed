/* SPDX-License-Identifier: Apache-2.0 */
#include "node/runtime_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define DEPTH_MAX 32 /* of a tree that we remove */
#define TRIES 100

struct runtime_dir {
    char *path;
    int fd; /* holds the lock */
};

static void remove_below(int parent, const char *name, int depth)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        fd_close(&fd);
        return;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, entry->d_name, 0) == 0 || depth == DEPTH_MAX)
            continue;
        remove_below(fd, entry->d_name, depth + 1);
        unlinkat(fd, entry->d_name, AT_REMOVEDIR);
    }
    closedir(dir);
}

void runtime_dir_remove(const char *path)
{
    remove_below(AT_FDCWD, path, 0);
    rmdir(path);
    char *parent AUTO_FREE = mem_strdup(path);
    char *slash = strrchr(parent, '/');
    if (slash != NULL && slash != parent) {
        *slash = '\0';
        rmdir(parent); /* only when no other job is in it */
    }
}

/* The folder of all jobs of this user: ours alone, or an error (somebody else made it first). */
static int open_parent(const char *path, struct error *err)
{
    int fd = -1;
    /* The last job to end removes it, perhaps between our two steps: start over. */
    for (int i = 0; fd < 0 && i < TRIES; i++) {
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return error_errno(err, errno,
                               "cannot make the runtime folder %s (TMPDIR names the place)", path);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno != ENOENT)
            break;
    }
    struct stat info;
    if (fd >= 0 && fstat(fd, &info) == 0 && info.st_uid == geteuid() && (info.st_mode & 0077) == 0)
        return fd;
    fd_close(&fd);
    return error_set(
        err, "%s is not a folder of this user alone (mode 0700); remove it or set TMPDIR", path);
}

static void sweep(int parent)
{
    int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        fd_close(&fd);
        return;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] == '.')
            continue;
        int job AUTO_FD =
            openat(parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat info;
        /* Without links it has just been removed, and the name may be somebody's new folder. */
        if (job < 0 || flock(job, LOCK_EX | LOCK_NB) < 0 || fstat(job, &info) < 0 ||
            info.st_nlink == 0)
            continue;
        remove_below(parent, entry->d_name, 0);
        unlinkat(parent, entry->d_name, AT_REMOVEDIR);
    }
    closedir(dir);
}

/* Makes and locks parent/name. A sweeper may have removed it between the two steps: then 0 links
 * are left, and the caller tries again. */
static int make_locked(int parent, const char *name)
{
    if (mkdirat(parent, name, 0700) < 0)
        return -1;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &info) == 0 && info.st_nlink > 0)
        return fd;
    int errnum = fd < 0 && errno != ENOENT ? errno : EEXIST;
    if (errnum != EEXIST)
        unlinkat(parent, name, AT_REMOVEDIR);
    fd_close(&fd);
    errno = errnum;
    return -1;
}

static const char *temporary_place(void)
{
    const char *tmp = getenv("TMPDIR");
    return tmp == NULL || tmp[0] != '/' ? "/tmp" : tmp;
}

char *runtime_dir_base(void)
{
    return mem_printf("%s/hvdrun-%u", temporary_place(), (unsigned)geteuid());
}

void runtime_dir_sweep(void)
{
    const char *const places[] = {temporary_place(), RUNTIME_DIR_SHARED_MEMORY};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        char *path AUTO_FREE = mem_printf("%s/hvdrun-%u", places[i], (unsigned)geteuid());
        int parent AUTO_FD = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (parent < 0)
            continue;
        sweep(parent);
        rmdir(path); /* only when no other job is in it */
    }
}

struct runtime_dir *runtime_dir_create(struct error *err)
{
    return runtime_dir_create_in(temporary_place(), err);
}

struct runtime_dir *runtime_dir_create_in(const char *place, struct error *err)
{
    char *parent_path AUTO_FREE = mem_printf("%s/hvdrun-%u", place, (unsigned)geteuid());
    int errnum = 0;
    for (int i = 0; i < TRIES; i++) {
        /* The last job to end removes the parent, perhaps while we are in between: start over. */
        int parent AUTO_FD = open_parent(parent_path, err);
        if (parent < 0)
            return NULL;
        if (i == 0)
            sweep(parent);
        char *name AUTO_FREE = mem_printf("%d.%d", (int)getpid(), i);
        int fd = make_locked(parent, name);
        errnum = errno;
        if (fd >= 0) {
            struct runtime_dir *dir = mem_alloc(sizeof(*dir));
            *dir = (struct runtime_dir){mem_printf("%s/%s", parent_path, name), fd};
            return dir;
        }
        if (errnum != EEXIST && errnum != ENOENT)
            break;
    }
    rmdir(parent_path); /* only when no other job is in it */
    error_errno(err, errnum, "cannot make a runtime folder in %s (TMPDIR names the place)",
                parent_path);
    return NULL;
}

const char *runtime_dir_path(const struct runtime_dir *dir)
{
    return dir->path;
}

void runtime_dir_destroy(struct runtime_dir *dir)
{
    if (dir == NULL)
        return;
    runtime_dir_remove(dir->path);
    fd_close(&dir->fd);
    free(dir->path);
    free(dir);
}
