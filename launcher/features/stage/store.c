/* SPDX-License-Identifier: Apache-2.0 */
#include "features/stage/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "features/stage/stage.h"

#define PARTIAL_MS 60000 /* a new folder is younger than that before it is locked */
#define TIDY_MS 60000
#define BOOT_MAX 128

static int make_folder(const char *path, struct error *err)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return 0;
    return error_errno(err, errno, "cannot create the folder %s for staged files (--stage-dir)",
                       path);
}

/* Nobody else can put another folder in its place. */
static int check_place(const char *place, struct error *err)
{
    struct stat info;
    if (stat(place, &info) < 0)
        return error_errno(err, errno, "cannot use the folder %s (--stage-dir)", place);
    bool open = (info.st_mode & 0022) != 0 && (info.st_mode & S_ISVTX) == 0;
    if (open)
        return error_set(err,
                         "%s is not safe for staged files, since others can write to it: choose "
                         "another --stage-dir, or chmod +t it",
                         place);
    return 0;
}

int stage_store_open(const char *place, struct stage_store *store, struct error *err)
{
    const char *usual = getenv("TMPDIR");
    struct stat info;
    if (place[0] == '\0')
        place = usual != NULL && usual[0] == '/' ? usual : "/tmp";
    *store = (struct stage_store){.path = NULL};
    if (make_folder(place, err) < 0 || check_place(place, err) < 0)
        return -1;
    char *path AUTO_FREE = mem_printf("%s/hvdrun-stage-%u", place, (unsigned)geteuid());
    if (make_folder(path, err) < 0)
        return -1;
    if (lstat(path, &info) < 0)
        return error_errno(err, errno, "cannot use %s", path);
    if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 0022) != 0)
        return error_set(err,
                         "%s is not a folder to which only you can write: remove it, or choose "
                         "another --stage-dir",
                         path);
    store->path = mem_strdup(path);
    return 0;
}

void stage_store_close(struct stage_store *store)
{
    mem_free_at(&store->path);
}

/* Locks */

static bool lock_now(int fd, int how)
{
    int result;
    do
        result = flock(fd, how | LOCK_NB);
    while (result < 0 && errno == EINTR);
    return result == 0;
}

