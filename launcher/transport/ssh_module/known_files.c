/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/known_hosts.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/mem.h"

#define FILE_MAX (64 * 1024 * 1024)
#define NAMES_MAX 64 /* of a line that is found by its names */

struct known_line {
    uint32_t at, length; /* in the text */
    int number;
};

/* A line of a name. Names with one hash are in one chain: known_hosts_read_line() tells them
 * apart. */
struct naming {
    size_t line, next; /* `next`: the naming before it, and 1 more; 0: none */
};

/* A line with a hashed name. The name is tried with each host until it matches one. It cannot match
 * another, so it is not tried again: with 1,000 of them, 1,000 hosts would take 2 s. */
struct hidden {
    struct name_hash hash;
    size_t line;
};

/* A hashed name that we have appended: it tells the name of a line without a try. */
struct added {
    struct name_hash hash;
    char *name; /* owned */
};

struct known_file {
    struct known_file *next;
    char *path;
    struct file_stamp seen; /* before it was read; all zero: there is nothing to read */
    struct buf text;
    int line_count;
    struct known_line *lines; /* that are about a host, in their order */
    size_t count, room;
    struct map names; /* from the hash of a name to its last naming, and 1 more */
    struct naming *namings;
    size_t naming_count, naming_room;
    size_t *patterns; /* lines that are tried with each host, in their order */
    size_t pattern_count, pattern_room;
    struct hidden *hidden; /* in any order */
    size_t hidden_count, hidden_room;
    struct added *added; /* since the file was read */
    size_t added_count, added_room;
};

struct ssh_known_files {
    struct known_file *first; /* few: those of one or two configurations */
    struct name_hasher *hasher;
    size_t *found; /* lines, for one search */
    size_t found_room;
};

static void forget(struct known_file *file)
{
    map_clear(&file->names, NULL);
    file->naming_count = file->pattern_count = file->hidden_count = file->count = 0;
    file->line_count = 0;
    buf_destroy(&file->text);
}

/* What the lines are found by. */

static struct map_key key_of(const char *name, size_t length)
{
    uint64_t hash = HASH_START;

    for (size_t i = 0; i < length; i++) {
        char lower = (char)tolower((unsigned char)name[i]);

        hash = hash_add(hash, &lower, 1);
    }
    return map_number(hash);
}

static void add_naming(struct known_file *file, size_t line, const char *name, size_t length)
{
    struct map_key key = key_of(name, length);
    struct naming naming = {.line = line, .next = (uintptr_t)map_get(&file->names, key)};

    MEM_ADD_ROOM(file->namings, file->naming_count, file->naming_room) = naming;
    (void)map_put(&file->names, key, (void *)(uintptr_t)file->naming_count);
}

/* Whether the line is found by its names: they are no patterns, and few. */
static bool is_plain(struct byte_view names)
{
    size_t commas = 0;

    for (size_t i = 0; i < names.length; i++) {
        char byte = (char)names.at[i];

        if (byte == '*' || byte == '?' || byte == '!')
            return false;
        commas += byte == ',';
        if (commas >= NAMES_MAX)
            return false;
    }
    return true;
}

static void add_names(struct known_file *file, size_t line, struct byte_view names)
{
    const char *at = (const char *)names.at, *end = at + names.length;

    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;

        if (stop > at)
            add_naming(file, line, at, (size_t)(stop - at));
        at = stop + 1;
    }
}

/* What we have appended ourselves need not be tried with all hosts that follow. */
static void add_hidden(struct known_file *file, struct hidden hidden)
{
    for (size_t i = 0; i < file->added_count; i++) {
        const struct added *added = &file->added[i];

        if (memcmp(&added->hash, &hidden.hash, sizeof hidden.hash) == 0) {
            add_naming(file, hidden.line, added->name, strlen(added->name));
            return;
        }
    }
    MEM_ADD_ROOM(file->hidden, file->hidden_count, file->hidden_room) = hidden;
}

static void add_line(struct known_file *file, struct known_line line, struct byte_view names)
{
    struct hidden hidden = {.line = file->count};

    MEM_ADD_ROOM(file->lines, file->count, file->room) = line;
    if (name_hash_parse(&hidden.hash, names)) {
        add_hidden(file, hidden);
    } else if (is_plain(names)) {
        add_names(file, hidden.line, names);
    } else {
        MEM_ADD_ROOM(file->patterns, file->pattern_count, file->pattern_room) = hidden.line;
    }
}

