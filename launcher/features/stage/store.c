/* SPDX-License-Identifier: Apache-2.0 */
#include "features/stage/store.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/tree.h"
#include "node/runtime_dir.h"

#define LOOKS 100 /* others have a lock for a moment */
#define LOOK_MS 10
#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define BOOT_MAX 128
#define AGE_USUAL_MS ((int64_t)7 * 24 * 3600 * 1000)

int stage_store_fails(int code, const char *what, const char *path, struct error *err)
{
    if (code == ENOSPC || code == EDQUOT)
        return error_errno(err, code, "no space for staged files (another --stage-dir?): %s %s",
                           what, path);
    return error_errno(err, code, "--stage-dir: %s %s", what, path);
}

static int make_folder(const char *path, struct error *err)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return 0;
    return stage_store_fails(errno, "cannot create the folder", path, err);
}

/* In a user namespace, root may have another number, and /proc is always root's. */
static bool is_trusted(const struct stat *info)
{
    struct stat system;
    bool is_root = stat("/proc", &system) == 0 ? info->st_uid == system.st_uid : info->st_uid == 0;
    return is_root || info->st_uid == 0 || info->st_uid == geteuid();
}

/* Nobody else can put another folder in its place, or in that of one above it. The group of one
 * above may: such are the folders of projects. */
static int check_place(const char *place, struct error *err)
{
    char *path AUTO_FREE = realpath(place, NULL);
    mode_t others = 0022;
    struct stat info;
    while (path != NULL && stat(path, &info) == 0) {
        if (!is_trusted(&info))
            return error_set(err,
                             "%s is not safe for staged files, since it belongs to another user: "
                             "choose another --stage-dir",
                             path);
        if ((info.st_mode & others) != 0 && (info.st_mode & S_ISVTX) == 0)
            return error_set(err,
                             "%s is not safe for staged files, since others can write to it: "
                             "choose another --stage-dir, or chmod +t it",
                             path);
        char *slash = strrchr(path, '/');
        if (slash == NULL || slash[1] == '\0')
            return 0;
        slash[slash == path ? 1 : 0] = '\0';
        others = 0002;
    }
    return error_errno(err, errno, "cannot use the folder %s (--stage-dir)", place);
}

