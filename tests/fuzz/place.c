/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

static char folder[64];
static struct fuzz_bytes *fed;

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *ftw)
{
    (void)info;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static void remove_folder(void)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

char *place_path(const char *name)
{
    if (folder[0] == '\0') {
        snprintf(folder, sizeof(folder), "/tmp/hvdrun-fuzz-XXXXXX");
        FUZZ_CHECK(mkdtemp(folder) != NULL);
        atexit(remove_folder);
    }
    char *path = mem_printf("%s/%s", folder, name);
    char *slash = strchr(path + strlen(folder) + 1, '/');
    for (; slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        FUZZ_CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    return path;
}

void place_write(const char *name, const void *bytes, size_t size)
{
    char *path AUTO_FREE = place_path(name);
    int fd AUTO_FD = fd_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    FUZZ_CHECK(fd >= 0 && fd_write_all(fd, bytes, size) == 0);
}

void place_link(const char *name, const char *to)
{
    char *path AUTO_FREE = place_path(name), *target AUTO_FREE = place_path(to);
    FUZZ_CHECK(symlink(target, path) == 0);
}

void place_feed(struct fuzz_bytes *bytes)
{
    fed = bytes;
}

/* The linker puts the first of these before fd_read_file(), which becomes the second. */
int __real_fd_read_file(const char *path, struct buf *out, struct error *err);
int __wrap_fd_read_file(const char *path, struct buf *out, struct error *err);

int __wrap_fd_read_file(const char *path, struct buf *out, struct error *err)
{
    if (fed == NULL)
        return __real_fd_read_file(path, out, err);
    if (fed->left == 0)
        return error_errno(err, ENOENT, "cannot read %s", path);
    const uint8_t *at = fed->at, *end = memchr(at, PLACE_NEXT, fed->left);
    size_t length = end == NULL ? fed->left : (size_t)(end - at);
    fed->at += length + (end != NULL);
    fed->left -= length + (end != NULL);
    if (length > 0 && at[0] == PLACE_MISSING)
        return error_errno(err, ENOENT, "cannot read %s", path);
    size_t room = out->limit - out->length;
    buf_append(out, at, length < room ? length : room);
    return length <= room ? 0 : error_set(err, "%s is too large", path);
}