/* Whether lines have only been added. */
static bool goes_on(const struct buf *old, const struct buf *now)
{
    return old->length > 0 && old->length <= now->length &&
           buf_text(old)[old->length - 1] == '\n' &&
           memcmp(buf_text(old), buf_text(now), old->length) == 0;
}

static void forget_added(struct known_file *file)
{
    for (size_t i = 0; i < file->added_count; i++)
        mem_free_at(&file->added[i].name);
    file->added_count = 0;
}

static void set_text(struct known_file *file, struct buf *text)
{
    size_t known = goes_on(&file->text, text) ? file->text.length : 0;
    struct byte_view left, line, names;
    const unsigned char *begin;

    if (known == 0)
        forget(file);
    buf_destroy(&file->text);
    file->text = *text;
    *text = (struct buf)BUF_INIT(text->limit);
    left = buf_view(&file->text);
    begin = left.at;
    left.at += known;
    left.length -= known;
    while (known_hosts_next_line(&left, &line)) {
        file->line_count++;
        names = known_hosts_names(line);
        if (names.length > 0)
            add_line(file,
                     (struct known_line){.at = (uint32_t)(line.at - begin),
                                         .length = (uint32_t)line.length,
                                         .number = file->line_count},
                     names);
    }
    forget_added(file);
}

/* Looking a host up. */

static bool reveal(struct known_file *file, struct name_hasher *hasher, const struct hidden *hidden,
                   const char *name)
{
    if (!name || !name_hash_matches(hasher, &hidden->hash, name))
        return false;
    add_naming(file, hidden->line, name, strlen(name));
    return true;
}

static void find_hidden(struct known_file *file, struct name_hasher *hasher,
                        const struct known_hosts *known)
{
    size_t left = 0;

    for (size_t i = 0; i < file->hidden_count; i++) {
        if (!reveal(file, hasher, &file->hidden[i], known->name) &&
            !reveal(file, hasher, &file->hidden[i], known->plain))
            file->hidden[left++] = file->hidden[i];
    }
    file->hidden_count = left;
}

static size_t find_named(struct ssh_known_files *files, const struct known_file *file,
                         const char *name, size_t count)
{
    size_t at;

    if (!name)
        return count;
    at = (uintptr_t)map_get(&file->names, key_of(name, strlen(name)));
    for (; at != 0; at = file->namings[at - 1].next) {
        MEM_ADD_ROOM(files->found, count, files->found_room) = file->namings[at - 1].line;
    }
    return count;
}

static int compare_lines(const void *a, const void *b)
{
    const size_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

static void read_line(const struct known_file *file, size_t line, struct known_hosts *known)
{
    const struct known_line *at = &file->lines[line];
    struct byte_view text = {.at = buf_view(&file->text).at + at->at, .length = at->length};

    known_hosts_read_line(known, file->path, at->number, text);
}

static void find_in(struct ssh_known_files *files, struct known_file *file,
                    struct known_hosts *known)
{
    size_t count, pattern = 0;

    find_hidden(file, files->hasher, known);
    count = find_named(files, file, known->name, 0);
    count = find_named(files, file, known->plain, count);
    if (count > 1)
        qsort(files->found, count, sizeof *files->found, compare_lines);
    for (size_t i = 0; i < count; i++) {
        for (; pattern < file->pattern_count && file->patterns[pattern] < files->found[i];
             pattern++)
            read_line(file, file->patterns[pattern], known);
        if (i == 0 || files->found[i] != files->found[i - 1])
            read_line(file, files->found[i], known);
    }
    for (; pattern < file->pattern_count; pattern++)
        read_line(file, file->patterns[pattern], known);
}

struct ssh_known_files *known_files_create(void)
{
    struct ssh_known_files *files = mem_alloc(sizeof *files);

    files->hasher = name_hasher_create();
    return files;
}

void known_files_destroy(struct ssh_known_files *files)
{
    if (!files)
        return;
    while (files->first) {
        struct known_file *file = files->first;

        files->first = file->next;
        forget(file);
        mem_free_at(&file->lines);
        mem_free_at(&file->namings);
        mem_free_at(&file->patterns);
        mem_free_at(&file->hidden);
        forget_added(file);
        mem_free_at(&file->added);
        mem_free_at(&file->path);
        mem_free_at(&file);
    }
    mem_free_at(&files->found);
    name_hasher_destroy(files->hasher);
    mem_free_at(&files);
}

static struct known_file *file_of(struct ssh_known_files *files, const char *path)
{
    struct known_file *file = files->first;

    while (file && strcmp(file->path, path) != 0)
        file = file->next;
    if (file)
        return file;
    file = mem_alloc(sizeof *file);
    file->path = mem_strdup(path);
    file->text = (struct buf)BUF_INIT(FILE_MAX);
    file->next = files->first;
    files->first = file;
    return file;
}

/* A FIFO or a device would make us wait, or never end: they are taken for empty. */
static bool is_regular(const char *path, struct stat *status)
{
    return stat(path, status) == 0 && S_ISREG(status->st_mode);
}

static int bring_up_to_date(struct known_file *file, struct error *err)
{
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX);
    struct file_stamp now = {.size = 0};
    struct stat status;

    if (is_regular(file->path, &status))
        now = file_stamp_of_stat(&status);
    if (file_stamp_equal(&now, &file->seen))
        return 0;
    if (now.size >= FILE_MAX)
        return error_set(err, "%s is larger than %d MiB, too large for a known_hosts file",
                         file->path, FILE_MAX / 1024 / 1024);
    if (now.inode != 0 && fd_read_file(file->path, &text, NULL) < 0) {
        if (errno != EACCES && errno != EPERM && errno != ENOENT)
            return error_set(err, "cannot read %s: %s", file->path, strerrordesc_np(errno));
        buf_clear(&text);
    }
    file->seen = now;
    set_text(file, &text);
    return 0;
}

