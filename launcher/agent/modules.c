/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/strv.h"
#include "node/runtime_dir.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010u
#endif

struct modules {
    char *dir;
    struct strv names, paths; /* of those that were found, side by side */
};

/* What dlopen() will do with it: some systems refuse that for memory, some for a folder. */
static bool can_execute(int fd)
{
    void *page = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    if (page == MAP_FAILED)
        return false;
    munmap(page, 1);
    return true;
}

static bool fill(int fd, const struct module_image *image)
{
    return fd_write_all(fd, image->begin, (size_t)(image->end - image->begin)) == 0;
}

static int unpack_in_memory(const struct module_image *image)
{
    int fd = memfd_create(image->name, MFD_CLOEXEC | MFD_EXEC);
    if (fd < 0) /* older kernels do not know MFD_EXEC */
        fd = memfd_create(image->name, MFD_CLOEXEC);
    if (fd >= 0 && (!fill(fd, image) || !can_execute(fd)))
        fd_close(&fd);
    return fd;
}

/* A file that is open has no need of its name. */
static int unpack_in_folder(const char *place, const struct module_image *image, struct error *err)
{
    struct runtime_dir *dir = runtime_dir_create_in(place, err);
    if (dir == NULL)
        return -1;
    char *path AUTO_FREE = mem_printf("%s/%s", runtime_dir_path(dir), image->name);
    int writer = fd_open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    bool filled = writer >= 0 && fill(writer, image);
    int errnum = errno;
    fd_close(&writer);
    int fd = filled ? fd_open(path, O_RDONLY | O_CLOEXEC, 0) : -1;
    if (filled && fd >= 0 && !can_execute(fd)) {
        errnum = errno;
        fd_close(&fd);
    }
    if (fd < 0)
        error_errno(err, errnum,
                    "cannot unpack %s into %s, nor into memory: set TMPDIR to a folder from which "
                    "programs may run",
                    image->name, runtime_dir_path(dir));
    runtime_dir_destroy(dir);
    return fd;
}

char *modules_unpack(const struct module_image *image, bool in_memory, struct error *err)
{
    struct error first = ERROR_INIT;
    int fd = in_memory ? unpack_in_memory(image) : -1;
    if (fd < 0)
        fd = unpack_in_folder(runtime_dir_tmpdir(), image, &first);
    if (fd < 0)
        fd = unpack_in_folder(RUNTIME_DIR_SHARED_MEMORY, image, NULL);
    if (fd >= 0)
        return mem_printf("/proc/self/fd/%d", fd);
    error_set(err, "%s", first.text);
    return NULL;
}

struct modules *modules_create(const char *dir)
{
    struct modules *modules = mem_alloc(sizeof(*modules));
    modules->dir = mem_strdup(dir);
    return modules;
}

void modules_destroy(struct modules *modules)
{
    if (modules == NULL)
        return;
    strv_destroy(&modules->names);
    strv_destroy(&modules->paths);
    free(modules->dir);
    free(modules);
}

static char *path_of(const struct modules *modules, const char *name, struct error *err)
{
    const struct module_image *image = modules_inside;
    for (; image != NULL && image->name != NULL; image++) {
        if (strcmp(image->name, name) == 0)
            return modules_unpack(image, true, err);
    }
    return mem_printf("%s/%s", modules->dir, name);
}

const char *modules_find(struct modules *modules, const char *name, struct error *err)
{
    for (size_t i = 0; i < modules->names.count; i++) {
        if (strcmp(modules->names.items[i], name) == 0)
            return modules->paths.items[i];
    }
    char *path = path_of(modules, name, err);
    if (path == NULL)
        return NULL;
    strv_add(&modules->names, name);
    strv_add_take(&modules->paths, path);
    return path;
}

int piped_message_write(int fd, const ProtobufCMessage *message)
{
    size_t length = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes AUTO_FREE = mem_alloc(PIPED_HEADER + length);
    for (int i = 0; i < PIPED_HEADER; i++)
        bytes[i] = (uint8_t)(length >> (8 * i));
    protobuf_c_message_pack(message, bytes + PIPED_HEADER);
    return fd_write_all(fd, bytes, PIPED_HEADER + length);
}

int piped_message_next(const struct buf *bytes, size_t max, const uint8_t **body, size_t *length)
{
    const uint8_t *at = (const uint8_t *)buf_text(bytes);
    if (bytes->length < PIPED_HEADER)
        return 0;
    *body = at + PIPED_HEADER;
    *length = 0;
    for (int i = 0; i < PIPED_HEADER; i++)
        *length |= (size_t)at[i] << (8 * i);
    if (*length > max)
        return -1;
    return bytes->length - PIPED_HEADER >= *length ? 1 : 0;
}
