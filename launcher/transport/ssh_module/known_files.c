/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh_module/known_files.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/file_stamp.h"
#include "base/map.h"
#include "base/mem.h"
#include "transport/ssh_module/known_files_test.h"
#include "transport/ssh_module/known_hosts.h"
#include "transport/ssh_module/name_hash.h"

/*
 * The lines of one known_hosts file by the names in them, so that a lookup does not read the whole
 * file. It only chooses lines; known_hosts_read_line() decides what they say about a host. Pure.
 *
 * A plain scan of 1,000 lines for each of 1,000 hosts takes 100 ms, or 2 s with hashed names. With
 * the index it is 3 ms, or 0.3 s.
 *
 * Lines with a pattern are for every host. A hashed name is tried with each host until it matches
 * one. It cannot match another, so it is not tried again.
 */

#define NOTHING UINT32_MAX

struct indexed_line {
    size_t at, length; /* in the text */
};

/* A name in a line; or, since only its hash is compared, perhaps another one. */
struct mention {
    uint32_t line;
    uint32_t next; /* of the same hash */
};

struct hidden {
    struct name_hash hash;
    uint32_t line;
};

struct known_index {
    char *file;
    struct name_hasher *hasher;
    struct buf text;
    struct indexed_line *lines;
    size_t line_count, line_room;
    struct mention *mentions;
    size_t mention_count, mention_room;
    struct map by_hash; /* number of the last mention + 1 */
    uint32_t *patterns; /* lines for every host */
    size_t pattern_count, pattern_room;
    struct hidden *hidden; /* lines of hashed names that no host was found for yet */
    size_t hidden_count, hidden_room;
};

struct known_index *known_index_create(const char *file, struct name_hasher *hasher)
{
    struct known_index *index = mem_alloc(sizeof *index);

    index->file = mem_strdup(file);
    index->hasher = hasher;
    return index;
}

static void forget(struct known_index *index)
{
    buf_destroy(&index->text);
    map_clear(&index->by_hash, NULL);
    index->line_count = index->mention_count = index->pattern_count = index->hidden_count = 0;
}

void known_index_destroy(struct known_index *index)
{
    if (!index)
        return;
    forget(index);
    mem_free_at(&index->lines);
    mem_free_at(&index->mentions);
    mem_free_at(&index->patterns);
    mem_free_at(&index->hidden);
    mem_free_at(&index->file);
    mem_free_at(&index);
}

/* FNV-1a of the small letters. */
static uint32_t hash_of(const void *name, size_t length)
{
    const unsigned char *at = name;
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint32_t)tolower(at[i])) * 16777619u;
    return hash;
}

static uint32_t find_mention(const struct known_index *index, uint32_t hash)
{
    return (uint32_t)(uintptr_t)map_get(&index->by_hash, map_number(hash)) - 1;
}

static void add_mention(struct known_index *index, uint32_t hash, uint32_t line)
{
    index->mentions = mem_one_more(index->mentions, index->mention_count, &index->mention_room,
                                   sizeof *index->mentions);
    index->mentions[index->mention_count++] =
        (struct mention){.line = line, .next = find_mention(index, hash)};
    map_put(&index->by_hash, map_number(hash), (void *)index->mention_count);
}

static void add_pattern(struct known_index *index, uint32_t line)
{
    index->patterns = mem_one_more(index->patterns, index->pattern_count, &index->pattern_room,
                                   sizeof *index->patterns);
    index->patterns[index->pattern_count++] = line;
}

static void add_hidden(struct known_index *index, struct byte_view name, uint32_t line)
{
    struct hidden hidden = {.line = line};

    if (!name_hash_parse(&hidden.hash, name))
        return;
    index->hidden = mem_one_more(index->hidden, index->hidden_count, &index->hidden_room,
                                 sizeof *index->hidden);
    index->hidden[index->hidden_count++] = hidden;
}

static bool is_pattern(struct byte_view name)
{
    return memchr(name.at, '*', name.length) || memchr(name.at, '?', name.length) ||
           memchr(name.at, '!', name.length);
}

static void add_line(struct known_index *index, struct byte_view text)
{
    struct byte_view names = known_hosts_names(text);
    uint32_t line = (uint32_t)index->line_count;

    index->lines =
        mem_one_more(index->lines, index->line_count, &index->line_room, sizeof *index->lines);
    index->lines[index->line_count++] = (struct indexed_line){
        .at = (size_t)(text.at - (const unsigned char *)buf_text(&index->text)),
        .length = text.length,
    };
    if (names.length == 0)
        return;
    if (names.at[0] == '|') {
        add_hidden(index, names, line);
        return;
    }
    if (is_pattern(names)) {
        add_pattern(index, line);
        return;
    }
    while (names.length > 0) {
        const unsigned char *comma = memchr(names.at, ',', names.length);
        size_t length = comma ? (size_t)(comma - names.at) : names.length;

        add_mention(index, hash_of(names.at, length), line);
        names.at += length + (comma != NULL);
        names.length -= length + (comma != NULL);
    }
}

