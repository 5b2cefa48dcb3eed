/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/config_files.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/stamp.h"

#define FILE_MAX ((size_t)1 << 20)
#define DEPTH_MAX 16 /* as OpenSSH's */
#define FILES_MAX 1024

struct seen {
    char *path; /* a file, or a folder that an Include names files of */
    struct stamp stamp;
};

struct ssh_config_files {
    const char *home, *config_file;
    struct ssh_sections *sections; /* NULL: not read yet */
    struct seen *seen;
    size_t count, room;
    /* While they are read: */
    int depth;
    const char *folder; /* that an Include counts from */
};

struct ssh_config_files *ssh_config_files_create(const char *home, const char *config_file)
{
    struct ssh_config_files *files = mem_alloc(sizeof(*files));
    files->home = home;
    files->config_file = config_file;
    return files;
}

static void forget(struct ssh_config_files *files)
{
    ssh_sections_destroy(files->sections);
    files->sections = NULL;
    for (size_t i = 0; i < files->count; i++)
        free(files->seen[i].path);
    files->count = 0;
}

void ssh_config_files_destroy(struct ssh_config_files *files)
{
    if (files == NULL)
        return;
    forget(files);
    free(files->seen);
    free(files);
}

static void remember(struct ssh_config_files *files, const char *path)
{
    if (files->count == files->room) {
        files->room = files->room == 0 ? 8 : files->room * 2;
        files->seen = mem_resize_array(files->seen, files->room, sizeof(*files->seen));
    }
    files->seen[files->count++] = (struct seen){.path = mem_strdup(path), .stamp = stamp_of(path)};
}

static void include(void *context, const char *value);

static void read_file(struct ssh_config_files *files, const char *path)
{
    struct buf text AUTO_BUF = BUF_INIT(FILE_MAX);
    struct stat status;
    remember(files, path); /* before it is read */
    if (stat(path, &status) < 0)
        return;
    /* A pipe is ssh's to read, and only once. */
    if (!S_ISREG(status.st_mode) || files->depth == DEPTH_MAX || files->count > FILES_MAX ||
        fd_read_file(path, &text, NULL) < 0) {
        ssh_sections_doubt(files->sections);
        return;
    }
    files->depth++;
    ssh_sections_read(files->sections, buf_text(&text), text.length, include, files);
    files->depth--;
}

static void include_pattern(struct ssh_config_files *files, const char *pattern)
{
    const char *slash = strrchr(pattern, '/');
    char *folder AUTO_FREE = mem_strndup(pattern, slash == NULL ? 0 : (size_t)(slash - pattern));
    glob_t found;
    if (strpbrk(folder, "*?[") != NULL) { /* too much to watch */
        ssh_sections_doubt(files->sections);
        return;
    }
    remember(files, folder);
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        read_file(files, found.gl_pathv[i]);
    globfree(&found);
}

static void include(void *context, const char *value)
{
    struct ssh_config_files *files = context;
    if (strpbrk(value, "\"'\\%$#") != NULL)
        ssh_sections_doubt(files->sections);
    while (*value != '\0') {
        size_t length = strcspn(value, " \t");
        char *word AUTO_FREE = mem_strndup(value, length), *path AUTO_FREE = NULL;
        value += length + strspn(value + length, " \t");
        if (word[0] == '/')
            path = mem_strdup(word);
        else if (word[0] != '~')
            path = mem_printf("%s/%s", files->folder, word);
        else if (word[1] == '/' && files->home != NULL)
            path = mem_printf("%s%s", files->home, word + 1);
        if (path != NULL)
            include_pattern(files, path);
        else
            ssh_sections_doubt(files->sections);
    }
}

static void read_top(struct ssh_config_files *files, const char *path, const char *folder)
{
    files->folder = folder;
    ssh_sections_begin(files->sections);
    read_file(files, path);
}

static void read_all(struct ssh_config_files *files)
{
    char *folder AUTO_FREE = mem_printf("%s/.ssh", files->home == NULL ? "" : files->home);
    char *own AUTO_FREE = mem_printf("%s/config", folder);
    forget(files);
    files->sections = ssh_sections_create();
    if (files->config_file != NULL) {
        read_top(files, files->config_file, folder);
        return;
    }
    read_top(files, own, folder);
    read_top(files, "/etc/ssh/ssh_config", "/etc/ssh");
}

static bool up_to_date(const struct ssh_config_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        struct stamp now = stamp_of(files->seen[i].path);
        if (!stamp_equal(&now, &files->seen[i].stamp))
            return false;
    }
    return files->sections != NULL;
}

const struct ssh_sections *ssh_config_files_sections(struct ssh_config_files *files, bool *changed)
{
    *changed = !up_to_date(files);
    if (*changed)
        read_all(files);
    return files->sections;
}
