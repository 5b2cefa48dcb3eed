/* SPDX-License-Identifier: Apache-2.0 */
#include "node/library_path.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "node/image_root.h"

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
