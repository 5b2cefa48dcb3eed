/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define DEPTH_MAX 32 /* descriptors at once; what is deeper is lifted to the top first */
#define TRIES 3      /* what was in short supply may be there again */
#define LIFTED_ROOM 32

struct removal {
    struct tree_pace *pace;
    int top; /* borrowed */
    dev_t device;
    bool lifted; /* something, so there is more to remove */
};

static bool goes_on(const struct removal *removal)
{
    return removal->pace == NULL || removal->pace->goes_on(removal->pace);
}

static int open_folder(int parent, const char *name)
{
    return fd_openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static DIR *open_entries(int fd_take)
{
    DIR *entries = fd_take < 0 ? NULL : fdopendir(fd_take);
    if (entries == NULL)
        fd_close(&fd_take);
    return entries;
}

static void lift(struct removal *removal, int parent, const struct dirent *entry)
{
    char name[LIFTED_ROOM];
    snprintf(name, sizeof(name), ".deep-%llu", (unsigned long long)entry->d_ino);
    if (renameat(parent, entry->d_name, removal->top, name) == 0)
        removal->lifted = true;
}

static void remove_all(struct removal *removal, DIR *entries, int depth);

/* The kernel says EBUSY for a folder that is a mount point, full or not. */
static void remove_entry(struct removal *removal, int parent, const struct dirent *entry, int depth)
{
    struct stat info;
    if (unlinkat(parent, entry->d_name, 0) == 0 ||
        unlinkat(parent, entry->d_name, AT_REMOVEDIR) == 0 || errno == EBUSY)
        return;
    int fd = open_folder(parent, entry->d_name);
    if (fd < 0 || fstat(fd, &info) < 0 || info.st_dev != removal->device) {
        fd_close(&fd);
        return;
    }
    (void)!fchmod(fd, 0700);
    if (depth == DEPTH_MAX) {
        fd_close(&fd);
        lift(removal, parent, entry);
        return;
    }
    DIR *entries = open_entries(fd);
    if (entries != NULL) {
        remove_all(removal, entries, depth + 1);
        closedir(entries);
    }
    unlinkat(parent, entry->d_name, AT_REMOVEDIR);
}

static void remove_all(struct removal *removal, DIR *entries, int depth)
{
    struct dirent *entry = readdir(entries);
    for (; entry != NULL && goes_on(removal); entry = readdir(entries)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_entry(removal, dirfd(entries), entry, depth);
    }
}

DIR *tree_empty(int fd_take, struct tree_pace *pace)
{
    struct stat info = {.st_dev = 0};
    if (fd_take >= 0 && fstat(fd_take, &info) == 0)
        (void)!fchmod(fd_take, 0700);
    struct removal removal = {.pace = pace, .top = fd_take, .device = info.st_dev, .lifted = true};
    DIR *entries = open_entries(fd_take);
    while (entries != NULL && removal.lifted && goes_on(&removal)) {
        removal.lifted = false;
        rewinddir(entries);
        remove_all(&removal, entries, 0);
    }
    return entries;
}

int tree_remove(int parent, const char *name, struct tree_pace *pace)
{
    int result = unlinkat(parent, name, AT_REMOVEDIR);
    if (result == 0 || errno == ENOENT || errno == EBUSY)
        return result < 0 && errno == EBUSY ? -1 : 0;
    for (int i = 0; result < 0 && i < TRIES; i++) {
        DIR *entries = tree_empty(open_folder(parent, name), pace);
        if (entries != NULL)
            closedir(entries);
        result = unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -1;
    }
    return result;
}
