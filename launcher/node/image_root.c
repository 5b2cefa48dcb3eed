/* SPDX-License-Identifier: Apache-2.0 */
#include "node/image_root.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"

/* <linux/openat2.h>, which older systems lack. */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define IN_ROOT 0x10

struct how {
    uint64_t flags, mode, resolve;
};

static bool is_folder(const char *root, const char *name)
{
    struct stat info;
    char *path AUTO_FREE = mem_printf("%s/%s", root, name);
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The root of another file system than ours. */
static bool is_image(const char *path)
{
    struct stat own, other;
    bool is = stat(path, &other) == 0 && S_ISDIR(other.st_mode) && stat("/", &own) == 0;
    return is && (own.st_dev != other.st_dev || own.st_ino != other.st_ino) &&
           is_folder(path, "etc") && is_folder(path, "usr");
}

/* "DIR", "DIR:O" and "--rootfs=DIR". The caller frees it. NULL: it is no image. */
static char *image_of(const char *word, const char *wdir)
{
    static const char option[] = "--rootfs=";
    if (strncmp(word, option, sizeof(option) - 1) == 0)
        word += sizeof(option) - 1;
    size_t length = strcspn(word, ":");
    bool inside = word[0] != '/' && wdir != NULL;
    char *path AUTO_FREE = mem_printf("%s%s%.*s", inside ? wdir : "", inside ? "/" : "",
                                      (int)(length < PATH_MAX ? length : 0), word);
    return length > 0 && is_image(path) ? realpath(path, NULL) : NULL;
}

/* enroot's images have names. */
static char *enroot_image(const char *word,
                          const char *(*get)(const void *context, const char *name),
                          const void *context)
{
    const char *data = get(context, "ENROOT_DATA_PATH"), *home = get(context, "HOME"),
               *share = get(context, "XDG_DATA_HOME");
    char *path AUTO_FREE = data != NULL    ? mem_printf("%s/%s", data, word)
                           : share != NULL ? mem_printf("%s/enroot/%s", share, word)
                           : home != NULL  ? mem_printf("%s/.local/share/enroot/%s", home, word)
                                           : NULL;
    return path != NULL && strchr(word, '/') == NULL && is_image(path) ? realpath(path, NULL)
                                                                       : NULL;
}

/* A program that runs others in an environment of its own choice. */
struct wrapper {
    const char *name;
    bool image;    /* a folder that it names is the image */
    bool inherits; /* image_command's */
};

static const struct wrapper *wrapper_of(const char *path)
{
    static const struct wrapper wrappers[] = {
        {"apptainer", true, true},   {"singularity", true, true}, {"ch-run", true, true},
        {"podman", true, false},     {"enroot", true, false},     {"docker", false, false},
        {"bwrap", false, false},     {"chroot", false, false},    {"charliecloud", false, false},
        {"uv", false, false},        {"poetry", false, false},    {"pipenv", false, false},
        {"pixi", false, false},      {"conda", false, false},     {"mamba", false, false},
        {"micromamba", false, false}};
    for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++) {
        if (strcmp(text_base_name(path), wrappers[i].name) == 0)
            return &wrappers[i];
    }
    return NULL;
}

bool image_is_wrapper(const char *path)
{
    return wrapper_of(path) != NULL;
}

bool image_command_of(const char *path, char *const *argv, const char *wdir,
                      const char *(*get)(const void *context, const char *name),
                      const void *context, struct image_command *out)
{
    const struct wrapper *wrapper = wrapper_of(path);
    if (wrapper == NULL || !wrapper->image || argv[0] == NULL)
        return false;
    *out = (struct image_command){.inherits = wrapper->inherits};
    char *const *word = argv + 1;
    for (; *word != NULL && out->root == NULL; word++) {
        out->root = image_of(*word, wdir);
        if (out->root == NULL && strcmp(wrapper->name, "enroot") == 0)
            out->root = enroot_image(*word, get, context);
    }
    if (*word != NULL && strcmp(*word, "--") == 0)
        word++;
    out->argv = word;
    if (out->root != NULL && *word != NULL)
        return true;
    mem_free_at(&out->root);
    return false;
}

/* Of an open file. */
static char *path_of(int fd)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof(path) - 1);
    if (length <= 0)
        return NULL;
    path[length] = '\0';
    return mem_strdup(path);
}

char *image_real(const char *root, const char *path)
{
    if (root == NULL)
        return realpath(path, NULL);
    const struct how how = {.flags = O_PATH | O_CLOEXEC, .resolve = IN_ROOT};
    int folder AUTO_FD = fd_open(root, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    int fd AUTO_FD = folder < 0 ? -1 : (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
    return fd >= 0 ? path_of(fd) : NULL;
}

char *image_find(const char *root, const char *command)
{
    static const char *const folders[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                          "/usr/bin",        "/sbin",          "/bin"};
    bool named = command[0] == '/';
    if (!named && strchr(command, '/') != NULL)
        return NULL; /* in a folder that only the container knows */
    for (size_t i = 0; i < (named ? 1 : sizeof(folders) / sizeof(folders[0])); i++) {
        char *inside AUTO_FREE =
            named ? mem_strdup(command) : mem_printf("%s/%s", folders[i], command);
        char *real AUTO_FREE = image_real(root, inside);
        if (real != NULL)
            return mem_strdup(inside);
    }
    return NULL;
}