/* Whether lines have only been added. */
static bool goes_on(const struct buf *old, const struct buf *now)
{
    return old->length > 0 && old->length <= now->length &&
           buf_text(old)[old->length - 1] == '\n' &&
           memcmp(buf_text(old), buf_text(now), old->length) == 0;
}

void known_index_set(struct known_index *index, struct buf *text)
{
    size_t known = goes_on(&index->text, text) ? index->text.length : 0;
    struct byte_view left, line;

    if (known == 0)
        forget(index);
    buf_destroy(&index->text);
    index->text = *text;
    *text = (struct buf)BUF_INIT(text->limit);
    left = buf_view(&index->text);
    left.at += known;
    left.length -= known;
    while (known_hosts_next_line(&left, &line))
        add_line(index, line);
}

/* Numbers of lines that may be about a host. */
struct line_choice {
    uint32_t *lines;
    size_t count, room;
};

static void choose(struct line_choice *choice, uint32_t line)
{
    choice->lines =
        mem_one_more(choice->lines, choice->count, &choice->room, sizeof *choice->lines);
    choice->lines[choice->count++] = line;
}

static void find_hidden(struct known_index *index, const char *name)
{
    size_t kept = 0;

    for (size_t i = 0; i < index->hidden_count; i++) {
        if (name_hash_matches(index->hasher, &index->hidden[i].hash, name))
            add_mention(index, hash_of(name, strlen(name)), index->hidden[i].line);
        else
            index->hidden[kept++] = index->hidden[i];
    }
    index->hidden_count = kept;
}

static void find_name(struct known_index *index, const char *name, struct line_choice *choice)
{
    uint32_t at;

    if (!name)
        return;
    find_hidden(index, name);
    at = find_mention(index, hash_of(name, strlen(name)));
    for (; at != NOTHING; at = index->mentions[at].next)
        choose(choice, index->mentions[at].line);
}

static int in_order(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

void known_index_find(struct known_index *index, struct known_hosts *known)
{
    const unsigned char *text = buf_view(&index->text).at;
    struct line_choice choice = {.lines = NULL};
    uint32_t last = NOTHING;

    find_name(index, known_hosts_name(known), &choice);
    find_name(index, known_hosts_plain_name(known), &choice);
    for (size_t i = 0; i < index->pattern_count; i++)
        choose(&choice, index->patterns[i]);
    if (choice.count > 0)
        qsort(choice.lines, choice.count, sizeof *choice.lines, in_order);
    for (size_t i = 0; i < choice.count; i++) {
        uint32_t number = choice.lines[i];
        const struct indexed_line *line = &index->lines[number];
        struct byte_view view = {.at = text + line->at, .length = line->length};

        if (number != last) /* a line may name a host twice */
            known_hosts_read_line(known, index->file, (int)number + 1, view);
        last = number;
    }
    mem_free_at(&choice.lines);
}

/* The files. */

#define FILE_MAX (64 * 1024 * 1024)

struct known_file {
    struct known_file *next;
    char *path;
    struct file_stamp seen; /* before it was read; all zero: there is nothing to read */
    struct known_index *index;
};

struct ssh_known_files {
    struct known_file *first; /* few: those of one or two configurations */
    struct name_hasher *hasher;
};

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
        known_index_destroy(file->index);
        mem_free_at(&file->path);
        mem_free_at(&file);
    }
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
    file->index = known_index_create(path, files->hasher);
    file->next = files->first;
    files->first = file;
    return file;
}

static int bring_up_to_date(struct known_file *file, struct error *err)
{
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX);
    struct file_stamp now = {.size = 0};
    struct stat status;

    /* A FIFO or a device would make us wait, or never end. */
    if (stat(file->path, &status) == 0 && S_ISREG(status.st_mode))
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
    known_index_set(file->index, &text);
    return 0;
}

int known_files_find(struct ssh_known_files *files, char *const *paths, struct known_hosts *known,
                     struct error *err)
{
    for (size_t i = 0; paths && paths[i]; i++) {
        struct known_file *file = file_of(files, paths[i]);

        if (bring_up_to_date(file, err) < 0)
            return -1;
        known_index_find(file->index, known);
    }
    return 0;
}