int stage_store_open(const char *place, struct stage_watch *watch, struct stage_store *store,
                     struct error *err)
{
    struct stat info;
    if (place[0] == '\0')
        place = runtime_dir_tmpdir();
    *store = (struct stage_store){.watch = watch};
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

/* Locks */

static bool lock_now(int fd, int how)
{
    return TEMP_FAILURE_RETRY(flock(fd, how | LOCK_NB)) == 0;
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

/* -1 and errno. EWOULDBLOCK: another process has it. */
static int open_locked(const struct stage_store *store, const char *name, int how)
{
    int fd = open_folder(store, name);
    if (fd < 0 || !lock_now(fd, how)) {
        fd_close(&fd);
        return -1;
    }
    if (!has_name(store, name, fd)) {
        fd_close(&fd);
        errno = ENOENT;
    }
    return fd;
}

/* A process that removes a copy renames it at once, and one that looks has the lock for a moment.
 */
int stage_store_take(const struct stage_store *store, const char *id)
{
    int fd = open_locked(store, id, LOCK_SH);
    for (int i = 0; i < LOOKS && fd < 0 && errno == EWOULDBLOCK; i++) {
        if (stage_watch_go_on(store->watch, NULL) < 0)
            return -1;
        poll(NULL, 0, LOOK_MS);
        fd = open_locked(store, id, LOCK_SH);
    }
    return fd;
}

int stage_store_claim(int lock)
{
    return lock_now(lock, LOCK_EX) ? 1 : 0;
}

void stage_store_used(const struct stage_store *store, const char *id)
{
    char *list AUTO_FREE = mem_printf("%s/%s/list", store->path, id);
    (void)!utimensat(AT_FDCWD, list, NULL, AT_SYMLINK_NOFOLLOW);
}

/* New copies */

/* Another process that tidies may have removed it before it was locked. */
char *stage_store_build(const struct stage_store *store, int *lock, struct error *err)
{
    for (int i = 0; i < LOOKS; i++) {
        char *name AUTO_FREE =
            mem_printf(".new-%d-%lld", (int)getpid(), (long long)clock_wall_ns());
        char *path AUTO_FREE = mem_printf("%s/%s", store->path, name);
        if (mkdir(path, 0700) < 0) {
            stage_store_fails(errno, "cannot create the folder", path, err);
            return NULL;
        }
        *lock = open_locked(store, name, LOCK_SH);
        if (*lock >= 0)
            return mem_strdup(path);
        int code = errno;
        rmdir(path);
        if (code != ENOENT && code != EWOULDBLOCK) {
            error_errno(err, code, "cannot lock the folder %s (--stage-dir needs a local disk)",
                        path);
            return NULL;
        }
    }
    error_set(err, "cannot build a copy in %s: other processes remove it", store->path);
    return NULL;
}

int stage_store_finish(const struct stage_store *store, const char *folder, const char *id,
                       struct error *err)
{
    char *path AUTO_FREE = mem_printf("%s/%s", store->path, id);
    if (rename(folder, path) == 0)
        return 1;
    if (errno == EEXIST || errno == ENOTEMPTY)
        return 0;
    return stage_store_fails(errno, "cannot rename", folder, err);
}

/* Removing */

struct pace {
    struct tree_pace base;
    struct stage_watch *watch;
};

static bool may_remove(struct tree_pace *pace)
{
    struct stage_watch *watch = ((struct pace *)pace)->watch;
    return stage_watch_go_on(watch, NULL) == 0 || clock_mono_ms() < atomic_load(&watch->until_ms);
}

static void remove_named(const struct stage_store *store, const char *name)
{
    struct pace pace = {{may_remove}, store->watch};
    int folder AUTO_FD = fd_open(store->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (folder >= 0)
        (void)!tree_remove(folder, name, &pace.base);
}

void stage_store_remove(const struct stage_store *store, const char *name)
{
    char *from AUTO_FREE = mem_printf("%s/%s", store->path, name);
    char *old AUTO_FREE = mem_printf(".old-%d-%lld", (int)getpid(), (long long)clock_wall_ns());
    char *to AUTO_FREE = mem_printf("%s/%s", store->path, old);
    if (rename(from, to) == 0)
        remove_named(store, old);
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
    (void)stage_names_read(store->path, &names, NULL);
    for (size_t i = 0; i < names.count; i++) {
        const char *name = names.items[i];
        bool partial = strncmp(name, ".new-", 5) == 0 || strncmp(name, ".old-", 5) == 0;
        if (ids ? is_id(name) : partial)
            strv_add(out, name);
    }
}

static int64_t modified_ms(const struct stage_store *store, const char *name, const char *file)
{
    char *path AUTO_FREE = mem_printf("%s/%s/%s", store->path, name, file);
    struct stat info;
    if (lstat(path, &info) < 0)
        return 0;
    return (int64_t)info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1000000;
}

struct use {
    int64_t at_ms;
    char *id;
};

static int later_first(const void *a, const void *b)
{
    const struct use *one = a, *other = b;
    return one->at_ms == other->at_ms ? 0 : one->at_ms > other->at_ms ? -1 : 1;
}

void stage_store_ids(const struct stage_store *store, struct strv *out)
{
    AUTO_STRV struct strv ids = STRV_INIT;
    names_of(store, true, &ids);
    struct use *uses AUTO_FREE = mem_array(ids.count + 1, sizeof(*uses));
    for (size_t i = 0; i < ids.count; i++)
        uses[i] = (struct use){modified_ms(store, ids.items[i], "list"), ids.items[i]};
    qsort(uses, ids.count, sizeof(*uses), later_first);
    for (size_t i = 0; i < ids.count; i++)
        strv_add(out, uses[i].id);
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

static void remove_partial(const struct stage_store *store)
{
    AUTO_STRV struct strv names = STRV_INIT;
    names_of(store, false, &names);
    for (size_t i = 0; i < names.count && !atomic_load(&store->watch->stop); i++) {
        int lock AUTO_FD = open_locked(store, names.items[i], LOCK_EX);
        if (lock >= 0)
            remove_named(store, names.items[i]);
    }
}

/* What a copy of another job can save is gone with it; so it goes only if nobody uses it. */
static void look_at_copy(const struct stage_store *store, const char *id, struct stage_kept *out)
{
    char *once AUTO_FREE = mem_printf("%s/%s/once", store->path, id);
    struct stage_list list;
    int lock = open_locked(store, id, LOCK_EX);
    *out = (struct stage_kept){.in_use = lock < 0, .used_ms = modified_ms(store, id, "list")};
    fd_close(&lock); /* others wait for it */
    if (access(once, F_OK) == 0)
        out->used_ms = INT64_MIN / 2;
    if (stage_store_list(store, id, &list) < 0) {
        out->used_ms = INT64_MIN / 2;
        return;
    }
    out->bytes = list.stream;
    stage_list_destroy(&list);
}

int stage_store_tidy(const struct stage_store *store, const struct stage_keep *keep,
                     uint64_t coming, struct error *err)
{
    AUTO_STRV struct strv ids = STRV_INIT;
    remove_partial(store);
    stage_store_ids(store, &ids);
    struct stage_kept *copies AUTO_FREE = mem_array(ids.count + 1, sizeof(*copies));
    for (size_t i = 0; i < ids.count; i++) {
        if (stage_watch_go_on(store->watch, err) < 0)
            return -1;
        look_at_copy(store, ids.items[i], &copies[i]);
    }
    /* who keeps nothing does not decide about what others keep */
    const struct stage_keep all = {UINT64_MAX, INT64_MAX / 4};
    stage_keep_choose(keep->bytes == 0 ? &all : keep, copies, ids.count, coming, wall_ms());
    for (size_t i = 0; i < ids.count; i++) {
        if (stage_watch_go_on(store->watch, err) < 0)
            return -1;
        int lock AUTO_FD = copies[i].goes ? open_locked(store, ids.items[i], LOCK_EX) : -1;
        if (lock >= 0)
            stage_store_remove(store, ids.items[i]);
    }
    return 0;
}

/* Marks */

int stage_store_mark(const char *folder, const char *name, const char *text, size_t length,
                     struct error *err)
{
    char *path AUTO_FREE = mem_printf("%s/%s", folder, name);
    int fd AUTO_FD = fd_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fd_write_all(fd, text, length) < 0)
        return stage_store_fails(errno, "cannot write", path, err);
    return 0;
}

static char *read_boot(const char *path)
{
    struct buf text = BUF_INIT(BOOT_MAX);
    (void)!fd_read_file(path, &text, NULL);
    return buf_take(&text);
}

int stage_store_refresh(const char *folder, struct error *err)
{
    char *boot AUTO_FREE = read_boot(BOOT_ID);
    return stage_store_mark(folder, "boot", boot, strlen(boot), err);
}

bool stage_store_is_fresh(const struct stage_store *store, const char *id)
{
    char *path AUTO_FREE = mem_printf("%s/%s/boot", store->path, id);
    char *boot AUTO_FREE = read_boot(BOOT_ID), *then AUTO_FREE = read_boot(path);
    return boot[0] != '\0' && strcmp(then, boot) == 0;
}

/* --stage-keep */

static int refuse(const char *text, struct error *err)
{
    return error_usage(
        err, "'%s': expected SIZE or SIZE:TIME, such as 32G:7d, or 0 to keep nothing", text);
}

int stage_keep_parse(const char *text, struct stage_keep *out, struct error *err)
{
    static const char units[] = "KMGT";
    size_t length = strcspn(text, ":");
    struct stage_keep keep = {.age_ms = AGE_USUAL_MS};
    int64_t number;
    if (text[length] == ':' && parse_duration_ms(text + length + 1, &keep.age_ms, NULL) < 0)
        return refuse(text, err);
    char *size AUTO_FREE = mem_strndup(text, length);
    const char *unit = length > 1 ? strchr(units, size[length - 1]) : NULL;
    if (unit != NULL)
        size[length - 1] = '\0';
    if (parse_int(size, 0, (int64_t)1 << 20, &number, NULL) < 0 || (unit == NULL && number != 0))
        return refuse(text, err); /* bytes? nobody means that */
    keep.bytes = (uint64_t)number << (unit == NULL ? 0 : 10 * (unit - units + 1));
    *out = keep;
    return 0;
}

static struct stage_kept *oldest(struct stage_kept *copies, size_t count)
{
    struct stage_kept *found = NULL;
    for (size_t i = 0; i < count; i++) {
        struct stage_kept *copy = &copies[i];
        if (!copy->in_use && !copy->goes && (found == NULL || copy->used_ms < found->used_ms))
            found = copy;
    }
    return found;
}

void stage_keep_choose(const struct stage_keep *keep, struct stage_kept *copies, size_t count,
                       uint64_t coming, int64_t now_ms)
{
    uint64_t bytes = coming;
    for (size_t i = 0; i < count; i++) {
        copies[i].goes = !copies[i].in_use && now_ms - copies[i].used_ms > keep->age_ms;
        bytes += copies[i].goes ? 0 : copies[i].bytes;
    }
    while (bytes > keep->bytes) {
        struct stage_kept *copy = oldest(copies, count);
        if (copy == NULL)
            return;
        copy->goes = true;
        bytes -= copy->bytes;
    }
}