/* The folder that has this name. -1: there is none. */
static int open_folder(const struct stage_store *store, const char *name)
{
    char *path AUTO_FREE = mem_printf("%s/%s", store->path, name);
    return fd_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

static bool has_name(const struct stage_store *store, const char *name, int fd)
{
    char *path AUTO_FREE = mem_printf("%s/%s", store->path, name);
    struct stat ours, named;
    return fstat(fd, &ours) == 0 && lstat(path, &named) == 0 && ours.st_ino == named.st_ino &&
           ours.st_dev == named.st_dev;
}

static int open_locked(const struct stage_store *store, const char *name, int how)
{
    int fd = open_folder(store, name);
    if (fd >= 0 && (!lock_now(fd, how) || !has_name(store, name, fd)))
        fd_close(&fd);
    return fd;
}

int stage_store_take(const struct stage_store *store, const char *id)
{
    char *list AUTO_FREE = mem_printf("%s/%s/list", store->path, id);
    int fd = open_locked(store, id, LOCK_SH);
    if (fd >= 0)
        (void)!utimensat(AT_FDCWD, list, NULL, AT_SYMLINK_NOFOLLOW);
    return fd;
}

int stage_store_share(const struct stage_store *store, const char *id)
{
    return open_locked(store, id, LOCK_SH);
}

int stage_store_claim(int lock)
{
    return lock_now(lock, LOCK_EX) ? 1 : 0;
}

/* New copies */

char *stage_store_build(const struct stage_store *store, int *lock, struct error *err)
{
    char *name AUTO_FREE = mem_printf(".new-%d-%lld", (int)getpid(), (long long)clock_wall_ns());
    char *path AUTO_FREE = mem_printf("%s/%s", store->path, name);
    if (mkdir(path, 0700) < 0) {
        error_errno(err, errno, "cannot create the folder %s", path);
        return NULL;
    }
    *lock = open_locked(store, name, LOCK_EX);
    if (*lock < 0) {
        error_errno(err, errno, "cannot lock the folder %s", path);
        rmdir(path);
        return NULL;
    }
    return mem_strdup(path);
}

int stage_store_finish(const struct stage_store *store, const char *folder, const char *id,
                       int lock, struct error *err)
{
    char *path AUTO_FREE = mem_printf("%s/%s", store->path, id);
    (void)!utimensat(AT_FDCWD, folder, NULL, 0); /* so it is young while the lock changes */
    if (!lock_now(lock, LOCK_SH))
        return error_errno(err, errno, "cannot lock the folder %s", folder);
    if (rename(folder, path) == 0)
        return 1;
    if (errno == EEXIST || errno == ENOTEMPTY)
        return 0;
    return error_errno(err, errno, "cannot rename %s", folder);
}

/* Removing */

static void read_names(const char *path, struct strv *out)
{
    DIR *folder = opendir(path);
    struct dirent *entry = folder == NULL ? NULL : readdir(folder);
    for (; entry != NULL; entry = readdir(folder)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            strv_add(out, entry->d_name);
    }
    if (folder != NULL)
        closedir(folder);
}

void stage_tree_remove(const char *path, int64_t deadline_ms)
{
    AUTO_STRV struct strv names = STRV_INIT;
    struct stat info;
    if (unlink(path) == 0 || lstat(path, &info) < 0 || !S_ISDIR(info.st_mode))
        return;
    (void)!chmod(path, 0700);
    read_names(path,
               &names); /* all before the first goes, so that a deep tree needs one descriptor */
    for (size_t i = 0; i < names.count && clock_mono_ms() < deadline_ms; i++) {
        char *below AUTO_FREE = mem_printf("%s/%s", path, names.items[i]);
        stage_tree_remove(below, deadline_ms);
    }
    rmdir(path);
}

void stage_store_remove(const struct stage_store *store, const char *name, int64_t deadline_ms)
{
    char *from AUTO_FREE = mem_printf("%s/%s", store->path, name);
    char *to AUTO_FREE =
        mem_printf("%s/.old-%d-%lld", store->path, (int)getpid(), (long long)clock_wall_ns());
    if (rename(from, to) == 0)
        stage_tree_remove(to, deadline_ms);
}

/* Copies that are there */

static bool is_id(const char *name)
{
    return strlen(name) == STAGE_ID_ROOM - 1 &&
           strspn(name, "0123456789abcdef") == STAGE_ID_ROOM - 1;
}

static void names_of(const struct stage_store *store, bool ids, struct strv *out)
{
    AUTO_STRV struct strv names = STRV_INIT;
    read_names(store->path, &names);
    for (size_t i = 0; i < names.count; i++) {
        const char *name = names.items[i];
        bool partial = strncmp(name, ".new-", 5) == 0 || strncmp(name, ".old-", 5) == 0;
        if (ids ? is_id(name) : partial)
            strv_add(out, name);
    }
}

void stage_store_ids(const struct stage_store *store, struct strv *out)
{
    names_of(store, true, out);
}

int stage_store_list(const struct stage_store *store, const char *id, struct stage_list *out)
{
    char *path AUTO_FREE = mem_printf("%s/%s/list", store->path, id);
    char found[STAGE_ID_ROOM];
    struct buf text = BUF_INIT(STAGE_LIST_MAX);
    if (fd_read_file(path, &text, NULL) < 0) {
        buf_destroy(&text);
        return -1;
    }
    size_t length = text.length;
    char *copy = mem_dup(buf_text(&text), length + 1);
    buf_destroy(&text);
    if (stage_list_read(copy, length, out, NULL) < 0)
        return -1;
    stage_list_id(out, found);
    if (strcmp(found, id) == 0)
        return 0;
    stage_list_destroy(out);
    return -1;
}

/* Tidying */

static int64_t wall_ms(void)
{
    return clock_wall_ns() / 1000000;
}

static int64_t modified_ms(const struct stage_store *store, const char *name, const char *file)
{
    char *path AUTO_FREE = mem_printf("%s/%s%s", store->path, name, file);
    struct stat info;
    if (lstat(path, &info) < 0)
        return 0;
    return (int64_t)info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1000000;
}

static void remove_partial(const struct stage_store *store, int64_t deadline_ms)
{
    AUTO_STRV struct strv names = STRV_INIT;
    names_of(store, false, &names);
    for (size_t i = 0; i < names.count; i++) {
        if (wall_ms() - modified_ms(store, names.items[i], "") < PARTIAL_MS)
            continue;
        int lock AUTO_FD = open_locked(store, names.items[i], LOCK_EX);
        char *path AUTO_FREE = mem_printf("%s/%s", store->path, names.items[i]);
        if (lock >= 0)
            stage_tree_remove(path, deadline_ms);
    }
}

/* What a copy of another job can save is gone with it; so it goes only if nobody uses it. */
static void look_at_copy(const struct stage_store *store, const char *id, struct stage_kept *out)
{
    char *once AUTO_FREE = mem_printf("%s/%s/once", store->path, id);
    struct stage_list list;
    int lock AUTO_FD = open_locked(store, id, LOCK_EX);
    *out = (struct stage_kept){.in_use = lock < 0, .used_ms = modified_ms(store, id, "/list")};
    if (access(once, F_OK) == 0)
        out->used_ms = INT64_MIN / 2;
    if (stage_store_list(store, id, &list) < 0) {
        out->used_ms = INT64_MIN / 2;
        return;
    }
    out->bytes = list.bytes;
    stage_list_destroy(&list);
}

void stage_store_tidy(const struct stage_store *store, const struct stage_keep *keep,
                      uint64_t coming)
{
    AUTO_STRV struct strv ids = STRV_INIT;
    int64_t deadline_ms = clock_mono_ms() + TIDY_MS;
    remove_partial(store, deadline_ms);
    stage_store_ids(store, &ids);
    struct stage_kept *copies AUTO_FREE = mem_array(ids.count, sizeof(*copies));
    for (size_t i = 0; i < ids.count; i++)
        look_at_copy(store, ids.items[i], &copies[i]);
    /* who keeps nothing does not decide about what others keep */
    const struct stage_keep all = {UINT64_MAX, INT64_MAX / 4};
    stage_keep_choose(keep->bytes == 0 ? &all : keep, copies, ids.count, coming, wall_ms());
    for (size_t i = 0; i < ids.count; i++) {
        int lock AUTO_FD = copies[i].goes ? open_locked(store, ids.items[i], LOCK_EX) : -1;
        if (lock >= 0)
            stage_store_remove(store, ids.items[i], deadline_ms);
    }
}

/* Marks */

int stage_store_mark(const char *folder, const char *name, const char *text, struct error *err)
{
    char *path AUTO_FREE = mem_printf("%s/%s", folder, name);
    int fd AUTO_FD = fd_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0)
        return error_errno(err, errno, "cannot write %s", path);
    return 0;
}

char *stage_boot_id(void)
{
    struct buf text = BUF_INIT(BOOT_MAX);
    (void)!fd_read_file("/proc/sys/kernel/random/boot_id", &text, NULL);
    return buf_take(&text);
}

bool stage_store_is_fresh(const struct stage_store *store, const char *id)
{
    char *path AUTO_FREE = mem_printf("%s/%s/boot", store->path, id);
    char *boot AUTO_FREE = stage_boot_id();
    struct buf text AUTO_BUF = BUF_INIT(BOOT_MAX);
    return fd_read_file(path, &text, NULL) == 0 && strcmp(buf_text(&text), boot) == 0;
}
