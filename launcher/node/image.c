/* SPDX-License-Identifier: Apache-2.0 */
#include "node/image.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
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

#define FOLDERS_MAX 256
#define CONF_MAX (1 << 18)
#define CONF_DEPTH 4

struct library_search {
    const char *root; /* NULL: ours */
    const struct elf_info *program;
    struct strv folders; /* in the order of the search */
    bool complete;       /* those of the system are in */
    int trouble;         /* errno of a call that failed for want of something; 0: none */
};

struct file {
    int fd, errnum;
};

static size_t read_file(void *context, uint64_t offset, void *out, size_t length)
{
    struct file *file = context;
    if (offset > INT64_MAX)
        return 0;
    ssize_t got = fd_pread(file->fd, out, length, (off_t)offset);
    if (got < 0)
        file->errnum = errno;
    return got > 0 ? (size_t)got : 0;
}

int library_read_elf(int fd, struct elf_info *out)
{
    struct file file = {.fd = fd};
    const struct elf_source source = {.read = read_file, .context = &file};
    int result = elf_read(&source, out);
    if (file.errnum != 0) /* what it lacks now would be missing in silence */
        elf_info_destroy(out);
    errno = file.errnum;
    return file.errnum != 0 ? -1 : result;
}

bool library_is_trouble(int errnum)
{
    return errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM || errnum == EIO;
}

int library_search_trouble(const struct library_search *search)
{
    return search->trouble;
}

static void add_folder(struct library_search *search, const char *folder, size_t length)
{
    if (length == 0 || length > 4000 || search->folders.count >= FOLDERS_MAX)
        return;
    for (size_t i = 0; i < search->folders.count; i++) {
        const char *known = search->folders.items[i];
        if (strncmp(known, folder, length) == 0 && known[length] == '\0')
            return;
    }
    strv_add_n(&search->folders, folder, length);
}

/* A list divided by colons; $ORIGIN is the folder of `object`, $LIB one of two names. */
static void add_list(struct library_search *search, const char *list, const char *object)
{
    size_t origin = object != NULL && strrchr(object, '/') != NULL
                        ? (size_t)(strrchr(object, '/') - object)
                        : 0;
    while (list != NULL && *list != '\0') {
        struct buf folder AUTO_BUF = BUF_INIT(8192);
        for (; *list != '\0' && *list != ':'; list++) {
            static const char *const words[] = {"$ORIGIN", "${ORIGIN}", "$LIB", "${LIB}"};
            size_t i = 0;
            while (i < 4 && strncmp(list, words[i], strlen(words[i])) != 0)
                i++;
            if (i < 2)
                (void)buf_append(&folder, object != NULL ? object : "", origin);
            else if (i < 4)
                (void)buf_puts(&folder, search->program->wide ? "lib64" : "lib");
            else
                (void)buf_putc(&folder, *list);
            list += i < 4 ? strlen(words[i]) - 1 : 0;
        }
        add_folder(search, buf_text(&folder), folder.length);
        list += *list == ':';
    }
}

static const char *root_of(const struct library_search *search)
{
    return search->root != NULL ? search->root : "";
}

static void add_conf(struct library_search *search, const char *path, int depth)
{
    struct buf text AUTO_BUF = BUF_INIT(CONF_MAX);
    struct error err = ERROR_INIT;
    if (depth > CONF_DEPTH)
        return;
    if (fd_read_file(path, &text, &err) < 0) {
        if (library_is_trouble(err.errnum))
            search->trouble = err.errnum;
        return;
    }
    for (const char *at = buf_text(&text); *at != '\0';) {
        at += strspn(at, " \t");
        size_t length = strcspn(at, " \t#\r\n");
        if (length == 7 && memcmp(at, "include", 7) == 0) {
            const char *name = at + 7 + strspn(at + 7, " \t");
            char *pattern AUTO_FREE =
                mem_printf("%s%s%.*s", root_of(search), name[0] == '/' ? "" : "/etc/",
                           (int)strcspn(name, " \t#\r\n"), name);
            glob_t found = {0};
            if (glob(pattern, 0, NULL, &found) == 0) {
                for (size_t i = 0; i < found.gl_pathc && i < FOLDERS_MAX; i++)
                    add_conf(search, found.gl_pathv[i], depth + 1);
            }
            globfree(&found);
        } else if (*at == '/') {
            add_folder(search, at, length);
        }
        size_t end = strcspn(at, "\n");
        at += end + (at[end] == '\n');
    }
}

struct library_search *library_search_create(const char *root, const char *program,
                                             const struct elf_info *info, const char *library_path)
{
    struct library_search *search = mem_alloc(sizeof(*search));
    search->root = root;
    search->program = info;
    /* RPATH counts only where there is no RUNPATH, and then before LD_LIBRARY_PATH */
    if (info->runpath == NULL)
        add_list(search, info->rpath, program);
    add_list(search, library_path, NULL);
    add_list(search, info->runpath, program);
    return search;
}

void library_search_destroy(struct library_search *search)
{
    if (search == NULL)
        return;
    strv_destroy(&search->folders);
    free(search);
}

static int open_at(struct library_search *search, const char *inside, struct elf_info *out)
{
    char *real AUTO_FREE = search->root == NULL ? NULL : image_real(search->root, inside);
    const char *path = search->root == NULL ? inside : real != NULL ? real : "";
    int fd AUTO_FD = fd_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0 || library_read_elf(fd, out) < 0) {
        if (library_is_trouble(errno))
            search->trouble = errno;
        return -1;
    }
    const struct elf_info *program = search->program;
    if (out->machine == program->machine && out->wide == program->wide &&
        out->big_endian == program->big_endian)
        return 0;
    elf_info_destroy(out);
    return -1;
}

/* The system's folders are only looked up for a program that needs more than the C library. */
static void add_system_folders(struct library_search *search)
{
    static const char *const usual[] = {"/lib64", "/usr/lib64", "/lib", "/usr/lib"};
    search->complete = true;
    char *conf AUTO_FREE = mem_printf("%s/etc/ld.so.conf", root_of(search));
    add_conf(search, conf, 0);
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        add_folder(search, usual[i], strlen(usual[i]));
}

int library_search_open(struct library_search *search, const char *name, struct elf_info *out)
{
    if (strchr(name, '/') != NULL)
        return open_at(search, name, out);
    if (!search->complete)
        add_system_folders(search);
    for (size_t i = 0; i < search->folders.count; i++) {
        char *path AUTO_FREE = mem_printf("%s/%s", search->folders.items[i], name);
        if (open_at(search, path, out) < 0)
            continue;
        /* what this one needs may lie where only its own run path says */
        add_list(search, out->runpath != NULL ? out->runpath : out->rpath, path);
        return 0;
    }
    return -1;
}