int known_files_find(struct ssh_known_files *files, char *const *paths, struct known_hosts *known,
                     struct error *err)
{
    for (size_t i = 0; paths && paths[i]; i++) {
        struct known_file *file = file_of(files, paths[i]);

        if (bring_up_to_date(file, err) < 0)
            return -1;
        find_in(files, file, known);
    }
    return 0;
}

/* Appending. */

#define LINE_MAX_BYTES 32768

static void make_folder_of(const char *file)
{
    const char *slash = strrchr(file, '/');

    if (slash && slash > file) {
        AUTO_FREE char *folder = mem_strndup(file, (size_t)(slash - file));

        (void)mkdir(folder, 0700); /* when that fails, opening the file says why */
    }
}

static bool ends_with_line_end(int fd)
{
    struct stat status;
    char last = '\n';

    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
        fd_pread(fd, &last, 1, status.st_size - 1) != 1)
        return true;
    return last == '\n';
}

/* `line`: what was written. */
static int append(const struct known_hosts *known, const char *path, struct byte_view key,
                  bool hash_name, struct buf *line, struct error *err)
{
    unsigned char salt[NAME_HASH_SIZE];
    AUTO_FD int fd = -1;
    ssize_t written;

    make_folder_of(path);
    fd = fd_open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    if (fd < 0)
        return error_errno(err, errno, "cannot open %s", path);
    if (!ends_with_line_end(fd))
        (void)buf_putc(line, '\n');
    if (hash_name && RAND_bytes(salt, sizeof salt) != 1)
        return error_set(err, "cannot get random bytes for the hash of a name");
    if (known_hosts_line(known, key, hash_name ? salt : NULL, line) < 0)
        return error_set(err, "the host key is too large for a line");
    written = fd_write(fd, line->bytes + line->start, line->length);
    if (written < 0)
        return error_errno(err, errno, "cannot write to %s", path);
    if ((size_t)written != line->length)
        return error_set(err, "cannot write to %s: the disk is full", path);
    return 0;
}

/* Until the file is read, which happens to none but a regular one. */
static void remember(struct known_file *file, const char *name, struct byte_view text)
{
    struct added added;
    struct byte_view line;
    struct stat status;

    if (!is_regular(file->path, &status))
        return;
    while (known_hosts_next_line(&text, &line)) {
        if (!name_hash_parse(&added.hash, known_hosts_names(line)))
            continue;
        added.name = mem_strdup(name);
        MEM_ADD_ROOM(file->added, file->added_count, file->added_room) = added;
    }
}

int known_files_append(struct ssh_known_files *files, const char *path,
                       const struct known_hosts *known, struct byte_view key, bool hash_name,
                       struct error *err)
{
    AUTO_BUF struct buf line = BUF_INIT(LINE_MAX_BYTES);

    if (append(known, path, key, hash_name, &line, err) < 0)
        return -1;
    if (hash_name)
        remember(file_of(files, path), known->name, buf_view(&line));
    return 0;
}
